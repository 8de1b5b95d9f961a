"""Agents beside the conversation: looked at and ended like background commands."""

from __future__ import annotations

import asyncio
from pathlib import Path

from ferrule.core.calls import ToolCall
from ferrule.core.content import plain_text
from ferrule.core.events import NoteAdded, TurnEnded
from ferrule.engine.message_history import last_answer
from ferrule.engine.session import Session
from ferrule.host.processes.background_tasks import Background, TaskState
from ferrule.providers.scripted import says
from tests.agents.cast import Cast, hire, opened, played, results, until
from tests.requirement import requirement


async def _said(session: Session, name: str, **arguments: object) -> str:
    (outcome,) = await session.run([ToolCall("look", name, arguments)])
    return plain_text(outcome.content)


@requirement("TASK-1")
async def test_an_agent_in_the_background_is_told_of_when_it_ends(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("x")
    launch = hire("1", "work", run_in_background=True)
    model = Cast(
        main=[says("", launch), says("", ToolCall("o", "TaskOutput", {"task_id": "general-purpose_1"})), says("")],
        work=[says("", ToolCall("g", "Glob", {"pattern": "*"})), says("All done.")],
    )
    session = opened(tmp_path)

    launched, output = await played(session, model)

    assert launched.startswith("The agent general-purpose_1 works in the background.")
    assert "<agent_report>\nAll done.\n</agent_report>" in output
    assert "general-purpose_1 completed" in output
    await session.close()


@requirement("TASK-1")
async def test_one_that_nobody_looked_at_leaves_a_note_for_the_next_turn(tmp_path: Path) -> None:
    model = Cast(
        main=[says("", hire("1", "work", run_in_background=True)), says("Started."), says("I see.")],
        work=[says("All done.")],
    )
    session = opened(tmp_path)
    await played(session, model)
    await until(lambda: _background(session).listing()[0].state is TaskState.COMPLETED)

    async with session.ask("go on", model) as events:
        notes = [one.event.text async for one in events if isinstance(one.event, NoteAdded)]

    assert len(notes) == 1
    assert notes[0].startswith("The agent general-purpose_1 is done")
    assert "<agent_report>\nAll done.\n</agent_report>" in notes[0]
    await session.close()


@requirement("TASK-1", "CLI-1")
async def test_where_nobody_can_be_told_later_the_end_of_the_turn_waits_for_agents_and_hands_over_each_report(
    tmp_path: Path,
) -> None:
    command = ToolCall("b", "Bash", {"command": "sleep 0.3"})
    model = Cast(
        main=[
            says("", hire("1", "quick", run_in_background=True), hire("2", "slow", run_in_background=True)),
            says("I report as soon as they are done."),
            says("One is done."),
            says("Both are done."),
        ],
        quick=[says("The first report.")],
        slow=[says("", command), says("The second report.")],
    )
    session = opened(tmp_path)
    session.patience = lambda: 60.0

    async with session.ask("main", model) as events:
        seen = [one.event async for one in events]

    notes = [event.text for event in seen if isinstance(event, NoteAdded) and event.kind == "finished_tasks"]
    assert "The first report." in "".join(notes)
    assert "The second report." in "".join(notes)
    assert seen[-1] == TurnEnded("end")
    assert last_answer(session.history) in ("One is done.", "Both are done.")
    await session.close()


async def test_an_agent_that_takes_too_long_is_given_up_and_the_model_answers_without_it(tmp_path: Path) -> None:
    command = ToolCall("b", "Bash", {"command": "sleep 300"})
    model = Cast(
        main=[says("", hire("1", "slow", run_in_background=True)), says("Waiting."), says("Without it.")],
        slow=[says("", command), says("")],
    )
    session = opened(tmp_path)
    session.patience = lambda: 0.2

    async with asyncio.timeout(30), session.ask("main", model) as events:
        notes = [one.event async for one in events if isinstance(one.event, NoteAdded)]

    assert [note.kind for note in notes] == ["running_tasks"]
    assert "is not waited for any longer" in notes[0].text
    assert last_answer(session.history) == "Without it."
    await session.close()


@requirement("TASK-1", "PIPE-5")
async def test_it_can_be_ended_with_its_processes(tmp_path: Path) -> None:
    mark = tmp_path / "started"
    command = ToolCall("b", "Bash", {"command": f"touch {mark}; sleep 300"})
    model = Cast(
        main=[says("", hire("1", "work", run_in_background=True)), says("")], work=[says("", command), says("")]
    )
    session = opened(tmp_path)
    await played(session, model)
    await until(mark.exists)

    said = await _said(session, "KillShell", shell_id="general-purpose_1")

    assert said.startswith("general-purpose_1 was ended, with everything it started.")
    assert "Background command or agent general-purpose_1 was not found" in await _said(
        session, "TaskOutput", task_id="general-purpose_1"
    )
    await session.close()


async def test_closing_the_session_ends_it(tmp_path: Path) -> None:
    mark = tmp_path / "started"
    command = ToolCall("b", "Bash", {"command": f"touch {mark}; sleep 300"})
    model = Cast(
        main=[says("", hire("1", "work", run_in_background=True)), says("")], work=[says("", command), says("")]
    )
    session = opened(tmp_path)
    await played(session, model)
    await until(mark.exists)

    async with asyncio.timeout(20):
        await session.close()

    assert _background(session).listing() == ()
    assert results(session)[0].startswith("The agent")


def _background(session: Session) -> Background:
    found = session.registry.pool.get("TaskOutput")
    assert found is not None
    return found[0]._shell.background  # pyright: ignore[reportAttributeAccessIssue]
