"""Hooks from settings, made ready to run.

One that cannot be run is an error where it could have forbidden something,
and a warning where it could not.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Iterable, Mapping
from importlib.machinery import PathFinder
from typing import Any, Final, TypeAlias

from ..core.values import named_value
from ..settings.layers import SourcedHook
from ..settings.levels import Level
from .event_names import AGENT_SECONDS, MOMENTS, NEVER_TOLD, PROMPT_GATES, PROMPT_SECONDS, TOOL_EVENTS, Moment
from .hook import AgentPrompt, Condition, Function, Hook, HookBook, ModelPrompt, Program, ServerTool, Service, Work
from .hook_matching import BadMatcher, matcher

MakeService: TypeAlias = Callable[[Mapping[str, Any]], Service]
"""Makes a hook from its entry in a file. Raises `HookError`."""

SESSION_END_SECONDS: Final = 60.0
"""The longest that the end of a session waits for its hooks, whatever their timeouts."""
_LONGEST_NAME: Final = 80
_GUARDS: Final = frozenset({"python", "prompt", "agent", "mcp_tool"})
"""Types whose failure refuses at a gate, unless the hook says otherwise. Others fail open, as users know them."""


class HookError(ValueError):
    """A hook that cannot be run. The message says why and what to do."""


@named_value
class Loading:
    """What is needed to make hooks."""

    workspace: str
    condition: Callable[[str], Condition]
    """What an `if` means. Raises `ValueError` for a rule that cannot be read."""
    services: Mapping[str, MakeService]
    """Further kinds of hooks, by type."""
    only_managed_change_input: bool = False
    once_counts: bool = False
    """Whether a hook may say that it runs once in a session, as those of skills may."""


@named_value
class LoadedHooks:
    book: HookBook
    warnings: tuple[str, ...] = ()


def load_hooks(found: Iterable[SourcedHook], using: Loading) -> LoadedHooks:
    """Raises `HookError` for a hook that could forbid something and cannot be run."""
    hooks: list[Hook] = []
    warnings: list[str] = []
    for one in found:
        try:
            hooks.append(_hook(one, using))
        except HookError as error:
            words = f"{one.source}: the hook for `{one.event}` cannot be run: {error}"
            if one.event in PROMPT_GATES:
                raise HookError(f"{words} Continuing without it could allow more.") from None
            warnings.append(words)
    return LoadedHooks(book=HookBook(hooks), warnings=tuple(warnings))


def _hook(found: SourcedHook, using: Loading) -> Hook:
    said, event = found.hook, found.event
    moment = MOMENTS.get(event)
    if moment is None:
        known = event in NEVER_TOLD
        raise HookError("this version never reports that event." if known else "the event does not exist.")
    kind = said["type"]
    if kind not in moment.types:
        raise HookError(f"hooks of the type {kind} are not run for this event.")
    try:
        matches = matcher(found.matcher, event)
    except BadMatcher as error:
        raise HookError(f"its matcher {error}.") from None
    return Hook(
        event=event,
        name=_name(said),
        origin=str(found.source),
        matches=matches,
        condition=_condition(said.get("if"), event, using),
        work=_work(said, using),
        seconds=_seconds(said, event, moment),
        fails_closed=said.get("failClosed", kind in _GUARDS and event in PROMPT_GATES),
        may_change_input=found.source.level is Level.MANAGED or not using.only_managed_change_input,
        beside=bool(said.get("async") or said.get("asyncRewake")),
        rewakes=bool(said.get("asyncRewake")),
        once=using.once_counts and bool(said.get("once")),
    )


def _work(said: Mapping[str, Any], using: Loading) -> Work:
    match said["type"]:
        case "command":
            return _program(said)
        case "python":
            return Function.of(_import_function(said["function"], using.workspace))
        case "prompt":
            return ModelPrompt(said["prompt"], said.get("model", ""), said.get("continueOnBlock", False))
        case "agent":
            return AgentPrompt(said["prompt"], said.get("model", ""))
        case "mcp_tool":
            return ServerTool(said["server"], said["tool"], json.dumps(said.get("input", {}), sort_keys=True))
        case kind:
            make = using.services.get(kind)
            if make is None:
                raise HookError(f"hooks of the type {kind} are not supported here.")
            return make(said)


def _program(said: Mapping[str, Any]) -> Program:
    shell = said.get("shell", "sh")
    if shell == "powershell":
        raise HookError("PowerShell is not available. Give a command for sh or bash.")
    arguments = said.get("args")
    if "\0" in said["command"]:
        raise HookError("its command contains a NUL character.")
    return Program(said["command"], None if arguments is None else tuple(arguments), shell)


def _seconds(said: Mapping[str, Any], event: str, moment: Moment) -> float:
    usual = {"prompt": PROMPT_SECONDS, "agent": AGENT_SECONDS}.get(said["type"], moment.seconds)
    seconds = float(said.get("timeout", usual))
    return min(seconds, SESSION_END_SECONDS) if event == "SessionEnd" else seconds


def _condition(rule: str | None, event: str, using: Loading) -> Condition | None:
    if rule is None:
        return None
    if event not in TOOL_EVENTS:
        raise HookError("it has an `if`, which only events about a tool can meet, so it would never run.")
    try:
        return using.condition(rule)
    except ValueError:
        return None  # a condition that is not understood must not keep a guard from its work


def _name(said: Mapping[str, Any]) -> str:
    what = next((said[key] for key in ("command", "function", "url", "tool", "prompt") if key in said), said["type"])
    name = " ".join([*said.get("server", "").split(), *str(what).split(), *said.get("args", ())])
    return name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 1]}…"


def _import_function(path: str, workspace: str) -> Callable[[Any], Any]:
    """The function, of an installed module.

    A module inside the workspace is not accepted: whoever can write
    there could then decide what runs inside this process.
    """
    module, _, name = path.partition(":")
    top = module.partition(".")[0]
    try:
        usual, here = PathFinder.find_spec(top), PathFinder.find_spec(top, [workspace])
        if usual is not None and here is not None and usual.origin == here.origin:
            raise HookError(f"the module {top} is inside the workspace. Install it outside.")
        value: Any = importlib.import_module(module)
        for part in name.split("."):
            value = getattr(value, part)
    except HookError:
        raise
    except Exception as error:  # importing runs somebody else's code
        raise HookError(f"{path} cannot be loaded: {type(error).__name__}: {error}.") from None
    if not callable(value):
        raise HookError(f"{path} is not a function.")
    return value
