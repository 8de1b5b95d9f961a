"""Every event that programs give hooks for happens, and tells what it should."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NotRequired, get_origin, get_type_hints

from ferrule.compat.claude_agent_sdk import (
    ClaudeAgentOptions,
    ClaudeSDKClient,
    HookMatcher,
    PermissionResultDeny,
    query,
    types,
)
from ferrule.core.calls import ToolCall
from ferrule.providers.scripted import ScriptedModel, says

from ..requirement import requirement
from ..sdk.scenes import read

SHAPES: Final[Mapping[str, Any]] = {
    "PreToolUse": types.PreToolUseHookInput,
    "PostToolUse": types.PostToolUseHookInput,
    "PostToolUseFailure": types.PostToolUseFailureHookInput,
    "PermissionRequest": types.PermissionRequestHookInput,
    "UserPromptSubmit": types.UserPromptSubmitHookInput,
    "Stop": types.StopHookInput,
    "SubagentStart": types.SubagentStartHookInput,
    "SubagentStop": types.SubagentStopHookInput,
    "PreCompact": types.PreCompactHookInput,
    "Notification": types.NotificationHookInput,
    "SessionStart": types.BaseHookInput,
    "SessionEnd": types.BaseHookInput,
}


class Heard:
    """Hooks for all events, and what they were told."""

    def __init__(self) -> None:
        self.inputs: dict[str, list[dict[str, Any]]] = {event: [] for event in SHAPES}

    @property
    def hooks(self) -> dict[Any, list[HookMatcher]]:
        return {event: [HookMatcher(hooks=[self._hear])] for event in SHAPES}

    async def _hear(self, input: dict[str, Any], tool_use_id: str | None, context: Any) -> dict[str, Any]:
        self.inputs[input["hook_event_name"]].append(input)
        return {}


def _options(heard: Heard, *messages: Any, **more: Any) -> ClaudeAgentOptions:
    return ClaudeAgentOptions(
        **{"model_provider": ScriptedModel(messages), "setting_sources": [], "hooks": heard.hooks, **more}
    )


async def _refuse(name: str, input: dict[str, Any], context: Any) -> PermissionResultDeny:
    return PermissionResultDeny(message="no")


def _required(shape: Any) -> set[str]:
    """The class itself knows less: its annotations are texts as yet."""
    hints = get_type_hints(shape, include_extras=True)
    return {key for key in shape.__required_keys__ if get_origin(hints[key]) is not NotRequired}


@requirement("SDK-1")
async def test_each_event_happens_with_the_keys_of_its_shape() -> None:
    heard = Heard()
    agent = {"description": "look", "prompt": "Look.", "subagent_type": "general-purpose"}
    script = (
        says("", ToolCall("1", "Glob", {"pattern": "*"}), ToolCall("2", "Read", {"file_path": "missing"})),
        says("", ToolCall("3", "Write", {"file_path": "a.txt", "content": ""})),
        says("", ToolCall("4", "Agent", agent)),
        says("", ToolCall("5", "Glob", {"pattern": "*"})),
        says("Seen."),
        says("Done."),
        says("A summary."),
    )
    async with ClaudeSDKClient(_options(heard, *script, can_use_tool=_refuse)) as client:
        await client.query("x")
        await read(client.receive_response())
        session = client._client.session  # pyright: ignore[reportPrivateUsage]
        assert session.provider is not None
        await session.compact(session.provider)

    assert [event for event, inputs in heard.inputs.items() if not inputs] == []
    for event, inputs in heard.inputs.items():
        assert _required(SHAPES[event]) <= inputs[0].keys(), event
    (started,) = heard.inputs["SubagentStart"]
    inner = [one for one in heard.inputs["PreToolUse"] if one.get("agent_id")]
    assert [(one["tool_use_id"], one["agent_id"], one["agent_type"]) for one in inner] == [
        ("5", started["agent_id"], "general-purpose")
    ]
    assert heard.inputs["SubagentStop"][0]["agent_id"] == started["agent_id"]


async def test_a_hook_may_send_an_agent_back_to_work() -> None:
    async def once_more(input: dict[str, Any], tool_use_id: str | None, context: Any) -> dict[str, Any]:
        return {} if input["stop_hook_active"] else {"decision": "block", "reason": "look closer"}

    call = ToolCall("1", "Agent", {"description": "d", "prompt": "p", "subagent_type": "general-purpose"})
    model = ScriptedModel((says("", call), says("Seen."), says("Seen twice."), says("Done.")))
    hooks: Any = {"SubagentStop": [HookMatcher(hooks=[once_more])]}
    options = ClaudeAgentOptions(model_provider=model, setting_sources=[], hooks=hooks)

    messages = await read(query(prompt="x", options=options))

    assert messages[-1].result == "Done."
    assert "Seen twice." in str(messages)
