"""The events that hooks run for, as data, and those that only other programs have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ..core.values import named_value
from ..settings.forbidding import REFUSING_EVENTS

USUAL_SECONDS: Final = 600.0
PROMPT_SECONDS: Final = 30.0
"""The fields of a hook that is a prompt."""
AGENT_SECONDS: Final = 60.0

_ANY: Final = frozenset({"command", "python", "http", "mcp_tool", "prompt", "agent"})
_NO_MODEL: Final = _ANY - {"prompt", "agent"}
_AT_START: Final = frozenset({"command", "python", "mcp_tool"})


@named_value
class Moment:
    """What is special about an event."""

    matched_on: str = ""
    """The field of the input that matchers look at; empty for an event whose hooks run always."""
    blocks: bool = False
    """Whether exit code 2 blocks what is about to happen."""
    text_is_context: bool = False
    """Whether plain text on standard output is passed to the model."""
    seconds: float = USUAL_SECONDS
    types: frozenset[str] = _ANY


MOMENTS: Final[Mapping[str, Moment]] = {
    "PreToolUse": Moment(matched_on="tool_name", blocks=True),
    "PostToolUse": Moment(matched_on="tool_name", blocks=True),
    "PostToolUseFailure": Moment(matched_on="tool_name"),
    "PostToolBatch": Moment(blocks=True),
    "PermissionRequest": Moment(matched_on="tool_name"),
    "PermissionDenied": Moment(matched_on="tool_name"),
    "UserPromptSubmit": Moment(blocks=True, text_is_context=True, seconds=30.0),
    "UserPromptExpansion": Moment(matched_on="command_name", blocks=True, text_is_context=True),
    "SessionStart": Moment(matched_on="source", text_is_context=True, types=_AT_START),
    "SessionEnd": Moment(matched_on="reason", seconds=1.5, types=_NO_MODEL),
    "Notification": Moment(matched_on="notification_type", types=_NO_MODEL),
    "Stop": Moment(blocks=True),
    "SubagentStart": Moment(matched_on="agent_type", types=_NO_MODEL),
    "SubagentStop": Moment(matched_on="agent_type", blocks=True),
    "CwdChanged": Moment(types=_NO_MODEL),
    "PreCompact": Moment(matched_on="trigger", blocks=True, text_is_context=True, types=_NO_MODEL),
    "PostCompact": Moment(matched_on="trigger", types=_NO_MODEL),
}

NEVER_TOLD: Final = frozenset(
    {
        "ConfigChange",
        "DirectoryAdded",
        "Elicitation",
        "ElicitationResult",
        "FileChanged",
        "InstructionsLoaded",
        "MessageDisplay",
        "Setup",
        "StopFailure",
        "TaskCompleted",
        "TaskCreated",
        "TeammateIdle",
        "WorktreeCreate",
        "WorktreeRemove",
    }
)
"""Events of other programs that no session here reports."""

TOOL_EVENTS: Final = frozenset(
    {"PreToolUse", "PostToolUse", "PostToolUseFailure", "PermissionRequest", "PermissionDenied"}
)
"""Those about a call, to which a condition can apply."""
PROMPT_GATES: Final = REFUSING_EVENTS
"""Events where continuing without a hook would allow more.

A function, a model, an agent or a server's tool that fails there has refused, unless it is said to fail open.
"""
