"""What can be chosen for a conversation, and changed and asked while it lasts."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import ferrule
from ferrule.core.calls import ToolCall
from ferrule.core.content import plain_text
from ferrule.core.model import UserTurn
from ferrule.core.tool import ToolDefinitionError
from ferrule.hooks.hook import hook
from ferrule.providers.script import check_script
from ferrule.providers.scripted import says
from ferrule.sdk.client import FerruleClient, query
from ferrule.sdk.errors import CannotOpen, NotDone
from ferrule.sdk.messages import (
    AssistantMessage,
    HookEventMessage,
    SystemMessage,
    ToolUseBlock,
)
from ferrule.sdk.options import Options
from ferrule.sdk.tools import create_sdk_mcp_server
from ferrule.testing import ModelServer, RecordingModel
from tests.settings.folders import put

from ..requirement import requirement
from .scenes import CALC, add, fail, of, options, read, results, texts


async def test_modes_and_models_change_while_it_lasts(tmp_path: Path) -> None:
    write = ToolCall("1", "Write", {"file_path": "a.txt", "content": "x"})

    async with FerruleClient(options(tmp_path, says("", write), says("Done."))) as client:
        await client.set_permission_mode("acceptEdits")
        await client.query("write")
        messages = await read(client.receive_response())
        with pytest.raises(ValueError, match="when the conversation is opened"):
            await client.set_permission_mode("bypassPermissions")
        with pytest.raises(ValueError, match="is not a mode"):
            await client.set_permission_mode("fast")

    assert of(SystemMessage, messages)[0].data["permissionMode"] == "acceptEdits"
    assert (tmp_path / "a.txt").read_text() == "x"


@requirement("PERM-2")
async def test_a_mode_that_a_settings_file_switches_off_cannot_be_chosen(tmp_path: Path) -> None:
    off = json.dumps({"permissions": {"disableBypassPermissionsMode": "disable", "disableAutoMode": "disable"}})
    write = ToolCall("1", "Write", {"file_path": "a.txt", "content": "x"})
    chosen = options(tmp_path, says("", write), says("Done."), settings=off, may_bypass=True)

    async with FerruleClient(chosen) as client:
        for mode in ("bypassPermissions", "auto"):
            with pytest.raises(ValueError, match=f"switches the mode {mode} off"):
                await client.set_permission_mode(mode)
        await client.query("write")
        messages = await read(client.receive_response())

    assert of(SystemMessage, messages)[0].data["permissionMode"] == "default"
    assert not (tmp_path / "a.txt").exists()


async def test_servers_can_be_switched_off_and_on(tmp_path: Path) -> None:
    async with FerruleClient(options(tmp_path, mcp_servers=CALC)) as client:
        await client.toggle_mcp_server("calc", False)
        off = await client.get_mcp_status()
        await client.toggle_mcp_server("calc", True)
        (on,) = await client.get_mcp_status()
        with pytest.raises(NotDone, match="server `other` was not found"):
            await client.toggle_mcp_server("other", True)
        with pytest.raises(NotDone, match="nothing"):
            await client.stop_task("nothing")

    assert off[0].status == "disabled"
    assert (on.status, on.tools) == ("connected", ("mcp__calc__add", "mcp__calc__fail"))


async def test_how_full_the_window_is_can_be_asked(tmp_path: Path) -> None:
    async with FerruleClient(options(tmp_path, says("word " * 300))) as client:
        before = await client.get_context_usage()
        await client.query("x")
        await read(client.receive_response())
        after = await client.get_context_usage()

    assert after.parts["Messages"] > before.parts["Messages"] == 0
    assert before.total < after.total < after.window


async def test_a_function_that_is_asked_and_hooks_decide(tmp_path: Path) -> None:
    asked: list[str] = []
    calls = [ToolCall(str(number), "Write", {"file_path": f"{number}.txt", "content": ""}) for number in range(2)]

    def guard(event: Any) -> Any:
        if event["tool_input"]["file_path"].endswith("1.txt"):
            return {"decision": "block", "reason": "not that one"}
        return None

    chosen = options(
        tmp_path,
        says("", *calls),
        says("Done."),
        ask=lambda question: asked.append(question.tool) or True,
        hooks=[hook("PreToolUse", guard, match="Write")],
        hook_messages=True,
    )
    messages = await read(query(prompt="x", options=chosen))

    assert asked == ["Write"]
    assert [block.is_error for block in results(messages)] == [None, True]
    assert {message.hook_event_name for message in of(HookEventMessage, messages)} == {"PreToolUse"}


async def test_an_answer_can_be_held_to_a_schema(tmp_path: Path) -> None:
    schema = {"type": "object", "properties": {"sum": {"type": "number"}}, "required": ["sum"]}
    answer = ToolCall("1", "StructuredOutput", {"sum": 3})

    messages = await read(query(prompt="x", options=options(tmp_path, says("", answer), output_schema=schema)))

    assert messages[-1].structured_output == {"sum": 3}


async def test_a_conversation_is_resumed_and_forked(tmp_path: Path) -> None:
    first = await read(query(prompt="Remember 7.", options=options(tmp_path, says("Yes."), session_id="one")))
    model = RecordingModel(says("7."))
    again = await read(query(prompt="Which?", options=options(tmp_path, model=model, resume="one", fork=True)))

    assert first[-1].session_id == "one"
    assert again[-1].session_id != "one"
    assert "Remember 7." in str(model.requests[0][1][0])


async def test_a_model_of_a_service_is_chosen_by_its_name(tmp_path: Path) -> None:
    async with ModelServer(check_script({"turns": [{"text": "Hello there."}]}, "a test")) as server:
        env = {"ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_API_KEY": "key"}
        chosen = options(tmp_path, model="anthropic:claude-sonnet-5-5", env=env)
        messages = await read(query(prompt="x", options=chosen))

    assert texts(messages) == ["Hello there."]
    assert of(AssistantMessage, messages)[0].model == "claude-sonnet-5-5"
    assert messages[-1].total_cost_usd is not None


@requirement("CLI-2")
async def test_the_result_has_the_status_of_a_service_that_refuses(tmp_path: Path) -> None:
    async with ModelServer(check_script({"turns": [{"fault": {"status": 401}}]}, "a test")) as server:
        env = {"ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_API_KEY": "key"}
        messages = await read(
            query(prompt="x", options=options(tmp_path, model="anthropic:claude-sonnet-5-5", env=env))
        )

    assert (messages[-1].terminal_reason, messages[-1].api_error_status) == ("api_error", 401)


@requirement("LOOP-5", "SET-4")
async def test_a_transcript_that_is_resumed_allows_and_runs_nothing(tmp_path: Path) -> None:
    first = await read(query(prompt="x", options=options(tmp_path, says("Hello."))))
    (path,) = tmp_path.rglob(f"{first[-1].session_id}.jsonl")
    command = {"type": "command", "command": f"touch {tmp_path}/ran-by-a-hook"}
    given = json.dumps({"PreToolUse": [{"hooks": [command]}]})
    hooks = [{"skill": "s", "path": "/s", "given": given, "is_trusted": True, "by_agent": False}]
    rules = {"turn": 2, "allow": ["Bash"], "deny": [], "origin": "s", "hooks": hooks}
    last = json.loads(path.read_text().splitlines()[-1])
    written = {**last, "type": "state", "key": "value:skill_rules", "value": rules}
    path.write_text(f"{path.read_text()}{json.dumps(written)}\n")
    call = ToolCall("1", "Bash", {"command": f"touch {tmp_path}/ran"})

    chosen = options(tmp_path, says("", call), says("Done."), resume=first[-1].session_id)
    messages = await read(query(prompt="go", options=chosen))

    assert "Bash was not allowed" in str(results(messages)[0].content)
    assert not [*tmp_path.glob("ran*")]


@requirement("PROG-5")
async def test_without_slash_commands_a_slash_is_text_and_no_skill_is_offered(tmp_path: Path) -> None:
    put(tmp_path / ".claude/skills/tidy/SKILL.md", "---\ndescription: Tidies.\n---\nTidy up.")
    model = RecordingModel(says("Done."))
    chosen = options(tmp_path, model=model, setting_sources=["project"], skills=(), slash_commands=False)

    messages = await read(query(prompt="/tidy", options=chosen))

    ((request, history),) = model.requests
    assert [plain_text(turn.content) for turn in history if isinstance(turn, UserTurn)] == ["/tidy"]
    assert "Skill" not in [tool.name for tool in request.tools]
    assert of(SystemMessage, messages)[0].data["slash_commands"] == []


async def test_a_model_that_cannot_be_had_is_said_before_anything_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "ANTHROPIC_BASE_URL", "OPENAI_BASE_URL", "FERRULE_MODEL"):
        monkeypatch.delenv(name, raising=False)

    with pytest.raises(CannotOpen, match="No model is configured"):
        await read(query(prompt="x", options=options(tmp_path, model=None)))


async def test_tools_made_of_functions_are_called_by_their_names(tmp_path: Path) -> None:
    @ferrule.tool
    def shout(text: str) -> str:
        """Say it loudly.

        Args:
            text: What to say.
        """
        return text.upper()

    chosen = options(
        tmp_path, says("", ToolCall("1", "shout", {"text": "hi"})), says("."), tools=[shout], allow=["shout"]
    )
    messages = await read(query(prompt="x", options=chosen))

    assert results(messages)[0].content == "HI"
    assert of(AssistantMessage, messages)[0].content == [ToolUseBlock("1", "shout", {"text": "hi"})]


def test_the_public_names_are_the_sdks() -> None:
    assert (ferrule.query, ferrule.FerruleClient, ferrule.Options) == (query, FerruleClient, Options)
    assert ferrule.create_sdk_mcp_server is create_sdk_mcp_server


@requirement("SDK-1")
async def test_tools_of_a_server_come_go_and_change_while_a_conversation_lasts(tmp_path: Path) -> None:
    server = create_sdk_mcp_server("calc", tools=[add, fail])
    instance = server["instance"]

    async def shout(args: dict[str, Any]) -> dict[str, Any]:
        return {"content": [{"type": "text", "text": f"{args['a'] + args['b']}!"}]}

    call = ToolCall("1", "mcp__calc__add", {"a": 1, "b": 2})
    chosen = options(tmp_path, says("", call), says("."), mcp_servers={"calc": server}, allow=["mcp__calc"])
    async with FerruleClient(chosen) as client:

        def names() -> list[str]:
            return [one.name for one in client.session.registry.pool if one.name.startswith("mcp__")]

        instance.disable("fail")
        assert names() == ["mcp__calc__add"]
        instance.enable("fail")
        instance.remove("fail")
        instance.add(replace(add, name="more"))
        assert names() == ["mcp__calc__add", "mcp__calc__more"]
        instance.update("add", handler=shout, description="Add, and shout.")
        await client.query("x")
        messages = await read(client.receive_response())

    assert results(messages)[0].content == "3!"
    with pytest.raises(ToolDefinitionError, match="no tool named fail"):
        instance.remove("fail")
    with pytest.raises(ToolDefinitionError, match="more than one tool named add"):
        instance.add(add)
