"""`enable_file_checkpointing` and `rewind_files`, as programs use them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ferrule.compat.claude_agent_sdk import (
    ClaudeAgentOptions,
    ClaudeSDKClient,
    ClaudeSDKError,
    FilesLeft,
    HookMatcher,
    ResultMessage,
    SystemMessage,
    TextBlock,
    UserMessage,
    query,
)
from ferrule.core.calls import ToolCall
from ferrule.providers.scripted import ScriptedModel, says

from ..requirement import requirement
from ..sdk.scenes import of, read, results

AGENT = ToolCall("9", "Agent", {"description": "x", "prompt": "Write.", "subagent_type": "general-purpose"})
NOTEBOOK = '{"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}\n'


def _options(*messages: Any, **more: Any) -> ClaudeAgentOptions:
    chosen: dict[str, Any] = {
        "model_provider": ScriptedModel(messages),
        "setting_sources": [],
        "permission_mode": "acceptEdits",
        "enable_file_checkpointing": True,
        "extra_args": {"replay-user-messages": None},
        **more,
    }
    return ClaudeAgentOptions(**chosen)


def _write(id: str, name: str, content: str) -> ToolCall:
    return ToolCall(id, "Write", {"file_path": name, "content": content})


async def _asked(client: ClaudeSDKClient, prompt: str = "x") -> list[Any]:
    await client.query(prompt)
    return await read(client.receive_response())


def _prompt_id(messages: list[Any]) -> str:
    first = of(UserMessage, messages)[0]
    assert first.uuid
    return first.uuid


@requirement("SDK-1")
async def test_files_go_back_to_how_they_were_when_a_prompt_came(folder: Path) -> None:
    (folder / "a.txt").write_text("one\n")
    (folder / "n.ipynb").write_text(NOTEBOOK)
    cell = {"notebook_path": "n.ipynb", "edit_mode": "insert", "cell_type": "code", "new_source": "1"}
    script = (
        says(
            "",
            ToolCall("1", "Read", {"file_path": "a.txt"}),
            ToolCall("2", "Read", {"file_path": "n.ipynb"}),
        ),
        says(
            "",
            ToolCall("3", "Edit", {"file_path": "a.txt", "old_string": "one", "new_string": "two"}),
            ToolCall("4", "NotebookEdit", cell),
            _write("5", "new/made.txt", "made"),
        ),
        says("Done."),
        says("", _write("6", "a.txt", "three\n")),
        says("Done."),
    )
    async with ClaudeSDKClient(_options(*script)) as client:
        first, second = await _asked(client), await _asked(client)
        assert (folder / "a.txt").read_text() == "three\n", results([*first, *second])
        assert (folder / "n.ipynb").read_text() != NOTEBOOK, results(first)

        await client.rewind_files(_prompt_id(second))
        assert (folder / "a.txt").read_text() == "two\n"
        assert (folder / "new/made.txt").read_text() == "made"

        await client.rewind_files(_prompt_id(first))
        assert (folder / "a.txt").read_text() == "one\n"
        assert (folder / "n.ipynb").read_text() == NOTEBOOK
        assert not (folder / "new/made.txt").exists()

        await client.rewind_files(_prompt_id(second))
        assert (folder / "a.txt").read_text() == "two\n"


async def test_prompts_are_repeated_with_their_ids_only_where_that_was_asked_for() -> None:
    prompt = {"type": "user", "message": {"role": "user", "content": [{"type": "text", "text": "in blocks"}]}}

    async def prompts() -> Any:
        yield prompt

    async with ClaudeSDKClient(_options(says("."), says("."))) as client:
        assert [one.content for one in of(UserMessage, await _asked(client, "in words"))] == ["in words"]
        await client.query(prompts())
        assert of(UserMessage, await read(client.receive_response()))[0].content == [TextBlock("in blocks")]

    quiet = await read(query(prompt="x", options=_options(says("."), extra_args={})))
    assert of(UserMessage, quiet) == []


async def test_the_id_of_a_result_is_a_moment_too(folder: Path) -> None:
    script = (says("", _write("1", "a", "1")), says("", _write("2", "b", "2")), says("."))
    async with ClaudeSDKClient(_options(*script, extra_args={})) as client:
        first, _ = of(UserMessage, await _asked(client))
        assert first.uuid

        await client.rewind_files(first.uuid)

    assert sorted(path.name for path in folder.iterdir()) == ["a"]


async def test_what_an_agent_wrote_is_taken_back(folder: Path) -> None:
    script = (says("", AGENT), says("", _write("1", "a", "1")), says("Written."), says("Done."))
    async with ClaudeSDKClient(_options(*script)) as client:
        messages = await _asked(client)
        assert (folder / "a").exists(), results(messages)

        await client.rewind_files(_prompt_id(messages))

    assert not (folder / "a").exists()


async def test_another_process_rewinds_after_an_empty_prompt(folder: Path) -> None:
    messages = await read(query(prompt="x", options=_options(says("", _write("1", "a", "1")), says("."))))
    (result,) = of(ResultMessage, messages)

    async with ClaudeSDKClient(_options(resume=result.session_id)) as client:
        await client.query("")
        async for message in client.receive_response():
            assert isinstance(message, SystemMessage)
            await client.rewind_files(_prompt_id(messages))
            break
        assert [type(message) for message in await read(client.receive_response())] == [ResultMessage]

    assert not (folder / "a").exists()


async def test_what_somebody_else_changed_is_left_and_named_and_the_rest_is_brought_back(folder: Path) -> None:
    script = (says("", _write("1", "a", "1"), _write("2", "b", "1")), says("."))
    async with ClaudeSDKClient(_options(*script)) as client:
        id = _prompt_id(await _asked(client))
        (folder / "a").write_text("by hand")

        with pytest.raises(FilesLeft, match="somebody else") as left:
            await client.rewind_files(id)
        assert list(left.value.left) == [str(folder / "a")]
        assert {path.name: path.read_text() for path in folder.iterdir()} == {"a": "by hand"}

        await client.rewind_files(id, force=True)
        assert list(folder.iterdir()) == []


async def test_what_a_command_changed_is_not_covered(folder: Path) -> None:
    script = (says("", ToolCall("1", "Bash", {"command": "echo made > by-command"})), says("."))
    async with ClaudeSDKClient(_options(*script, allowed_tools=["Bash"])) as client:
        messages = await _asked(client)
        assert (folder / "by-command").exists(), results(messages)

        await client.rewind_files(_prompt_id(messages))

    assert (folder / "by-command").exists()


async def test_a_call_that_was_refused_leaves_nothing_to_bring_back(folder: Path) -> None:
    async def refuse(input: Any, tool_use_id: Any, context: Any) -> dict[str, Any]:
        return {"decision": "block", "reason": "no"}

    hooks = {"PreToolUse": [HookMatcher(matcher="Write", hooks=[refuse])]}
    async with ClaudeSDKClient(_options(says("", _write("1", "a", "1")), says("."), hooks=hooks)) as client:
        id = _prompt_id(await _asked(client))
        (folder / "a").write_text("by hand")

        await client.rewind_files(id)

    assert (folder / "a").read_text() == "by hand"


async def test_without_the_option_and_for_an_id_that_there_is_not_it_is_an_error() -> None:
    async with ClaudeSDKClient(_options(enable_file_checkpointing=False)) as client:
        with pytest.raises(ClaudeSDKError, match="checkpoints"):
            await client.rewind_files("x")
        with pytest.raises(ValueError, match="empty"):
            await client.query("")
    async with ClaudeSDKClient(_options()) as client:
        with pytest.raises(ClaudeSDKError, match="Nothing was kept"):
            await client.rewind_files("x")
