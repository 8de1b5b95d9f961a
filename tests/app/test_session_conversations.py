"""Whole conversations with real files and real processes."""

from __future__ import annotations

import asyncio
import os
from itertools import pairwise
from pathlib import Path

from ferrule import Session, Settings, ToolCall
from ferrule.app.kept_sessions import begin_session, continue_session
from ferrule.core.content import plain_text
from ferrule.core.events import Event, ToolProgressed, TurnEnded
from ferrule.core.model import ModelProvider, ResultTurn
from ferrule.permissions.modes import Mode
from ferrule.providers.scripted import says
from ferrule.testing import RecordingModel, well_formed
from tests.agents.test_agent_files import pages
from tests.engine.conversing import sums
from tests.host.processes.shell import until
from tests.requirement import requirement


async def ask(session: Session, prompt: str, model: ModelProvider) -> list[Event]:
    async with session.ask(prompt, model) as events:
        return [envelope.event async for envelope in events]


def last_result(session: Session) -> str:
    turn = [turn for turn in session.history if isinstance(turn, ResultTurn)][-1]
    return plain_text(turn.results[-1].content)


@requirement("PIPE-5", "LOOP-2")
async def test_an_interrupt_ends_the_processes_and_the_next_process_knows_of_it(tmp_path: Path) -> None:
    settings = Settings(cwd=str(tmp_path), state_folder=tmp_path / "state", mode=Mode.BYPASS)
    command = "sleep 1000 & echo $! > inner; echo $$ > outer; mv outer started; wait"
    async with begin_session(settings) as session, asyncio.timeout(30):
        model = RecordingModel(says("", ToolCall("1", "Bash", {"command": command})))
        async with session.ask("go", model) as events:
            await until((tmp_path / "started").exists)
            assert session.interrupt()
            seen = [envelope.event async for envelope in events if not isinstance(envelope.event, ToolProgressed)]
        processes = [int((tmp_path / name).read_text()) for name in ("inner", "started")]

        assert seen[-1] == TurnEnded("interrupted")
        assert "interrupted" in last_result(session)
        await until(lambda: not any(map(is_alive, processes)))

    async with continue_session(settings) as resumed:
        assert resumed.history == session.history


def is_alive(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


@requirement("LOOP-2", "FILE-1")
async def test_a_file_whose_content_was_compacted_away_must_be_read_again(tmp_path: Path) -> None:
    for name in ("old.txt", "new.txt"):
        (tmp_path / name).write_text("line of text\n" * 400)
    settings = Settings(cwd=str(tmp_path), state_folder=tmp_path / "state", mode=Mode.BYPASS)

    def edit(id: str, name: str) -> ToolCall:
        arguments = {"file_path": name, "old_string": "line of text\n" * 400, "new_string": "other\n"}
        return ToolCall(id, "Edit", arguments)

    async with begin_session(settings) as session:
        reads = [ToolCall(name, "Read", {"file_path": name}) for name in ("old.txt", "new.txt")]
        await ask(session, "read", RecordingModel(says("", reads[0]), says("word " * 20_000)))
        await ask(session, "read on", RecordingModel(says("", reads[1]), says("ok")))
        assert await session.compact(RecordingModel(sums("They were read.")))
        await ask(session, "edit", RecordingModel(says("", edit("1", "old.txt")), says("hm")))
        refused = last_result(session)
        await ask(session, "edit", RecordingModel(says("", edit("2", "new.txt")), says("ok")))

    assert "has not been read yet" in refused
    assert (tmp_path / "old.txt").read_text().startswith("line of text")
    assert (tmp_path / "new.txt").read_text() == "other\n"
    assert well_formed(session.history)


@requirement("LOOP-2", "FILE-1")
async def test_a_file_of_which_a_part_was_compacted_away_must_be_read_again(tmp_path: Path) -> None:
    lines = [f"line {n} of the text\n" for n in range(1, 401)]
    (tmp_path / "a.txt").write_text("".join(lines))
    settings = Settings(cwd=str(tmp_path), state_folder=tmp_path / "state", mode=Mode.BYPASS)
    parts = [ToolCall(f"{n}", "Read", {"file_path": "a.txt", "offset": n, "limit": 200}) for n in (1, 201)]
    edit = {"file_path": "a.txt", "old_string": "".join(lines[99:300]), "new_string": "other\n"}

    async with begin_session(settings) as session:
        await ask(session, "read", RecordingModel(says("", parts[0]), says("word " * 20_000)))
        await ask(session, "read on", RecordingModel(says("", parts[1]), says("ok")))
        assert await session.compact(RecordingModel(sums("It was read.")))
        shown = [result.call_id for turn in session.history if isinstance(turn, ResultTurn) for result in turn.results]
        await ask(session, "edit", RecordingModel(says("", ToolCall("edit", "Edit", edit)), says("hm")))
        refused = last_result(session)

    assert shown == ["201"]
    assert "has not been read yet" in refused
    assert (tmp_path / "a.txt").read_text() == "".join(lines)


@requirement("LOOP-2")
async def test_after_a_compaction_the_model_is_told_where_it_is_and_what_applies(tmp_path: Path) -> None:
    skill = tmp_path / "home/.claude/skills/greet/SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text("---\ndescription: Greets.\n---\nSay hello in verse.")
    (tmp_path / "sub").mkdir()
    todos = [{"content": "Fix it", "status": "in_progress", "activeForm": "Fixing it"}]
    calls = [
        ToolCall("1", "Skill", {"skill": "greet"}),
        ToolCall("2", "Write", {"file_path": str(tmp_path / "new.txt"), "content": "x"}),
        ToolCall("3", "TodoWrite", {"todos": todos}),
        ToolCall("4", "Bash", {"command": "cd sub"}),
    ]
    files = pages(tmp_path)
    settings = Settings(cwd=str(tmp_path), state_folder=tmp_path / "state", mode=Mode.BYPASS, pages=files)
    async with begin_session(settings) as session:
        await ask(session, "go", RecordingModel(*(says("", one) for one in calls), says("word " * 20_000)))
        for _ in range(2):  # what was told once is still known after the next one
            assert await session.compact(RecordingModel(sums("Much.")), entirely=True)
            await ask(session, "on", RecordingModel(says("ok")))
        session.state.mode = "plan"
        assert await session.compact(RecordingModel(sums("Much.")), entirely=True)

    told = plain_text(session.history[0].content)  # type: ignore[union-attr]
    assert f"The working directory is {tmp_path / 'sub'}." in told
    assert session.transcript_path in told
    assert "Say hello in verse." in told
    assert f"<files_you_changed>\n{tmp_path / 'new.txt'}\n" in told
    assert "Fix it" in told
    assert "Plan mode is on" in told
    assert "<prompt>\ngo\n</prompt>" in told


@requirement("LOOP-2")
async def test_a_late_turn_writes_no_more_than_an_early_one(tmp_path: Path) -> None:
    settings = Settings(cwd=str(tmp_path), state_folder=tmp_path / "state", mode=Mode.BYPASS)
    sizes: list[int] = []
    async with begin_session(settings) as session:
        for number in range(100, 160):
            look = ToolCall(str(number), "Glob", {"pattern": "*.py"})
            await ask(session, "go", RecordingModel(says("", look), says("ok")))
            (path,) = settings.state_folder.glob("projects/*/*.jsonl")
            sizes.append(os.stat(path).st_size)

    written = [after - before for before, after in pairwise(sizes[1:])]
    assert len(set(written)) == 1
