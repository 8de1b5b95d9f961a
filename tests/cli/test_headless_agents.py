"""Agents in a headless run: their lines, what they used, what they are told and what is kept of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ferrule import Settings
from ferrule.app.kept_sessions import begin_session
from ferrule.app.session_opening import open_conversation
from ferrule.core.calls import Status, ToolCall
from ferrule.core.events import ToolFinished
from ferrule.engine.restoring import restore_conversation
from ferrule.host.storage.transcript_files import lines_of as transcript_lines
from ferrule.permissions.approvals import AnswerScope, ApprovalAnswer, ApprovalQuestion
from ferrule.providers.scripted import says
from tests.agents.cast import Cast, hire
from tests.cli.prompting import ask, call, lines_of
from tests.requirement import requirement
from tests.settings.folders import put

USED = {"input_tokens": 10, "output_tokens": 5}
WRITE = call("Write", file_path="new", content="x")
HIRE = call("Agent", "a1", description="look", prompt="Look around.", subagent_type="Explore")


def streamed(folder: Path, *turns: dict[str, Any], flags: tuple[str, ...] = ()) -> list[dict[str, Any]]:
    return lines_of(ask(folder, turns, "Hi", "--output-format", "stream-json", *flags))


@requirement("TASK-1", "CLI-1")
def test_the_lines_of_an_agent_name_its_call_and_its_usage_is_part_of_the_whole(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\n")

    lines = streamed(
        tmp_path,
        {"text": "Asking.", "calls": [HIRE], "usage": USED},
        {"text": "Looking.", "calls": [call("Read", "r1", file_path="a.txt")], "usage": USED},
        {"text": "It says one.", "usage": USED},
        {"text": "Done.", "usage": USED},
    )

    told = [
        (line["parent_tool_use_id"], line["type"], line["message"]["content"][0]["type"])
        for line in lines
        if line["type"] in ("assistant", "user")
    ]
    assert told == [
        (None, "assistant", "text"),
        (None, "assistant", "tool_use"),
        ("a1", "assistant", "text"),
        ("a1", "assistant", "tool_use"),
        ("a1", "user", "tool_result"),
        ("a1", "assistant", "text"),
        (None, "user", "tool_result"),
        (None, "assistant", "text"),
    ]
    result = lines[-1]
    assert (result["num_turns"], result["result"]) == (2, "Done.")
    assert (result["usage"]["input_tokens"], result["usage"]["output_tokens"]) == (40, 20)
    (model,) = result["modelUsage"].values()
    assert (model["inputTokens"], model["outputTokens"]) == (40, 20)


@requirement("TASK-1", "CLI-1")
def test_what_an_agent_is_refused_is_no_success(tmp_path: Path) -> None:
    hired = call("Agent", "a1", description="write", prompt="Write it.")

    done = ask(
        tmp_path,
        [
            {"calls": [hired]},
            {"calls": [call("Write", file_path="new", content="x")]},
            {"text": "No."},
            {"text": "Hm."},
        ],
        "Hi",
        "--output-format",
        "json",
    )

    (result,) = lines_of(done)
    assert done.returncode == 3
    assert [denial["tool_name"] for denial in result["permission_denials"]] == ["Write"]


@requirement("TASK-1", "LOOP-3")
async def test_an_agent_is_told_where_it_works_and_what_the_project_says(tmp_path: Path) -> None:
    (tmp_path / "CLAUDE.md").write_text("Use tabs, always.\n")
    opened = open_conversation(Settings(cwd=str(tmp_path), state_folder=tmp_path / "state"))
    model = Cast(
        main=[says("", hire("1", "work"), hire("2", "look", subagent_type="Explore")), says("")],
        work=[says("Done.")],
        look=[says("Done.")],
    )

    async with opened.session as session, session.ask("main", model) as events:
        _ = [one async for one in events]

    told = {prompt: request.system for prompt, request in model.requests}
    assert "Use tabs, always." in told["work"]
    assert "Git: not a repository" in told["work"]
    assert f"Working directory: {tmp_path}" in told["look"]
    assert "Use tabs" not in told["look"]
    assert "Git:" not in told["look"]


@requirement("TASK-1", "LOOP-2")
async def test_the_conversation_of_an_agent_is_kept_beside_that_of_its_parent(tmp_path: Path) -> None:
    model = Cast(
        main=[says("", hire("1", "look", subagent_type="Explore")), says("Thanks.")],
        look=[says("", ToolCall("g", "Glob", {"pattern": "*"})), says("Nothing.")],
    )
    session = begin_session(Settings(cwd=str(tmp_path), state_folder=tmp_path / "state"))
    async with session, session.ask("main", model) as events:
        _ = [one async for one in events]

    path = Path(session.transcript_path)
    assert restore_conversation(transcript_lines(path)).turns == session.history
    theirs = restore_conversation(transcript_lines(path), "main/Explore_1").turns
    assert len(theirs) == 4
    assert {json.loads(line)["agent"] for line in path.read_bytes().splitlines()} == {"main", "main/Explore_1"}


class OnceForAll:
    def __init__(self) -> None:
        self.asked: list[str] = []

    async def answer(self, question: ApprovalQuestion, /) -> ApprovalAnswer:
        self.asked.append(question.proposal.ctx.facts.agent)
        return ApprovalAnswer(allowed=True, reach=AnswerScope.SESSION)


@requirement("TASK-1", "PERM-8")
async def test_what_a_person_grants_an_agent_for_the_session_holds_for_the_session(tmp_path: Path) -> None:
    write = ToolCall("w", "Write", {"file_path": "new", "content": "x"})
    again = ToolCall("v", "Write", {"file_path": "new", "content": "x"})
    model = Cast(
        main=[says("", hire("1", "work")), says("", again), says("Thanks.")],
        work=[says("", write), says("Done.")],
    )
    person = OnceForAll()
    session = begin_session(Settings(cwd=str(tmp_path), state_folder=tmp_path / "state"), person=person)

    async with session, session.ask("main", model) as events:
        ended = [one.event.outcome async for one in events if isinstance(one.event, ToolFinished)]

    assert person.asked == ["main/general-purpose_1"]
    assert not [outcome for outcome in ended if outcome.status is Status.DENIED]


@requirement("TASK-1")
def test_an_agent_that_names_another_model_is_asked_there(tmp_path: Path) -> None:
    other = tmp_path / "other.json"
    other.write_text(json.dumps({"turns": [{"text": "From the other model."}]}))
    kinds = tmp_path / ".claude" / "agents"
    kinds.mkdir(parents=True)
    head = f"name: scout\ndescription: looks\nmodel: scripted:{other}"
    (kinds / "scout.md").write_text(f"---\n{head}\n---\nLook around.\n")
    hired = call("Agent", "a1", description="look", prompt="Look around.", subagent_type="scout")

    lines = streamed(tmp_path, {"calls": [hired]}, {"text": "Done."}, flags=("--trust",))

    (result,) = [line for line in lines if line["type"] == "user" and line["parent_tool_use_id"] is None]
    assert "From the other model." in json.dumps(result)
    assert lines[-1]["result"] == "Done."


@pytest.mark.parametrize("name", ["sonnet", "claude-opus-4-7"])
def test_a_kind_that_names_a_model_nobody_can_ask_has_that_of_the_session(tmp_path: Path, name: str) -> None:
    put(tmp_path / ".claude/agents/a.md", f"---\nname: cook\ndescription: Cooks.\nmodel: {name}\n---\nCook.")
    cook = call("Agent", "a1", description="cook", prompt="Cook.", subagent_type="cook")

    lines = streamed(tmp_path, {"calls": [cook]}, {"text": "Soup."}, {"text": "Done."}, flags=("--trust",))

    (soup,) = [line for line in lines if line.get("parent_tool_use_id") and line["type"] == "assistant"]
    assert soup["message"]["model"].startswith("scripted:")
    assert lines[-1]["result"] == "Done."
