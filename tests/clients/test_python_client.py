"""`ClaudeSDKClient` of the published Python SDK with its `cli_path` on Ferrule."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from claude_agent_sdk import (  # pyright: ignore[reportMissingImports]
    ClaudeSDKClient,
    ClaudeSDKError,
    Message,
    ResultMessage,
    TaskStartedMessage,
    get_session_info,
    get_session_messages,
    list_sessions,
)

from ..requirement import requirement
from .environment import call
from .scene import Scene, kinds, last, playing, results
from .test_python_query import ECHO_SERVER

HANG = 60
DONE = {"text": "Done."}


async def asked(client: ClaudeSDKClient, prompt: str) -> list[Message]:
    async with asyncio.timeout(HANG):
        await client.query(prompt)
        return [message async for message in client.receive_response()]


async def until_asked(scene: Scene, count: int) -> None:
    async with asyncio.timeout(HANG):
        while len(scene.asked) < count:  # noqa: ASYNC110 - another process asks
            await asyncio.sleep(0.02)


@requirement("SDK-1")
async def test_prompts_are_one_conversation(tmp_path: Path) -> None:
    async with (
        playing(tmp_path, {"text": "One."}, {"text": "Two."}) as scene,
        ClaudeSDKClient(scene.options()) as client,
    ):
        first, second = await asked(client, "first"), await asked(client, "second")

    assert (last(first).result, last(second).result) == ("One.", "Two.")
    assert last(first).session_id == last(second).session_id
    assert kinds(first) == ["init", "assistant", "result"]
    assert kinds(second)[-2:] == ["assistant", "result"]
    assert "One." in scene.sent(1)


@requirement("SDK-1")
async def test_what_is_interrupted_ends_and_the_conversation_goes_on(tmp_path: Path) -> None:
    slow = {"text": "word " * 400, "fault": {"slow": 0.1}}
    async with playing(tmp_path, slow, {"text": "Here I am."}) as scene, ClaudeSDKClient(scene.options()) as client:
        await client.query("Tell me a story.")
        await until_asked(scene, 1)
        await client.interrupt()
        async with asyncio.timeout(HANG):
            first = [message async for message in client.receive_response()]
        second = await asked(client, "Still there?")

    assert last(first).subtype == "error_during_execution"
    assert (last(second).result, last(second).is_error) == ("Here I am.", False)


async def test_the_mode_changes_in_the_middle(tmp_path: Path) -> None:
    def write(name: str) -> Mapping[str, Any]:
        return {"calls": [call("Write", file_path=str(tmp_path / "project" / name), content="x\n")]}

    async with (
        playing(tmp_path, write("a"), DONE, write("b"), DONE) as scene,
        ClaudeSDKClient(scene.options()) as client,
    ):
        refused = await asked(client, "go")
        await client.set_permission_mode("acceptEdits")
        allowed = await asked(client, "again")

    assert [[is_error for _, is_error in results(messages)] for messages in (refused, allowed)] == [[True], [False]]
    assert (scene.project / "b").exists()


async def test_the_model_changes_in_the_middle(tmp_path: Path) -> None:
    async with playing(tmp_path, DONE, DONE) as scene, ClaudeSDKClient(scene.options()) as client:
        await asked(client, "go")
        await client.set_model("claude-haiku-4-5")
        await asked(client, "again")

    assert [body["model"] for body in scene.asked] == ["claude-sonnet-4-5", "claude-haiku-4-5"]


async def test_what_the_program_can_do_is_told(tmp_path: Path) -> None:
    async with playing(tmp_path, DONE) as scene:
        scene.put(".claude/commands/greet.md", "---\ndescription: Greets people.\n---\nHello.\n")
        async with ClaudeSDKClient(scene.options(setting_sources=["project"])) as client:
            info = await client.get_server_info()

    assert info is not None
    assert {"commands", "models", "output_style", "agents", "account"} <= info.keys()
    (greet,) = [one for one in info["commands"] if one["name"] == "greet"]
    assert greet["description"].startswith("Greets people.")


async def test_servers_are_told_of_switched_off_and_connected_again(tmp_path: Path) -> None:
    async with playing(tmp_path, {"calls": [call("mcp__lab__echo", text="hi")]}, DONE) as scene:
        lab = {"command": "python3", "args": [str(scene.put("lab.py", ECHO_SERVER))]}
        chosen = scene.options(mcp_servers={"lab": lab}, allowed_tools=["mcp__lab"])
        async with ClaudeSDKClient(chosen) as client, asyncio.timeout(HANG):
            seen = [await _status(client, "connected")]
            await client.toggle_mcp_server("lab", False)
            seen.append(await _status(client, "disabled"))
            await client.toggle_mcp_server("lab", True)
            await client.reconnect_mcp_server("lab")
            seen.append(await _status(client, "connected"))
            messages = await asked(client, "go")
            with pytest.raises(Exception, match="nobody"):
                await client.reconnect_mcp_server("nobody")

    assert seen == ["connected", "disabled", "connected"]
    assert results(messages) == [("again: hi", False)]


async def _status(client: ClaudeSDKClient, wanted: str) -> str:
    while True:
        (server,) = (await client.get_mcp_status())["mcpServers"]
        if server["status"] == wanted:
            return server["status"]
        await asyncio.sleep(0.05)


async def test_how_full_the_context_is_is_told(tmp_path: Path) -> None:
    async with (
        playing(tmp_path, {"text": "Hi.", "usage": {"input_tokens": 5000, "output_tokens": 10}}) as scene,
        ClaudeSDKClient(scene.options()) as client,
    ):
        await asked(client, "go")
        usage = await client.get_context_usage()

    assert usage["totalTokens"] > 0
    assert usage["maxTokens"] >= usage["totalTokens"]
    assert 0 <= usage["percentage"] <= 100
    assert {"categories", "model", "memoryFiles", "mcpTools"} <= usage.keys()


async def test_a_task_in_the_background_is_stopped(tmp_path: Path) -> None:
    start = {"calls": [call("Bash", command="sleep 300", run_in_background=True)]}
    async with (
        playing(tmp_path, start, *[DONE] * 4) as scene,
        ClaudeSDKClient(scene.options(allowed_tools=["Bash"])) as client,
    ):
        messages = await asked(client, "go")
        (task,) = [one.task_id for one in messages if isinstance(one, TaskStartedMessage)]
        await client.stop_task(task)

    assert last(messages).result == "Done."


async def test_files_are_as_they_were_before_a_prompt(tmp_path: Path) -> None:
    async with playing(
        tmp_path, {"calls": [call("Write", file_path=str(tmp_path / "project/a.txt"), content="new\n")]}, DONE
    ) as scene:
        chosen = scene.options(
            permission_mode="acceptEdits",
            enable_file_checkpointing=True,
            extra_args={"replay-user-messages": None},
        )
        async with ClaudeSDKClient(chosen) as client:
            messages = await asked(client, "go")
            assert (scene.project / "a.txt").exists()
            prompt = next(one for one in messages if type(one).__name__ == "UserMessage" and one.uuid)
            await client.rewind_files(prompt.uuid)

    assert not (scene.project / "a.txt").exists()


@requirement("LOOP-2")
async def test_the_library_reads_the_transcripts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with playing(
        tmp_path, {"text": "Looking.", "calls": [call("Bash", "1", command="echo hi")]}, {"text": "Seen."}
    ) as scene:
        id = last(await scene.ask("Remember walnut.", allowed_tools=["Bash"])).session_id
    ours, theirs = scene.folder / "state/ferrule", scene.folder / "home/.claude"
    holding = ours if (ours / "projects").is_dir() else theirs
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(holding))

    (listed,) = list_sessions(directory=str(scene.project))
    assert (listed.session_id, listed.first_prompt, listed.cwd) == (id, "Remember walnut.", str(scene.project))
    assert get_session_info(id, directory=str(scene.project)) == listed
    messages = get_session_messages(id, directory=str(scene.project))
    assert [one.type for one in messages][:1] == ["user"]
    assert [one.type for one in messages][-1:] == ["assistant"]
    assert messages[0].message["content"] == "Remember walnut."
    blocks = [block for one in messages[1:] for block in one.message["content"]]
    assert [block["type"] for block in blocks] == ["text", "tool_use", "tool_result", "text"]
    assert blocks[2]["content"] == "hi"


async def test_a_model_that_cannot_be_asked_is_an_error_in_words(tmp_path: Path) -> None:
    async with playing(tmp_path, {"fault": {"status": 400}}) as scene:
        seen: list[Message] = []
        error: ClaudeSDKError | None = None
        try:
            async with ClaudeSDKClient(scene.options()) as client:
                seen = await asked(client, "go")
        except ClaudeSDKError as problem:
            error = problem

    results_seen = [one for one in seen if isinstance(one, ResultMessage)]
    assert error is not None or results_seen[-1].is_error
    assert "Scripted 400" in json.dumps([one.result or one.errors for one in results_seen]) + str(error)
