"""The doubles and helpers that ship for tests of tools and conversations."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ferrule.app.build import Settings, open_session
from ferrule.core.calls import Status, ToolCall
from ferrule.core.content import Text
from ferrule.core.context import ToolContext
from ferrule.core.events import ListChanged, TextStreamed, ToolFinished
from ferrule.core.model import AssistantTurn, ResultTurn, ToolResult, Turn, UserTurn
from ferrule.core.verdicts import Behavior
from ferrule.engine.session import Session
from ferrule.permissions.modes import Mode
from ferrule.providers.scripted import says
from ferrule.testing import FixedJudge, Recorder, RecordingModel, allow, ask, deny, run_calls, well_formed
from tests.requirement import requirement

CALL = ToolCall("1", "Read", {"file_path": "a"})
RESULT = ToolResult("1", (Text("x"),), is_error=False)


@requirement("CON-14")
def test_a_recorder_keeps_events_by_kind() -> None:
    recorder = Recorder()

    recorder(TextStreamed("a"))
    recorder(ListChanged("tools", ("x",)))
    recorder(TextStreamed("b"))

    assert recorder.kinds() == ["TextStreamed", "ListChanged", "TextStreamed"]
    assert recorder.of(TextStreamed) == [TextStreamed("a"), TextStreamed("b")]
    assert recorder.of(ToolFinished) == []


@requirement("CON-14")
def test_verdicts_for_tests_say_who_they_are() -> None:
    assert [verdict().behavior for verdict in (allow, ask, deny)] == list(Behavior)
    assert deny("no", rule="Read").rule == "Read"


@requirement("CON-14")
async def test_a_fixed_judge_remembers_what_it_was_shown(tmp_path: Path) -> None:
    judge = FixedJudge(deny("not today"))
    settings = Settings(cwd=str(tmp_path), mode=Mode.BYPASS, state_folder=tmp_path / "state")
    session = open_session(settings, judges=[judge])

    (outcome,) = await session.run([CALL])

    assert (outcome.status, outcome.content) == (Status.DENIED, (Text("Read was not allowed: not today."),))
    assert [proposal.arguments for proposal in judge.seen] == [{"file_path": str(tmp_path / "a")}]


@requirement("CON-14")
async def test_calls_run_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("one")

    outcomes = await run_calls(tmp_path, [CALL, CALL])

    assert [outcome.content[0] for outcome in outcomes] == [Text("1\tone")] * 2


@requirement("CON-14")
async def test_a_recording_model_keeps_each_request_as_it_was(ferrule_session: Session) -> None:
    model = RecordingModel(says("", CALL), says("done"))

    async with ferrule_session.ask("go", model) as events:
        async for _ in events:
            pass

    histories = [history for _, history in model.requests]
    assert histories[0] == (UserTurn.saying("go"),)
    assert [type(turn) for turn in histories[1]] == [UserTurn, AssistantTurn, ResultTurn]
    assert well_formed(ferrule_session.history)


@requirement("CON-14", "PIPE-4")
@pytest.mark.parametrize(
    ("history", "is_well_formed"),
    [
        ([], True),
        ([UserTurn.saying("a")], True),
        ([AssistantTurn((CALL,)), ResultTurn((RESULT,))], True),
        ([AssistantTurn((CALL,))], False),
        ([AssistantTurn((CALL,)), UserTurn.saying("a")], False),
        ([AssistantTurn((CALL, CALL)), ResultTurn((RESULT,))], False),
        ([AssistantTurn((Text("x"),)), ResultTurn((RESULT,))], False),
        ([UserTurn.saying("a"), ResultTurn(())], False),
        ([ResultTurn(())], False),
    ],
)
def test_a_history_is_well_formed_when_every_call_has_its_result(history: list[Turn], is_well_formed: bool) -> None:
    assert well_formed(history) is is_well_formed


@requirement("CON-14")
def test_the_plugin_gives_fixtures(recorder: Recorder, tool_context: ToolContext, tmp_path: Path) -> None:
    assert (recorder.events, tool_context.cwd) == ([], str(tmp_path))


@requirement("CON-14")
async def test_the_session_fixture_forbids_nothing(ferrule_session: Session) -> None:
    (outcome,) = await ferrule_session.run([ToolCall("1", "Read", {"file_path": "/etc/hostname"})])

    assert outcome.status is not Status.DENIED


@requirement("CON-14")
def test_loading_the_plugin_loads_nothing_of_the_engine() -> None:
    program = "import sys, ferrule.testing.plugin; print(*(name for name in sys.modules if name.startswith('ferrule')))"

    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, text=True).stdout

    assert "ferrule.engine.session" not in loaded.split()
    assert "ferrule.testing.plugin" in loaded.split()
