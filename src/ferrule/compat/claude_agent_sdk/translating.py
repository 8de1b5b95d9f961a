"""From `ClaudeAgentOptions` to our own options. What cannot be honoured is refused, never dropped."""

from __future__ import annotations

import logging
import reprlib
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, cast

from ...agents.agent_kinds import AgentKind, own_servers, server_names
from ...sdk.messages import DeferredToolUse
from ...sdk.options import Options
from .errors import CLIConnectionError, NotBuilt
from .hooks import HookMatcher, hooks_of
from .options import AgentDefinition, ClaudeAgentOptions, SdkPluginConfig
from .permissions import CallbackPerson


def _is_list(value: Any) -> bool:
    return isinstance(value, list | tuple)


_FORMS: Final[Mapping[str, tuple[Callable[[Any], bool], str]]] = {
    "allowed_tools": (_is_list, "a list of rules"),
    "disallowed_tools": (_is_list, "a list of rules"),
    "betas": (_is_list, "a list of names"),
    "plugins": (_is_list, "a list"),
    "tools": (lambda value: _is_list(value) or isinstance(value, dict), "a list of names, or the preset"),
    "skills": (lambda value: _is_list(value) or value == "all", 'a list of names, or "all"'),
    "hooks": (lambda value: isinstance(value, Mapping), "a mapping of events to lists of HookMatcher"),
    "agents": (lambda value: isinstance(value, Mapping), "a mapping of names to AgentDefinition"),
    "can_use_tool": (callable, "a function"),
    "stderr": (callable, "a function"),
}


def faults_in(options: ClaudeAgentOptions) -> Iterator[str]:
    """What is wrong, as text, one option at a time."""
    for name, (fits, form) in _FORMS.items():
        value: Any = getattr(options, name)
        if value is not None and not fits(value):
            yield f"`{name}` must be {form}, not {reprlib.repr(value)}."
    for name, agent in cast(Mapping[str, Any], options.agents or {}).items():
        if not isinstance(agent, AgentDefinition):
            yield f"`agents.{name}` must be an AgentDefinition, not {reprlib.repr(agent)}."
    for event, matchers in cast(Mapping[str, Any], options.hooks or {}).items():
        if not _is_list(matchers) or not all(isinstance(one, HookMatcher) for one in matchers):
            yield f"`hooks.{event}` must be a list of HookMatcher, not {reprlib.repr(matchers)}."


log = logging.getLogger(__name__)

DEBUG_FLAGS: Final = frozenset({"debug-to-stderr", "debug"})
REPLAY_FLAG: Final = "replay-user-messages"
ADAPTIVE_TOKENS: Final = 31_999
"""For a model that needs a number; others decide by themselves."""
_NARROWING: Final = frozenset({"plan", "dontAsk"})


class CanUseToolShadowedWarning(UserWarning):
    """`can_use_tool` is given, and some calls are allowed before it is asked."""


def translate_options(
    options: ClaudeAgentOptions,
    person: CallbackPerson | None,
    defer: Callable[[DeferredToolUse], None] = lambda call: None,
) -> Options:
    """`defer` gets the calls that a hook defers.

    Raises `NotBuilt`, `ValueError` for options that contradict each other, `CLIConnectionError` for a bad file.
    """
    for fault in faults_in(options):
        raise TypeError(fault)
    _refuse_what_is_not_built(options)
    if options.can_use_tool and options.permission_prompt_tool_name:
        raise ValueError("`can_use_tool` and `permission_prompt_tool_name` answer the same questions. Give one.")
    _warn_of_shadows(options)
    base, append = _system_prompt(options)
    return Options(
        model=options.model_provider or options.model,
        fallback_model=options.fallback_model,
        cwd=options.cwd,
        added_directories=options.add_dirs,
        system_prompt=base,
        append_system_prompt=append,
        allow=_allow_rules(options),
        deny=(*options.disallowed_tools, *(("Skill",) if options.skills == [] else ())),
        mode=options.permission_mode,
        person=person,
        approver_answers=person is not None,
        hooks=tuple(hooks_of(options.hooks or {}, defer)),
        builtin_tools=None if isinstance(options.tools, dict) else options.tools,
        mcp_servers=cast(Any, options.mcp_servers),
        strict_mcp_config=options.strict_mcp_config,
        agents=tuple(agent_kind_of(name, one) for name, one in (options.agents or {}).items()),
        skills=options.skills if isinstance(options.skills, list) else None,
        plugins=tuple(_plugin(one) for one in options.plugins),
        setting_sources=options.setting_sources,
        settings=options.settings,
        trust=options.trust_folder,
        sandbox=cast(Any, options.sandbox),
        env={**({"ANTHROPIC_BETAS": ",".join(options.betas)} if options.betas else {}), **options.env},
        max_turns=options.max_turns,
        max_budget_usd=options.max_budget_usd,
        thinking_tokens=_thinking(options),
        effort=options.effort,
        output_schema=_schema(options),
        resume=options.resume,
        continue_last=options.continue_conversation,
        fork=options.fork_session,
        fork_at=options.resume_session_at,
        session_id=options.session_id,
        checkpoints=options.enable_file_checkpointing,
        session_store=options.session_store,
        store_flush=options.session_store_flush,
        load_within=options.load_timeout_ms / 1000,
        prompt_messages=REPLAY_FLAG in options.extra_args,
        agent_messages="all" if options.forward_subagent_text else "calls",
        partial_messages=options.include_partial_messages,
        hook_messages=options.include_hook_events,
    )


