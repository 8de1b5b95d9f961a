"""Hooks as that library has them: functions of three arguments behind matchers, by event."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NotRequired, TypeAlias, TypedDict, cast

from ...hooks.hook import Hook, Payload, hook
from ...sdk.messages import DeferredToolUse

DEFAULT_SECONDS: Final = 60.0
_DECIDING: Final = frozenset({"permissionDecision", "decision", "updatedInput"})

HookEvent: TypeAlias = Literal[
    "PreToolUse",
    "PostToolUse",
    "PostToolUseFailure",
    "UserPromptSubmit",
    "Stop",
    "SubagentStop",
    "PreCompact",
    "Notification",
    "SubagentStart",
    "PermissionRequest",
]


class HookContext(TypedDict):
    signal: Any
    """Always `None`: a hook that is not needed any more is cancelled."""


class BaseHookInput(TypedDict):
    session_id: str
    transcript_path: str
    cwd: str
    permission_mode: NotRequired[str]


class _InAgent(TypedDict, total=False):
    """Which agent makes the call; left out for the conversation itself."""

    agent_id: str
    agent_type: str


class PreToolUseHookInput(BaseHookInput, _InAgent):
    hook_event_name: Literal["PreToolUse"]
    tool_name: str
    tool_input: dict[str, Any]
    tool_use_id: str


class PostToolUseHookInput(BaseHookInput, _InAgent):
    hook_event_name: Literal["PostToolUse"]
    tool_name: str
    tool_input: dict[str, Any]
    tool_response: Any
    tool_use_id: str


class PostToolUseFailureHookInput(BaseHookInput, _InAgent):
    hook_event_name: Literal["PostToolUseFailure"]
    tool_name: str
    tool_input: dict[str, Any]
    tool_use_id: str
    error: str
    is_interrupt: NotRequired[bool]


class PermissionRequestHookInput(BaseHookInput, _InAgent):
    hook_event_name: Literal["PermissionRequest"]
    tool_name: str
    tool_input: dict[str, Any]
    permission_suggestions: NotRequired[list[Any]]


class UserPromptSubmitHookInput(BaseHookInput):
    hook_event_name: Literal["UserPromptSubmit"]
    prompt: str


class StopHookInput(BaseHookInput):
    hook_event_name: Literal["Stop"]
    stop_hook_active: bool


class SubagentStartHookInput(BaseHookInput):
    hook_event_name: Literal["SubagentStart"]
    agent_id: str
    agent_type: str


class SubagentStopHookInput(BaseHookInput):
    hook_event_name: Literal["SubagentStop"]
    stop_hook_active: bool
    agent_id: str
    agent_transcript_path: str
    agent_type: str


class PreCompactHookInput(BaseHookInput):
    hook_event_name: Literal["PreCompact"]
    trigger: Literal["manual", "auto"]
    custom_instructions: str | None


class NotificationHookInput(BaseHookInput):
    hook_event_name: Literal["Notification"]
    message: str
    title: NotRequired[str]
    notification_type: str


HookInput: TypeAlias = (
    PreToolUseHookInput
    | PostToolUseHookInput
    | PostToolUseFailureHookInput
    | PermissionRequestHookInput
    | UserPromptSubmitHookInput
    | StopHookInput
    | SubagentStartHookInput
    | SubagentStopHookInput
    | PreCompactHookInput
    | NotificationHookInput
)


HookCallback: TypeAlias = Callable[[Any, str | None, HookContext], Awaitable[Any]]
"""Returns a `HookJSONOutput`."""


@dataclass
class HookMatcher:
    matcher: str | None = None
    hooks: list[HookCallback] = field(default_factory=list[HookCallback])
    timeout: float | None = None
    """Seconds, for each of its hooks."""


def hooks_of(
    given: Mapping[Any, Sequence[HookMatcher]], defer: Callable[[DeferredToolUse], None] = lambda call: None
) -> Iterator[Hook]:
    """`defer` gets each call that one of them defers. Raises `ValueError` for an invalid event or matcher.

    One that fails, or takes too long, has refused where its event can refuse something.
    """
    for event, matchers in given.items():
        for matcher in matchers:
            for callback in matcher.hooks:
                yield hook(
                    event,
                    _wrap_callback(event, callback, defer),
                    match=matcher.matcher or "",
                    seconds=DEFAULT_SECONDS if matcher.timeout is None else matcher.timeout,
                    name=getattr(callback, "__qualname__", type(callback).__name__),
                )


def _wrap_callback(
    event: str, callback: HookCallback, defer: Callable[[DeferredToolUse], None]
) -> Callable[[Payload], Awaitable[Any]]:
    async def call(payload: Payload) -> Any:
        said = await callback(dict(payload), payload.get("tool_use_id"), {"signal": None})
        match event, said:
            case "PreToolUse", {"hookSpecificOutput": {"permissionDecision": "defer"}}:
                defer(DeferredToolUse(payload["tool_use_id"], payload["tool_name"], dict(payload["tool_input"])))
            case _:
                pass
        return _plain(event, cast(Mapping[str, Any], said)) if isinstance(said, Mapping) else said

    return call


def _plain(event: str, said: Mapping[str, Any]) -> dict[str, Any] | None:
    """With the names of the JSON form. One that continues in the background has decided nothing."""
    if said.get("async_") is True or said.get("async") is True:
        return None
    plain = {key.removesuffix("_"): value for key, value in said.items()}
    given = plain.get("hookSpecificOutput")
    special = cast(Mapping[str, Any], given if isinstance(given, Mapping) else {})
    if special and _DECIDING.isdisjoint(special):
        plain["hookSpecificOutput"] = {**special, "hookEventName": event}  # a slip here could only lose words
    return plain
