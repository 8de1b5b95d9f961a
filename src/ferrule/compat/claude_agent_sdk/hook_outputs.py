"""What hooks may answer, event by event, for annotations: at run time they are plain dicts."""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypeAlias, TypedDict

HookEffort: TypeAlias = dict[str, Any]
BackgroundTaskSummary: TypeAlias = dict[str, Any]
SessionCronSummary: TypeAlias = dict[str, Any]


class PreToolUseHookSpecificOutput(TypedDict):
    hookEventName: Literal["PreToolUse"]
    permissionDecision: NotRequired[Literal["allow", "deny", "ask", "defer"]]
    permissionDecisionReason: NotRequired[str]
    updatedInput: NotRequired[dict[str, Any]]
    additionalContext: NotRequired[str]


class PostToolUseHookSpecificOutput(TypedDict):
    hookEventName: Literal["PostToolUse"]
    additionalContext: NotRequired[str]
    updatedToolOutput: NotRequired[Any]
    updatedMCPToolOutput: NotRequired[Any]


class PermissionRequestHookSpecificOutput(TypedDict):
    hookEventName: Literal["PermissionRequest"]
    decision: dict[str, Any]


class EventHookSpecificOutput(TypedDict):
    """For events whose hooks may only add context."""

    hookEventName: str
    additionalContext: NotRequired[str]


PostToolUseFailureHookSpecificOutput: TypeAlias = EventHookSpecificOutput
UserPromptSubmitHookSpecificOutput: TypeAlias = EventHookSpecificOutput
UserPromptExpansionHookSpecificOutput: TypeAlias = EventHookSpecificOutput
SessionStartHookSpecificOutput: TypeAlias = EventHookSpecificOutput
NotificationHookSpecificOutput: TypeAlias = EventHookSpecificOutput
SubagentStartHookSpecificOutput: TypeAlias = EventHookSpecificOutput
SubagentStopHookSpecificOutput: TypeAlias = EventHookSpecificOutput
StopHookSpecificOutput: TypeAlias = EventHookSpecificOutput
PostToolBatchHookSpecificOutput: TypeAlias = EventHookSpecificOutput

PermissionDeniedHookSpecificOutput: TypeAlias = dict[str, Any]
PreModelSwitchHookSpecificOutput: TypeAlias = dict[str, Any]
PostModelSwitchHookSpecificOutput: TypeAlias = dict[str, Any]
ElicitationHookSpecificOutput: TypeAlias = dict[str, Any]
ElicitationResultHookSpecificOutput: TypeAlias = dict[str, Any]
CwdChangedHookSpecificOutput: TypeAlias = dict[str, Any]
FileChangedHookSpecificOutput: TypeAlias = dict[str, Any]
WorktreeCreateHookSpecificOutput: TypeAlias = dict[str, Any]
MessageDisplayHookSpecificOutput: TypeAlias = dict[str, Any]

HookSpecificOutput: TypeAlias = (
    PreToolUseHookSpecificOutput
    | PostToolUseHookSpecificOutput
    | PermissionRequestHookSpecificOutput
    | EventHookSpecificOutput
    | dict[str, Any]
)


class AsyncHookJSONOutput(TypedDict):
    """The hook continues in the background, and decides nothing."""

    async_: Literal[True]
    asyncTimeout: NotRequired[int]


class SyncHookJSONOutput(TypedDict, total=False):
    """`continue_` is spelled so because `continue` is a Python keyword."""

    continue_: bool
    suppressOutput: bool
    stopReason: str
    decision: Literal["block"]
    systemMessage: str
    reason: str
    hookSpecificOutput: HookSpecificOutput


HookJSONOutput: TypeAlias = AsyncHookJSONOutput | SyncHookJSONOutput
