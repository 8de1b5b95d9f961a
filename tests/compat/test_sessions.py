"""Conversations that are kept: listed, read, forked, removed, gone on with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ferrule.compat.claude_agent_sdk import (
    ClaudeAgentOptions,
    ClaudeSDKError,
    CLIConnectionError,
    NotBuilt,
    delete_session,
    fork_session,
    get_session_info,
    get_session_messages,
    get_subagent_messages,
    list_sessions,
    list_subagents,
    project_key_for_directory,
    query,
    rename_session,
    tag_session,
)
from ferrule.core.calls import ToolCall
from ferrule.providers.scripted import ScriptedModel, says
from ferrule.testing import RecordingModel

from ..sdk.scenes import read


async def _talk(prompt: str, *messages: Any, **more: Any) -> str:
    chosen: dict[str, Any] = {"model_provider": ScriptedModel(messages), "setting_sources": [], **more}
    return (await read(query(prompt=prompt, options=ClaudeAgentOptions(**chosen))))[-1].session_id


async def test_they_are_listed_with_what_is_known_of_them(folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    await _talk("First.", says("1"), session_id="one")
    await _talk("Second.", says("2"), session_id="two", cwd=other)

    assert {one.session_id for one in list_sessions()} == {"one", "two"}
    assert len(list_sessions(limit=1)) == len(list_sessions(offset=1)) == 1
    (one,) = list_sessions(folder)
    assert (one.session_id, one.summary, one.cwd) == ("one", "First.", str(folder))
    assert one.created_at is not None
    assert one.created_at <= one.last_modified
    assert get_session_info("two") == list_sessions(other)[0]
    assert get_session_info("two", folder) is None


async def test_what_was_said_can_be_read(folder: Path) -> None:
    (folder / "a.txt").touch()
    await _talk("Look.", says("I look.", ToolCall("1", "Glob", {"pattern": "*"})), says("Done."), session_id="one")

    messages = get_session_messages("one")

    assert [message.type for message in messages] == ["user", "assistant", "user", "assistant"]
    assert messages[0].message == {"role": "user", "content": "Look."}
    assert messages[1].message["content"][1] == {
        "type": "tool_use",
        "id": "1",
        "name": "Glob",
        "input": {"pattern": "*"},
    }
    assert messages[2].message["content"][0]["tool_use_id"] == "1"
    assert get_session_messages("one", limit=1, offset=3) == messages[3:]
    assert get_session_messages("none") == []


async def test_a_fork_can_be_gone_on_with_and_the_old_one_stays(folder: Path) -> None:
    await _talk("Remember 7.", says("Yes."), session_id="one")

    forked = fork_session("one").session_id
    model = RecordingModel(says("7."))
    await _talk("Which?", model_provider=model, resume=forked)

    assert "Remember 7." in str(model.requests[0][1][0])
    assert len(get_session_messages("one")) == 2
    assert len(get_session_messages(forked)) == 4


async def test_one_that_is_removed_is_gone(folder: Path) -> None:
    await _talk("First.", says("1"), session_id="one")

    delete_session("one")

    assert list_sessions() == []
    with pytest.raises(ClaudeSDKError, match="session one was not found"):
        delete_session("one")
    with pytest.raises(ClaudeSDKError, match="session one was not found"):
        fork_session("one")
    with pytest.raises(CLIConnectionError, match="Session one was not found"):
        await _talk("Again.", resume="one")


async def test_the_last_one_is_gone_on_with(folder: Path) -> None:
    first = await _talk("First.", says("1"))

    assert await _talk("Second.", says("2"), continue_conversation=True) == first


def test_a_directory_has_a_key(folder: Path) -> None:
    assert project_key_for_directory(folder).endswith("work")


async def test_they_are_named_and_tagged_and_go_on_all_the_same(folder: Path) -> None:
    await _talk("First.", says("1"), session_id="one")

    rename_session("one", " Old title ")
    rename_session("one", "A title")
    tag_session("one", "done", folder)
    info = get_session_info("one")
    assert info is not None
    assert (info.summary, info.custom_title, info.tag, info.first_prompt) == ("A title", "A title", "done", "First.")

    tag_session("one", None)
    await _talk("Second.", says("2"), resume="one")
    info = get_session_info("one")
    assert info is not None
    assert (info.custom_title, info.tag) == ("A title", None)
    assert [message.type for message in get_session_messages("one")] == ["user", "assistant"] * 2


async def test_a_name_follows_a_line_that_was_cut_short(folder: Path) -> None:
    await _talk("First.", says("1"), session_id="one")
    (path,) = folder.parent.rglob("one.jsonl")
    with path.open("ab") as file:
        file.write(b'{"type":"us')

    rename_session("one", "A title")

    info = get_session_info("one")
    assert info is not None
    assert info.custom_title == "A title"


def test_a_name_that_is_none_and_a_session_that_is_not_there_are_refused() -> None:
    with pytest.raises(ValueError, match="title is empty"):
        rename_session("one", " ")
    with pytest.raises(ValueError, match="tag is empty"):
        tag_session("one", "")
    with pytest.raises(FileNotFoundError, match="session one was not found"):
        tag_session("one", "x")
    with pytest.raises(ClaudeSDKError, match="session one was not found"):
        delete_session("one")


async def test_a_fork_may_end_earlier_and_have_a_name_of_its_own() -> None:
    await _talk("First.", says("1"), session_id="one")
    await _talk("Second.", says("2"), resume="one")
    first_answer = get_session_messages("one")[1].uuid

    forked = fork_session("one", up_to_message_id=first_answer, title="A fork").session_id

    first, answer = get_session_messages(forked)
    assert (first.message["content"], answer.message["content"][0]["text"]) == ("First.", "1")
    info = get_session_info(forked)
    assert info is not None
    assert info.custom_title == "A fork"
    with pytest.raises(ClaudeSDKError, match="Message nothing was not found"):
        fork_session("one", up_to_message_id="nothing")
    assert len(list_sessions()) == 2


async def test_a_conversation_is_gone_on_with_from_an_earlier_message() -> None:
    await _talk("First.", says("1"), session_id="one")
    await _talk("Second.", says("2"), resume="one")
    first_answer = get_session_messages("one")[1].uuid
    model = RecordingModel(says("3"))

    forked = await _talk(
        "Another.", model_provider=model, resume="one", fork_session=True, resume_session_at=first_answer
    )

    assert "Second." not in str(model.requests[0][1])
    assert "First." in str(model.requests[0][1])
    assert forked != "one"
    with pytest.raises(NotBuilt, match="fork_session"):
        await _talk("x", resume="one", resume_session_at=first_answer)
    with pytest.raises(CLIConnectionError, match="Message nothing was not found"):
        await _talk("x", resume="one", fork_session=True, resume_session_at="nothing")


async def test_what_agents_did_can_be_read() -> None:
    call = ToolCall("1", "Agent", {"description": "d", "prompt": "Look.", "subagent_type": "general-purpose"})
    await _talk("First.", says("", call), says("Seen."), says("Done."), session_id="one")

    (agent,) = list_subagents("one")
    messages = get_subagent_messages("one", agent)

    assert messages[0].message["content"] == "Look."
    assert messages[1].message["content"][0]["text"] == "Seen."
    assert messages[0].parent_agent_id is None
    assert [message.type for message in get_session_messages("one")] == ["user", "assistant", "user", "assistant"]
    assert get_subagent_messages("one", "nobody") == list_subagents("two") == []
