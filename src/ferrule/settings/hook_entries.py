"""Hooks as a file defines them: by event, or as the older flat list."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, TypeAlias, cast

from pydantic import ConfigDict, Discriminator, Field, RootModel, Tag

from .fields import SAID, ClosedObject, Given, Items, Named, OpenObject, RuleText, Seconds

HookEvent: TypeAlias = Literal[
    "PreToolUse",
    "PostToolUse",
    "PostToolUseFailure",
    "PostToolBatch",
    "PermissionRequest",
    "PermissionDenied",
    "UserPromptSubmit",
    "UserPromptExpansion",
    "MessageDisplay",
    "SessionStart",
    "SessionEnd",
    "Setup",
    "InstructionsLoaded",
    "Notification",
    "Stop",
    "StopFailure",
    "SubagentStart",
    "SubagentStop",
    "TaskCreated",
    "TaskCompleted",
    "TeammateIdle",
    "ConfigChange",
    "CwdChanged",
    "DirectoryAdded",
    "FileChanged",
    "WorktreeCreate",
    "WorktreeRemove",
    "PreCompact",
    "PostCompact",
    "Elicitation",
    "ElicitationResult",
]


class HookEntry(ClosedObject):
    """What every hook may carry."""

    condition: Given[RuleText] = Field(
        default=None, alias="if", description="One permission rule; the hook runs only for calls that it matches."
    )
    timeout: Given[Seconds] = Field(default=None, description="Seconds until the hook is given up.")
    status_message: Given[str] = None
    once: Given[bool] = Field(default=None, description="Run once in a session. Applies only to the hooks of a skill.")
    fail_closed: Given[bool] = Field(
        default=None, description="Whether a hook that fails, times out or gives an invalid answer refuses the call."
    )


class CommandHook(HookEntry):
    type: Literal["command"]
    command: Named
    args: Given[Items[str]] = Field(default=None, description="Arguments; with them the command runs without a shell.")
    background: Given[bool] = Field(
        default=None, alias="async", description="Run in the background, without deciding anything."
    )
    async_rewake: Given[bool] = Field(default=None, description="Run in the background; exit code 2 wakes the model.")
    shell: Given[Literal["bash", "powershell"]] = None


class PythonHook(HookEntry):
    type: Literal["python"]
    function: Annotated[str, Field(pattern=r"^[A-Za-z_][\w.]*:[A-Za-z_][\w.]*$")] = Field(
        description="The function as `module:name`, in a module that is installed alongside Ferrule."
    )


class HttpHook(HookEntry):
    type: Literal["http"]
    url: Named
    headers: Given[Mapping[str, str]] = None
    allowed_env_vars: Given[Items[Named]] = Field(default=None, description="Variables that the headers may hold.")


class McpToolHook(HookEntry):
    type: Literal["mcp_tool"]
    server: Named
    tool: Named
    input: Given[Mapping[str, Any]] = None


class PromptHook(HookEntry):
    type: Literal["prompt"]
    prompt: Named
    model: Given[str] = None
    continue_on_block: Given[bool] = None


class AgentHook(HookEntry):
    type: Literal["agent"]
    prompt: Named
    model: Given[str] = None


_HOOK_TYPES: Final = ("command", "python", "http", "mcp_tool", "prompt", "agent")


def _hook_tag(value: Any) -> str | None:
    if not isinstance(value, dict):
        return "<command>"  # any of them says that an object was expected
    kind = cast(dict[str, Any], value).get("type")
    return f"<{kind}>" if kind in _HOOK_TYPES else None


AnyHook: TypeAlias = Annotated[
    Annotated[CommandHook, Tag("<command>")]
    | Annotated[PythonHook, Tag("<python>")]
    | Annotated[HttpHook, Tag("<http>")]
    | Annotated[McpToolHook, Tag("<mcp_tool>")]
    | Annotated[PromptHook, Tag("<prompt>")]
    | Annotated[AgentHook, Tag("<agent>")],
    Discriminator(
        _hook_tag,
        custom_error_type=SAID,
        custom_error_message="{words}",
        custom_error_context={"words": f"`type` must be one of {', '.join(_HOOK_TYPES)}."},
    ),
]


class HookGroup(ClosedObject):
    """Hooks that run together where the matcher matches."""

    matcher: Given[str] = Field(default=None, description='Names, such as "Edit|Write", or a regular expression.')
    hooks: Items[AnyHook]


class FlatHook(ClosedObject):
    """A hook of the older list form: its event beside its command."""

    event: HookEvent
    command: Given[str] = None
    timeout_sec: Given[Annotated[int, Field(ge=1)]] = Field(default=None, alias="timeout_sec")
    tool_matcher: Given[str] = Field(default=None, alias="tool_matcher")


HooksByEvent: TypeAlias = Mapping[HookEvent, Items[HookGroup]]


def _form_tag(value: Any) -> str:
    return "<list>" if isinstance(value, list | tuple) else "<object>"


Hooks: TypeAlias = Annotated[
    Annotated[HooksByEvent, Tag("<object>")] | Annotated[Items[FlatHook], Tag("<list>")], Discriminator(_form_tag)
]


class DescribedHooks(OpenObject):
    """Hooks in an object of their own, as plugins define them."""

    description: Given[str] = None
    hooks: Hooks


class HooksFile(RootModel[Any]):
    """A hooks.json: the older flat list, or an object with `hooks`."""

    model_config = ConfigDict(strict=True, frozen=True, defer_build=True)

    root: Annotated[
        Annotated[DescribedHooks, Tag("<object>")] | Annotated[Items[FlatHook], Tag("<list>")],
        Discriminator(_form_tag),
    ]


HOOK_TAGS: Final = frozenset({"<object>", "<list>", *(f"<{kind}>" for kind in _HOOK_TYPES)})
