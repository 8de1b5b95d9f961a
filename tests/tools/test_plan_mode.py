"""EnterPlanMode and ExitPlanMode: a mode that a person's answer ends."""

from __future__ import annotations

from pathlib import Path

from ferrule.app.build import Settings, open_session
from ferrule.core.calls import Status, ToolCall
from ferrule.core.content import Markdown, plain_text
from ferrule.core.events import NoteAdded, TurnEnded
from ferrule.core.ports import Answer, Unanswered
from ferrule.core.state import SessionState
from ferrule.engine.session import Session
from ferrule.permissions.modes import Mode
from ferrule.providers.scripted import says
from ferrule.testing import RecordingModel, well_formed
from ferrule.testing.tool_contract import ToolContract
from ferrule.tools.enter_plan_mode import EnterPlanMode
from ferrule.tools.exit_plan_mode import NOBODY, PLAN, ExitPlanMode
from tests.requirement import requirement
from tests.tools.answering import Person

YES, NO = Answer(("Yes",)), Answer(("No",))


class ModesOf:
    """Of a state that may come later, so that tools can be made before the session is."""

    def __init__(self, state: SessionState | None = None) -> None:
        self.state = state or SessionState("/")

    def current(self) -> str:
        return self.state.mode or "default"

    def before(self) -> str:
        return self.state.mode_before or "default"


class Planning(ModesOf):
    def current(self) -> str:
        return "plan"


class TestEnterPlanModeContract(ToolContract):
    samples = ({},)

    def make(self) -> EnterPlanMode:
        return EnterPlanMode(ModesOf(), has_approver=True)


class TestExitPlanModeContract(ToolContract):
    samples = ({"plan": "# Plan"},)

    def make(self) -> ExitPlanMode:
        return ExitPlanMode(Planning(), Person(YES))


def _session(tmp_path: Path, person: Person | None, *, mode: str = "") -> Session:
    modes = ModesOf()
    settings = Settings(cwd=str(tmp_path), mode=Mode.BYPASS, state_folder=tmp_path / "state")
    session = open_session(settings, tools=[EnterPlanMode(modes, has_approver=True), ExitPlanMode(modes, person)])
    modes.state = session.state
    session.state.mode = mode
    return session


def _exit(id: str = "1") -> ToolCall:
    return ToolCall(id, "ExitPlanMode", {"plan": "1. Look\n2. Change"})


@requirement("TASK-3")
async def test_an_approved_plan_brings_the_mode_before_back(tmp_path: Path) -> None:
    person = Person(Answer(("Yes",), "but quickly"))
    session = _session(tmp_path, person, mode="acceptEdits")

    (entered,) = await session.run([ToolCall("1", "EnterPlanMode", {})])
    planning = session.state.mode
    (left,) = await session.run([_exit("2")])

    assert (entered.status, planning) == (Status.OK, "plan")
    assert plain_text(left.content) == (
        "The plan is approved and the mode is `acceptEdits` again. Carry it out. The person adds: but quickly"
    )
    assert (session.state.mode, session.state.values[PLAN]) == ("acceptEdits", "1. Look\n2. Change")
    ((questions, asker),) = person.asked
    assert (questions[0].about, asker) == (Markdown("1. Look\n2. Change"), "main")


@requirement("TASK-3")
async def test_words_of_the_person_let_planning_go_on(tmp_path: Path) -> None:
    session = _session(tmp_path, Person(Answer(text="Use SQLite")), mode="plan")

    (outcome,) = await session.run([_exit()])

    assert plain_text(outcome.content).endswith("The person says: Use SQLite")
    assert (session.state.mode, session.state.stopped) == ("plan", False)


@requirement("TASK-3")
async def test_a_rejected_plan_ends_the_turn(tmp_path: Path) -> None:
    session = _session(tmp_path, Person(NO), mode="plan")
    model = RecordingModel(says("Here is my plan.", _exit()), says("And on I go."))

    async with session.ask("Do it", model) as events:
        ended = [envelope.event async for envelope in events if isinstance(envelope.event, TurnEnded)]

    assert len(model.requests) == 1
    assert ended == [TurnEnded("end")]
    assert well_formed(session.history)
    assert session.state.mode == "plan"


@requirement("TASK-3")
async def test_after_a_rejected_plan_the_next_prompt_is_answered(tmp_path: Path) -> None:
    session = _session(tmp_path, Person(refusing=Unanswered("declined")), mode="plan")
    model = RecordingModel(says("", _exit()), says("", ToolCall("2", "Glob", {"pattern": "*"})), says("Done."))

    for prompt in ("Do it", "Then look"):
        async with session.ask(prompt, model) as events:
            _ = [envelope async for envelope in events]

    assert len(model.requests) == 3


