"""A hook as a value: when it is run, what is run, and what its failure means."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any, Final, TypeAlias

from ..core.ports import Proposal
from ..core.values import named_value, plain_value
from .event_names import MOMENTS, NEVER_TOLD, PROMPT_GATES
from .hook_matching import Matches, matcher

Payload: TypeAlias = Mapping[str, Any]
"""What a hook is given, as JSON."""
Called: TypeAlias = Callable[[Payload], Any]
"""A function that is a hook. It returns the JSON of an answer or nothing, directly or as an awaitable."""
Condition: TypeAlias = Callable[[Proposal], bool]


@plain_value
class Program:
    """A command for the shell; with arguments, a program without one."""

    command: str
    arguments: tuple[str, ...] | None = None
    shell: str = "sh"


@plain_value
class Function:
    call: Called
    waits: bool
    """Whether it gives an awaitable."""

    @classmethod
    def of(cls, call: Called) -> Function:
        own = type(call).__call__  # of an object that is called like a function
        return cls(call, inspect.iscoroutinefunction(call) or inspect.iscoroutinefunction(own))


@plain_value
class Service:
    """Anything else that answers by itself, such as a URL."""

    key: str
    """Equal for two that would ask the same."""
    ask: Callable[[Payload], Awaitable[str]] = field(compare=False)
    """Returns the text of an answer. Raises `ServiceFailed`."""


class ServiceFailed(Exception):
    """It could not answer. The message says why."""


@plain_value
class ModelPrompt:
    """A question about the event to a small model."""

    prompt: str
    model: str = ""
    """Empty for the session's model for small questions."""
    goes_on: bool = False
    """Whether a no after a call is passed to the session's model instead of ending the turn."""


@plain_value
class AgentPrompt:
    """A question about the event to an agent that may look around before it answers."""

    prompt: str
    model: str = ""


@plain_value
class ServerTool:
    """A tool of an MCP server, whose text is the answer."""

    server: str
    tool: str
    input: str = "{}"
    """The arguments as JSON; `${...}` in a string is replaced by a part of the event."""


Asked: TypeAlias = ModelPrompt | AgentPrompt | ServerTool
"""A question that only the session can ask. The hook holds the text, the session knows whom to ask."""
Answering: TypeAlias = Callable[[Asked, Payload], Awaitable[str]]
"""Returns the text of an answer. Raises `ServiceFailed`."""

Work: TypeAlias = Program | Function | Service | Asked


@named_value
class Hook:
    event: str
    name: str
    """Its display name: its command, its URL, its function."""
    matches: Matches
    work: Work
    seconds: float
    origin: str = ""
    """The file and line that define it."""
    condition: Condition | None = None
    fails_closed: bool = False
    may_change_input: bool = True
    beside: bool = False
    """Whether it runs in the background and decides nothing."""
    rewakes: bool = False
    """Whether exit code 2 of a background hook is passed to the model."""
    once: bool = False
    """Whether it runs only once."""

    @property
    def label(self) -> str:
        return f"{self.event} hook `{self.name}`"


class HookBook:
    """All hooks by event, in order of precedence."""

    def __init__(self, hooks: Iterable[Hook] = ()) -> None:
        by_event = dict[str, list[Hook]]()
        for hook in hooks:
            by_event.setdefault(hook.event, []).append(hook)
        self._by_event = {event: tuple(hooks) for event, hooks in by_event.items()}

    def __bool__(self) -> bool:
        return bool(self._by_event)

    def of(self, event: str) -> tuple[Hook, ...]:
        return self._by_event.get(event, ())

    @property
    def all(self) -> tuple[Hook, ...]:
        return tuple(hook for hooks in self._by_event.values() for hook in hooks)

    def join(self, more: Iterable[Hook]) -> HookBook:
        return HookBook((*more, *self.all))

    def without_agents(self) -> HookBook:
        """For the calls of an agent that is itself a hook, which would otherwise each start another such agent."""
        return HookBook(hook for hook in self.all if not isinstance(hook.work, AgentPrompt))

    def choose(self, event: str, subject: str, proposal: Proposal | None = None) -> tuple[Hook, ...]:
        """Those that are for this moment, and of those that would do the same only the first."""
        hooks = self._by_event.get(event)
        if not hooks:
            return ()
        found = dict[object, Hook]()
        for hook in hooks:
            if not hook.matches(subject):
                continue
            if hook.condition is not None and (proposal is None or not hook.condition(proposal)):
                continue
            found.setdefault((hook.work, hook.fails_closed, hook.beside), hook)
        return tuple(found.values())


NO_HOOKS: Final = HookBook()
Books: TypeAlias = Callable[[str, Sequence[str] | None], HookBook]
"""The hooks of a moment, for an agent by its name and inside of these calls; `None` where it is not about a call."""


def hook(
    event: str,
    call: Called,
    *,
    match: str = "",
    seconds: float | None = None,
    fails_closed: bool | None = None,
    name: str = "",
) -> Hook:
    """A Python function as a hook, for `open_session(hooks=...)`.

    It is given the event as a mapping and gives the JSON of an answer as a
    mapping, or `None`. A plain function runs in the event loop and must be
    quick; one that is `async` has a time limit. On events that can refuse
    something, a function that fails has refused, unless `fails_closed` is false.

    >>> def guard(event):
    ...     if "rm -rf" in event["tool_input"].get("command", ""):
    ...         return {"decision": "block", "reason": "nothing is removed here"}
    >>> hook("PreToolUse", guard, match="Bash").label
    'PreToolUse hook `guard`'
    """
    if event in NEVER_TOLD:
        raise ValueError(f"A hook for {event} would never run: this version never reports that event.")
    if event not in MOMENTS:
        raise ValueError(f"No event is named {event}. Available: {', '.join(MOMENTS)}.")
    return Hook(
        event=event,
        name=name or getattr(call, "__qualname__", type(call).__name__),
        matches=matcher(match, event),
        work=Function.of(call),
        seconds=MOMENTS[event].seconds if seconds is None else seconds,
        fails_closed=event in PROMPT_GATES if fails_closed is None else fails_closed,
        origin="the program itself",
    )
