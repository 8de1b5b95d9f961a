"""Hooks as functions of three arguments, run by our own hooks."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from ferrule.compat.claude_agent_sdk import (
    ClaudeAgentOptions,
    ClaudeSDKClient,
    HookContext,
    HookEventMessage,
    HookMatcher,
    query,
)
from ferrule.core.calls import ToolCall
from ferrule.providers.scripted import ScriptedModel, says
from ferrule.testing import RecordingModel

from ..requirement import requirement
from ..sdk.scenes import of, read, results


def _touch(name: str) -> ToolCall:
    return ToolCall(name, "Bash", {"command": f"touch {name}"})


def _options(*messages: Any, **more: Any) -> ClaudeAgentOptions:
    chosen: dict[str, Any] = {"model_provider": ScriptedModel(messages), "setting_sources": [], **more}
    return ClaudeAgentOptions(**chosen)


@requirement("SDK-1")
async def test_a_hook_before_a_call_is_told_of_it_and_may_deny_it(folder: Path) -> None:
    seen: list[tuple[dict[str, Any], str | None, HookContext]] = []

    async def guard(input: dict[str, Any], tool_use_id: str | None, context: HookContext) -> dict[str, Any]:
        seen.append((input, tool_use_id, context))
        if "bad" not in input["tool_input"]["command"]:
            return {}
        decision = {"permissionDecision": "deny", "permissionDecisionReason": "that is bad"}
        return {"hookSpecificOutput": {"hookEventName": "PreToolUse", **decision}}

    options = _options(
        says("", _touch("bad"), _touch("good")),
        says("."),
        allowed_tools=["Bash"],
        hooks={"PreToolUse": [HookMatcher(matcher="Bash", hooks=[guard])]},
        include_hook_events=True,
    )
    messages = await read(query(prompt="x", options=options))

    assert [tool_use_id for _, tool_use_id, _ in seen] == ["bad", "good"]
    first, _, context = seen[0]
    assert (first["hook_event_name"], first["tool_name"], first["cwd"]) == ("PreToolUse", "Bash", str(folder))
    assert context == {"signal": None}
    assert "that is bad" in str(results(messages)[0].content)
    assert [path.name for path in folder.iterdir()] == ["good"]
    answered = [message.data for message in of(HookEventMessage, messages) if message.subtype == "hook_response"]
    assert [data["decision"] for data in answered] == ["deny", "ok"]


async def test_a_hook_before_a_call_may_allow_it_and_change_it(folder: Path) -> None:
    async def rewrite(input: dict[str, Any], tool_use_id: str | None, context: HookContext) -> dict[str, Any]:
        special = {"permissionDecision": "allow", "updatedInput": {"command": "touch other"}}
        return {"hookSpecificOutput": {"hookEventName": "PreToolUse", **special}}

    options = _options(says("", _touch("one")), says("."), hooks={"PreToolUse": [HookMatcher(hooks=[rewrite])]})
    await read(query(prompt="x", options=options))

    assert [path.name for path in folder.iterdir()] == ["other"]


async def test_what_a_hook_adds_is_told_to_the_model_whatever_event_it_names() -> None:
    async def favourite(input: dict[str, Any], tool_use_id: str | None, context: HookContext) -> dict[str, Any]:
        return {"hookSpecificOutput": {"hookEventName": "SessionStart", "additionalContext": "I like pink."}}

    model = RecordingModel(says("Pink."))
    options = _options(model_provider=model, hooks={"UserPromptSubmit": [HookMatcher(hooks=[favourite])]})
    await read(query(prompt="Which colour?", options=options))

    assert "I like pink." in str(model.requests[0][1][0])


async def test_a_hook_after_a_call_may_stop_everything() -> None:
    async def stop(input: dict[str, Any], tool_use_id: str | None, context: HookContext) -> dict[str, Any]:
        assert input["tool_response"]["stdout"].strip() == "critical"
        return {"continue_": False, "stopReason": "enough"}

    call = ToolCall("1", "Bash", {"command": "echo critical"})
    model = RecordingModel(says("", call), says("never"))
    options = _options(
        model_provider=model, allowed_tools=["Bash"], hooks={"PostToolUse": [HookMatcher("Bash", [stop])]}
    )
    await read(query(prompt="x", options=options))

    assert len(model.requests) == 1


async def test_one_that_goes_on_beside_decides_nothing(folder: Path) -> None:
    async def later(input: dict[str, Any], tool_use_id: str | None, context: HookContext) -> dict[str, Any]:
        return {"async_": True, "asyncTimeout": 1000}

    options = _options(
        says("", _touch("one")), says("."), allowed_tools=["Bash"], hooks={"PreToolUse": [HookMatcher(hooks=[later])]}
    )
    await read(query(prompt="x", options=options))

    assert (folder / "one").exists()


async def _raises(input: dict[str, Any], tool_use_id: str | None, context: HookContext) -> dict[str, Any]:
    raise ValueError("broken")


async def _hangs(input: dict[str, Any], tool_use_id: str | None, context: HookContext) -> dict[str, Any]:
    await asyncio.Event().wait()
    return {}


@pytest.mark.parametrize("callback", [_raises, _hangs])
async def test_one_that_fails_before_a_call_has_refused_it(folder: Path, callback: Any) -> None:
    matcher = HookMatcher(hooks=[callback], timeout=0.05)
    options = _options(says("", _touch("one")), says("."), allowed_tools=["Bash"], hooks={"PreToolUse": [matcher]})
    messages = await read(query(prompt="x", options=options))

    assert results(messages)[0].is_error
    assert not (folder / "one").exists()


async def test_a_hook_at_the_end_may_send_the_model_back() -> None:
    async def again(input: dict[str, Any], tool_use_id: str | None, context: HookContext) -> dict[str, Any]:
        return {} if input["stop_hook_active"] else {"decision": "block", "reason": "run the tests"}

    model = RecordingModel(says("Done."), says("Tested."))
    options = _options(model_provider=model, hooks={"Stop": [HookMatcher(hooks=[again])]})
    messages = await read(query(prompt="x", options=options))

    assert messages[-1].result == "Tested."
    assert "run the tests" in str(model.requests[1][1][-1])


async def test_an_event_that_there_is_not_is_refused() -> None:
    with pytest.raises(ValueError, match="No event is named Sometimes"):
        await ClaudeSDKClient(_options(hooks={"Sometimes": [HookMatcher(hooks=[_raises])]})).connect()