def _refuse_what_is_not_built(options: ClaudeAgentOptions) -> None:
    for name, why in _not_built(options):
        raise NotBuilt(f"`{name}`: {why} Leave it out.")


def _not_built(options: ClaudeAgentOptions) -> Iterator[tuple[str, str]]:
    wanted = {
        "resume_drops_turn": options.resume_drops_turn,
        "task_budget": options.task_budget,
    }
    for name, value in wanted.items():
        if value:
            yield name, "not supported by this version."
    if options.permission_prompt_tool_name and not options.can_use_tool:
        yield "permission_prompt_tool_name", "a program is asked through `can_use_tool`."
    if options.resume_session_at and not options.fork_session:
        yield "resume_session_at", "a transcript is never shortened, so it needs `fork_session`."
    for flag in options.extra_args.keys() - DEBUG_FLAGS - {REPLAY_FLAG}:
        yield "extra_args", f"no command line is used that could take --{flag}."


def _warn_of_shadows(options: ClaudeAgentOptions) -> None:
    if options.can_use_tool is None:
        return
    if options.permission_mode == "bypassPermissions":
        words = "permission_mode bypassPermissions allows every call before can_use_tool is asked."
    elif shadowed := list(dict.fromkeys(filter(None, map(_whole, _allow_rules(options))))):
        words = f"can_use_tool is not asked about {', '.join(shadowed)}: allowed_tools allows every call of it."
    else:
        return
    warnings.warn(f"{words} A PreToolUse hook sees every call.", CanUseToolShadowedWarning, stacklevel=4)


def _allow_rules(options: ClaudeAgentOptions) -> list[str]:
    chosen = ["Skill"] if options.skills == "all" else [f"Skill({name})" for name in options.skills or ()]
    return [*options.allowed_tools, *chosen]


def _whole(rule: str) -> str | None:
    """The tool of which a rule allows every call.

    >>> _whole("Read"), _whole("Read(*)"), _whole("Bash(ls *)")
    ('Read', 'Read', None)
    """
    name, bracket, inside = rule.strip().partition("(")
    return name if name and (not bracket or inside in (")", "*)")) else None


def _system_prompt(options: ClaudeAgentOptions) -> tuple[str | None, str | None]:
    """What replaces the built-in instructions, and what is appended to them. Without either, none are used."""
    match options.system_prompt:
        case None:
            return "", None
        case str(text):
            return text, None
        case {"type": "file", "path": path}:
            try:
                return Path(path).read_text(encoding="utf-8"), None
            except (OSError, UnicodeDecodeError) as error:
                raise CLIConnectionError(f"The system prompt {path} cannot be read: {error}.") from None
        case {"type": "preset"} as preset:
            if preset.get("exclude_dynamic_sections"):
                raise NotBuilt("`exclude_dynamic_sections`: the prompt is always complete. Leave it out.")
            return None, preset.get("append")
        case other:
            raise TypeError(f"`system_prompt` must be a string, a preset or a file, not {other!r}.")


def _thinking(options: ClaudeAgentOptions) -> int | None:
    match options.thinking:
        case {"type": "enabled", "budget_tokens": int(tokens)}:
            return tokens
        case {"type": "adaptive"}:
            return ADAPTIVE_TOKENS
        case {"type": "disabled"}:
            return 0
        case None:
            return options.max_thinking_tokens
        case other:
            raise ValueError(f"`thinking` must be of the type adaptive, enabled or disabled, not {other}.")


def _plugin(given: SdkPluginConfig) -> str:
    match given:
        case {"type": "local", "path": path}:
            return path
        case _:
            raise ValueError('an entry of `plugins` must be {"type": "local", "path": "..."}.')


def _schema(options: ClaudeAgentOptions) -> dict[str, Any] | None:
    match options.output_format:
        case None:
            return None
        case {"type": "json_schema", "schema": dict(schema)}:  # pyright: ignore[reportUnknownVariableType]
            return cast(dict[str, Any], schema)
        case _:
            raise ValueError('`output_format` must be {"type": "json_schema", "schema": {...}}.')


def agent_kind_of(name: str, given: AgentDefinition) -> AgentKind:
    """Raises `NotBuilt` for what agents cannot have here."""
    if isinstance(given.effort, int):
        raise NotBuilt(f"`agents.{name}.effort`: a number is not supported for agents. Name a level, such as `high`.")
    if given.permissionMode not in (None, "default", *_NARROWING):
        log.warning("agents.%s: an agent cannot do more than its session; permissionMode is ignored", name)
    return AgentKind(
        name=name,
        description=given.description,
        prompt=given.prompt,
        tools=None if given.tools is None else tuple(tool.partition("(")[0] for tool in given.tools),
        without=tuple(tool.partition("(")[0] for tool in given.disallowedTools or ()),
        model=given.model or "",
        mode=given.permissionMode if given.permissionMode in _NARROWING else "",
        max_turns=given.maxTurns,
        skills=tuple(given.skills or ()),
        effort=given.effort,
        initial_prompt=given.initialPrompt or "",
        servers=server_names(given.mcpServers),
        own_servers=own_servers(given.mcpServers),
        memory=given.memory or "",
        background=given.background or False,
    )
