"""Options about the model, about agents and about what commands may do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ferrule.compat.claude_agent_sdk import (
    AssistantMessage,
    ClaudeAgentOptions,
    ClaudeSDKClient,
    CLIConnectionError,
    HookMatcher,
    ResultMessage,
    StreamEvent,
    SystemMessage,
    query,
)
from ferrule.core.calls import ToolCall
from ferrule.providers.script import check_script
from ferrule.providers.scripted import ScriptedModel, says
from ferrule.testing import ModelServer, RecordingModel

from ..requirement import requirement
from ..sdk.scenes import of, read, results, texts

AGENT = ToolCall("1", "Agent", {"description": "look", "prompt": "Look.", "subagent_type": "general-purpose"})


def _options(*messages: Any, **more: Any) -> ClaudeAgentOptions:
    chosen: dict[str, Any] = {"model_provider": ScriptedModel(messages), "setting_sources": [], **more}
    return ClaudeAgentOptions(**chosen)


async def _sent(*, turns: tuple[dict[str, Any], ...] = ({"text": "."},), **more: Any) -> tuple[Any, Any]:
    """The body and the headers of the first request to a service."""
    async with ModelServer(check_script({"turns": list(turns)}, "x")) as server:
        env = {"ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_API_KEY": "key", **more.pop("env", {})}
        await read(query(prompt="x", options=ClaudeAgentOptions(env=env, setting_sources=[], **more)))
        request = server.requests[0]
    body = json.loads(request.body) if isinstance(request.body, bytes) else request.body
    return body, request


async def test_effort_and_thinking_reach_the_service() -> None:
    body, _ = await _sent(effort="low", thinking={"type": "adaptive"}, model="opus")
    assert body["output_config"] == {"effort": "low"}
    assert body["thinking"] == {"type": "adaptive"}

    body, _ = await _sent(thinking={"type": "adaptive"}, model="claude-sonnet-4-5")
    assert body["thinking"] == {"type": "enabled", "budget_tokens": 31_999}
    assert "output_config" not in body


async def test_thinking_may_be_chosen_in_the_environment() -> None:
    body, _ = await _sent(env={"MAX_THINKING_TOKENS": "8000"}, model="claude-sonnet-4-5")
    assert body["thinking"] == {"type": "enabled", "budget_tokens": 8000}

    body, _ = await _sent(env={"MAX_THINKING_TOKENS": "8000"}, model="claude-sonnet-4-5", max_thinking_tokens=0)
    assert "thinking" not in body
    with pytest.raises(ValueError, match="adaptive, enabled or disabled"):
        query(prompt="x", options=_options(thinking={"type": "much"}))


async def test_betas_reach_the_service_and_widen_the_window() -> None:
    _, request = await _sent(betas=["context-1m-2025-08-07", "other"], model="claude-sonnet-4-5")
    assert dict(request.headers)["anthropic-beta"] == "context-1m-2025-08-07,other"

    env = {"ANTHROPIC_BASE_URL": "http://127.0.0.1:9", "ANTHROPIC_API_KEY": "key"}
    options = ClaudeAgentOptions(model="sonnet", betas=["context-1m-2025-08-07"], env=env, setting_sources=[])
    options.model = "claude-sonnet-4-5"
    async with ClaudeSDKClient(options) as client:
        assert (await client.get_context_usage())["maxTokens"] == 1_000_000


async def test_what_agents_do_is_told_with_the_call_that_it_is_for() -> None:
    script = (says("", AGENT), says("Looking.", ToolCall("2", "Glob", {"pattern": "*"})), says("Seen."), says("Done."))

    messages = await read(query(prompt="x", options=_options(*script)))
    inner = [message for message in messages if getattr(message, "parent_tool_use_id", None) == "1"]
    assert [type(message).__name__ for message in inner] == ["AssistantMessage", "UserMessage"]
    assert texts(messages) == ["Done."]

    messages = await read(query(prompt="x", options=_options(*script, forward_subagent_text=True)))
    inner = [message for message in of(AssistantMessage, messages) if message.parent_tool_use_id == "1"]
    assert texts(inner) == ["Looking.", "Seen."]
    assert of(ResultMessage, messages)[0].result == "Done."


async def test_pieces_of_agents_are_told_only_with_their_text() -> None:
    script = (says("", AGENT), says("Seen."), says("Done."))

    async def pieces(**more: Any) -> set[str | None]:
        options = _options(*script, include_partial_messages=True, **more)
        return {event.parent_tool_use_id for event in of(StreamEvent, await read(query(prompt="x", options=options)))}

    assert await pieces() == {None}
    assert await pieces(forward_subagent_text=True) == {None, "1"}


async def test_a_sandbox_holds_commands_to_the_workspace_and_lets_them_run(folder: Path, tmp_path: Path) -> None:
    inside = ToolCall("1", "Bash", {"command": "touch inside; touch ../outside"})
    options = _options(says("", inside), says("."), sandbox={"enabled": True, "allowUnsandboxedCommands": False})

    messages = await read(query(prompt="x", options=options))

    assert (folder / "inside").exists(), results(messages)
    assert not (tmp_path / "outside").exists()


async def test_a_sandbox_with_a_key_that_there_is_not_is_refused() -> None:
    with pytest.raises(CLIConnectionError, match="enable"):
        await read(query(prompt="x", options=_options(says("."), sandbox={"enable": True})))


async def test_the_mode_auto_asks_a_model_about_a_call(folder: Path) -> None:
    model = RecordingModel(
        says("", ToolCall("1", "Write", {"file_path": "a.txt", "content": ""})), says("SAFE: fine"), says("Done.")
    )

    await read(query(prompt="x", options=_options(model_provider=model, permission_mode="auto")))

    assert (folder / "a.txt").exists()
    assert len(model.requests) == 3


async def test_skills_are_chosen_by_name_and_allowed(folder: Path) -> None:
    for name in ("one", "two"):
        skill = folder / ".claude" / "skills" / name / "SKILL.md"
        skill.parent.mkdir(parents=True)
        skill.write_text(f"---\ndescription: Does {name}.\n---\nDo {name}.")
    calls = [ToolCall(name, "Skill", {"skill": name}) for name in ("one", "two")]
    options = _options(says("", *calls), says("."), setting_sources=["project"], skills=["one"])

    messages = await read(query(prompt="x", options=options))

    assert of(SystemMessage, messages)[0].data["skills"] == ["one"]
    first, second = results(messages)
    assert not first.is_error
    assert second.is_error


@pytest.mark.parametrize("plugins", [[{"type": "remote", "path": "."}], [{"type": "local"}], ["."]])
async def test_a_plugin_of_another_form_is_refused(plugins: Any) -> None:
    with pytest.raises(ValueError, match='"type": "local"'):
        query(prompt="x", options=_options(plugins=plugins))


@requirement("SDK-1")
async def test_a_call_that_a_hook_puts_off_is_in_the_result_and_the_conversation_can_go_on() -> None:
    async def defer(input: Any, tool_use_id: str | None, context: Any) -> Any:
        return {"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "defer"}}

    call = ToolCall("1", "Bash", {"command": "echo hello"})
    options = _options(
        says("", call), allowed_tools=["Bash"], hooks={"PreToolUse": [HookMatcher(matcher="Bash", hooks=[defer])]}
    )

    (result,) = of(ResultMessage, await read(query(prompt="x", options=options)))

    assert result.deferred_tool_use is not None
    assert (result.deferred_tool_use.name, result.deferred_tool_use.input) == ("Bash", {"command": "echo hello"})
    options = _options(says("", call), says("Ran."), allowed_tools=["Bash"], resume=result.session_id)
    messages = await read(query(prompt="Go on.", options=options))
    assert results(messages)[0].content == "hello"