@requirement("TASK-3")
async def test_leaving_plan_mode_outside_of_it_is_an_error(tmp_path: Path) -> None:
    person = Person(YES)
    session = _session(tmp_path, person)

    (outcome,) = await session.run([_exit()])

    assert outcome.status is Status.FAILED
    assert plain_text(outcome.content).startswith("Plan mode is not on")
    assert person.asked == []


@requirement("TASK-3")
async def test_with_nobody_there_plan_mode_stays_on(tmp_path: Path) -> None:
    session = _session(tmp_path, Person(refusing=Unanswered("nobody")), mode="plan")

    (outcome,) = await session.run([_exit()])

    assert (outcome.status, plain_text(outcome.content)) == (Status.FAILED, NOBODY)
    assert session.state.mode == "plan"


@requirement("TASK-3", "TASK-5", "CLI-1")
async def test_where_nobody_can_answer_no_tool_that_needs_an_answer_is_offered_and_the_plan_is_the_answer(
    tmp_path: Path,
) -> None:
    settings = Settings(cwd=str(tmp_path), mode=Mode.PLAN, state_folder=tmp_path / "state")
    alone, accompanied = open_session(settings), open_session(settings, questioner=Person(YES))
    model = RecordingModel(says("1. Look\n2. Change"))

    async with alone.ask("Plan it", model) as events:
        notes = [one.event.text async for one in events if isinstance(one.event, NoteAdded)]

    missing = {tool.name for tool in accompanied.registry.pool} - {tool.name for tool in alone.registry.pool}
    assert missing == {"AskUserQuestion", "EnterPlanMode", "ExitPlanMode"}
    assert "the plan is your answer" in notes[0]
    assert "ExitPlanMode" not in notes[0]


@requirement("TASK-3")
async def test_a_change_of_mode_keeps_its_place_among_the_calls_of_a_message(tmp_path: Path) -> None:
    session = _session(tmp_path, Person(YES))
    before, after = ({"file_path": str(tmp_path / name), "content": "x"} for name in ("before", "after"))

    outcomes = await session.run(
        [ToolCall("1", "Write", before), ToolCall("2", "EnterPlanMode", {}), ToolCall("3", "Write", after)]
    )

    assert [outcome.status for outcome in outcomes] == [Status.OK, Status.OK, Status.DENIED]


async def test_entering_twice_is_an_error(tmp_path: Path) -> None:
    session = _session(tmp_path, Person(YES))

    outcomes = await session.run([ToolCall("1", "EnterPlanMode", {}), ToolCall("2", "EnterPlanMode", {})])

    assert [outcome.status for outcome in outcomes] == [Status.OK, Status.FAILED]


def test_without_modes_they_are_off() -> None:
    assert EnterPlanMode().unavailable() == ExitPlanMode().unavailable() == "this session has no permission modes"


# With the modes of a session


async def _statuses(session: Session, *calls: ToolCall) -> list[Status]:
    return [outcome.status for outcome in await session.run(calls)]


@requirement("TASK-3")
async def test_nothing_is_changed_until_the_plan_is_approved(tmp_path: Path) -> None:
    settings = Settings(cwd=str(tmp_path), mode=Mode.ACCEPT_EDITS, state_folder=tmp_path / "state")
    session = open_session(settings, questioner=Person(YES))
    write = ToolCall("w", "Write", {"file_path": str(tmp_path / "new.txt"), "content": "x"})

    planning = await _statuses(session, ToolCall("1", "EnterPlanMode", {}), write)
    approved = await _statuses(session, _exit(), write)

    assert planning == [Status.OK, Status.DENIED]
    assert approved == [Status.OK, Status.OK]
    assert (tmp_path / "new.txt").read_text() == "x"


@requirement("TASK-3")
async def test_a_session_that_began_with_planning_goes_on_with_the_default(tmp_path: Path) -> None:
    settings = Settings(cwd=str(tmp_path), mode=Mode.PLAN, state_folder=tmp_path / "state")
    session = open_session(settings, questioner=Person(YES))
    model = RecordingModel(says("", _exit()), says("Now I begin."))

    async with session.ask("Do it", model) as events:
        notes = [one.event.kind async for one in events if isinstance(one.event, NoteAdded)]

    assert notes == ["plan_mode", "plan_mode"]
    assert session.state.mode == "default"
