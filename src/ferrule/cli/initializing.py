"""`initialize`: what the other side chooses for the conversation, before it is opened."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, cast

from ..agents.agent_kinds import AgentKind
from ..hooks.hook import Hook, hook
from ..sdk.options import Options
from .control import CannotDo
from .host_callbacks import HostHooks, HostServers

DEFAULT_SECONDS: Final = 60.0
"""For a hook of the other side that names no time limit."""
_DECLARATIONS: Final = frozenset(
    {
        "subtype",
        "supportedDialogKinds",
        "perTaskStopAffordance",
        "sdkMcpServerManifests",
        "sdkMcpServerManifestsOrigin",
        "systemPromptSnapshot",
        "forwardNestedSubagentToolCalls",
    }
)
"""What the other side can do or knows already. Nothing is left out where these are not used."""


def options_with(request: Mapping[str, Any], options: Options, hooks: HostHooks, servers: HostServers) -> Options:
    """Raises `CannotDo` for anything that this version cannot honour: leaving it out could allow too much."""
    given = {key: value for key, value in request.items() if value is not None and key not in _DECLARATIONS}
    for key, value in given.items():
        if key not in _READERS:
            if value in (False, "", [], {}):
                continue
            raise CannotDo(f"`{key}` of initialize is not supported by this version.")
    for key, value in given.items():
        if key in _READERS:
            options = replace(options, **_READERS[key](value, options))
    if wanted := given.get("hooks"):
        options = replace(options, hooks=(*options.hooks, *_hooks(_object("hooks", wanted), hooks)))
    names = _texts("sdkMcpServers", given.get("sdkMcpServers") or [])
    return with_host_servers(options, names, servers)


def with_host_servers(options: Options, names: list[str], servers: HostServers) -> Options:
    known = cast(Mapping[str, Mapping[str, Any]], options.mcp_servers)
    relayed = {name: {"type": "sdk", "instance": servers.relay(name)} for name in names if name not in known}
    return replace(options, mcp_servers={**known, **relayed}) if relayed else options


def split_host_servers(options: Options) -> tuple[Options, list[str]]:
    """Without the servers of type `sdk` in files and JSON of servers, whose names are given beside."""
    sources: list[str] = []
    names: list[str] = []
    for source in options.mcp_configs:
        content = _read_servers(source)
        of_host = [name for name, entry in content.items() if _is_of_host(entry)]
        others = {name: entry for name, entry in content.items() if name not in of_host}
        names += of_host
        if not of_host:
            sources.append(source)  # as it is, so that what is wrong with it is said of it
        elif others:
            sources.append(json.dumps({"mcpServers": others}))
    return replace(options, mcp_configs=sources), names


def _read_servers(source: str) -> dict[str, Any]:
    """Empty for what is not valid; whoever loads it says what is wrong."""
    try:
        text = source if source.lstrip().startswith("{") else Path(source).read_text(encoding="utf-8")
        content: Any = json.loads(text)
    except (OSError, ValueError, RecursionError):
        return {}
    match content:
        case {"mcpServers": dict(servers)}:  # pyright: ignore[reportUnknownVariableType]
            return cast(dict[str, Any], servers)
        case _:
            return {}


def _is_of_host(entry: object) -> bool:
    match entry:
        case {"type": "sdk"}:
            return True
        case _:
            return False


def agents_from(given: object) -> tuple[AgentKind, ...]:
    """Kinds of agents in the form of `--agents` and of `initialize`. Raises `CannotDo`."""
    from ..compat.claude_agent_sdk.errors import NotBuilt
    from ..compat.claude_agent_sdk.options import AgentDefinition
    from ..compat.claude_agent_sdk.translating import agent_kind_of

    kinds: list[AgentKind] = []
    for name, said in _object("agents", given).items():
        fields = _object(f"agents.{name}", said)
        if unknown := fields.keys() - AgentDefinition.__dataclass_fields__.keys():
            raise CannotDo(f"`agents.{name}.{min(unknown)}` is not supported by this version.")
        if not all(isinstance(fields.get(part), str) for part in ("description", "prompt")):
            raise CannotDo(f"`agents.{name}` needs a `description` and a `prompt`.")
        try:
            kinds.append(agent_kind_of(name, AgentDefinition(**fields)))
        except (NotBuilt, ValueError) as error:
            raise CannotDo(str(error)) from None
    return tuple(kinds)


def _hooks(given: Mapping[str, Any], host: HostHooks) -> Iterator[Hook]:
    for event, matchers in given.items():
        for matcher in _list(f"hooks.{event}", matchers or []):
            said = _object(f"hooks.{event}", matcher)
            seconds, on_failure = _seconds(f"hooks.{event}.timeout", said.get("timeout")), said.get("onFailure")
            for id in _texts(f"hooks.{event}.hookCallbackIds", said.get("hookCallbackIds")):
                try:
                    yield hook(
                        event,
                        host.callback(id),
                        match=str(said.get("matcher") or ""),
                        seconds=seconds,
                        fails_closed=None if on_failure is None else on_failure != "continue",
                        name=id,
                    )
                except ValueError as error:
                    raise CannotDo(f"`hooks.{event}`: {error}") from None


def _prompt_text(value: object, options: Options) -> dict[str, Any]:
    texts = [value] if isinstance(value, str) else _texts("systemPrompt", value)
    return {"system_prompt": "\n\n".join(texts)}


def _plugins(value: object, options: Options) -> dict[str, Any]:
    paths = [_object("plugins", one).get("path") for one in _list("plugins", value)]
    return {"plugins": (*options.plugins, *_texts("plugins", paths))}


def _seconds(name: str, value: object) -> float:
    if value is None:
        return DEFAULT_SECONDS
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < float("inf"):
        raise CannotDo(f"`{name}` must be a number of seconds above 0.")
    return float(value)


def _text(name: str, value: object) -> str:
    if not isinstance(value, str):
        raise CannotDo(f"`{name}` must be a text.")
    return value


def _list(name: str, value: object) -> list[Any]:
    if not isinstance(value, list):
        raise CannotDo(f"`{name}` must be a list.")
    return cast(list[Any], value)


def _texts(name: str, value: object) -> list[str]:
    texts = _list(name, value)
    if not all(isinstance(one, str) for one in texts):
        raise CannotDo(f"`{name}` must be a list of texts.")
    return texts


def _object(name: str, value: object) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise CannotDo(f"`{name}` must be an object.")
    return cast(Mapping[str, Any], value)


_Reader = Callable[[Any, Options], dict[str, Any]]
_READERS: Final[Mapping[str, _Reader]] = {
    "systemPrompt": _prompt_text,
    "appendSystemPrompt": lambda value, _: {"append_system_prompt": _text("appendSystemPrompt", value)},
    "jsonSchema": lambda value, _: {"output_schema": dict(_object("jsonSchema", value))},
    "agents": lambda value, options: {"agents": (*options.agents, *agents_from(value))},
    "skills": lambda value, _: {"skills": tuple(_texts("skills", value))},
    "forwardSubagentText": lambda value, _: {"agent_messages": "all" if value is True else "calls"},
    "plugins": _plugins,
    "hooks": lambda value, _: {},
    "sdkMcpServers": lambda value, _: {},
}
