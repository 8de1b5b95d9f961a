"""TodoWrite: one list, replaced as a whole, with one task in progress."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ferrule.app.build import Settings, open_session
from ferrule.core.calls import Status, ToolCall, ToolOutcome
from ferrule.core.content import Todo, TodoItem, plain_text
from ferrule.core.events import ValueChanged
from ferrule.engine.session import Session
from ferrule.permissions.modes import Mode
from ferrule.testing import run_call
from ferrule.testing.tool_contract import ToolContract
from ferrule.tools.todo_write import TODOS, TodoWrite
from tests.requirement import requirement

DONE = {"content": "Read it", "status": "completed", "activeForm": "Reading it"}
NOW = {"content": "Fix it", "status": "in_progress", "activeForm": "Fixing it"}
LATER = {"content": "Test it", "status": "pending"}


class TestTodoWriteContract(ToolContract):
    samples = ({"todos": [DONE, NOW, LATER]}, {"todos": []}, {"todos": [DONE]})

    def make(self) -> TodoWrite:
        return TodoWrite()


async def _written(session: Session, *todos: dict[str, Any]) -> ToolOutcome:
    (outcome,) = await session.run([ToolCall("1", "TodoWrite", {"todos": list(todos)})])
    return outcome


@requirement("TASK-4")
async def test_the_list_is_replaced_as_a_whole_and_kept_in_a_form_that_can_be_saved(tmp_path: Path) -> None:
    session = open_session(Settings(cwd=str(tmp_path), mode=Mode.BYPASS, state_folder=tmp_path / "state"))

    await _written(session, NOW, LATER)
    outcome = await _written(session, DONE, NOW)

    assert plain_text(outcome.content) == "The list is saved: 1 completed, 1 open. In progress: Fixing it."
    assert outcome.view == Todo((TodoItem("Read it", "completed"), TodoItem("Fixing it", "in_progress")))
    assert json.loads(json.dumps(session.state.values[TODOS])) == [DONE, NOW]


@requirement("TASK-4")
async def test_a_list_that_is_refused_leaves_the_one_before(tmp_path: Path) -> None:
    session = open_session(Settings(cwd=str(tmp_path), mode=Mode.BYPASS, state_folder=tmp_path / "state"))
    await _written(session, NOW)

    outcome = await _written(session, NOW, {**NOW, "content": "Also this"})

    assert outcome.status is Status.INVALID
    assert [todo["content"] for todo in session.state.values[TODOS]] == ["Fix it"]


@requirement("TASK-4")
@pytest.mark.parametrize(
    ("todos", "words"),
    [
        ([NOW, {**NOW, "content": "Second"}], "2 tasks are in progress, among them `Fix it` and `Second`."),
        ([DONE, LATER], "Tasks are open and none is in progress."),
    ],
)
async def test_exactly_one_is_in_progress_while_any_is_open(tmp_path: Path, todos: list[Any], words: str) -> None:
    outcome = await run_call(tmp_path, TodoWrite(), {"todos": todos})

    assert outcome.status is Status.INVALID
    assert words in plain_text(outcome.content)


@pytest.mark.parametrize("todo", [{**NOW, "status": "done"}, {**NOW, "priority": "high"}, {**NOW, "content": ""}])
async def test_a_task_that_is_none_is_refused_by_its_field(tmp_path: Path, todo: dict[str, Any]) -> None:
    outcome = await run_call(tmp_path, TodoWrite(), {"todos": [todo]})

    assert outcome.status is Status.INVALID
    assert "todos" in plain_text(outcome.content)


async def test_an_empty_list_says_so(tmp_path: Path) -> None:
    outcome = await run_call(tmp_path, TodoWrite(), {"todos": []})

    assert plain_text(outcome.content) == "The list is empty now."


@requirement("TASK-4", "CON-3")
async def test_a_list_that_was_written_as_text_is_read_and_listeners_hear_of_it(tmp_path: Path) -> None:
    session = open_session(Settings(cwd=str(tmp_path), state_folder=tmp_path / "state"))
    heard: list[ValueChanged] = []

    with session.bus.listen(lambda one: heard.append(one.event) if isinstance(one.event, ValueChanged) else None):
        (outcome,) = await session.run([ToolCall("1", "TodoWrite", {"todos": json.dumps([NOW])})])

    assert outcome.status is Status.OK
    assert [(one.key, one.value[0]["content"]) for one in heard] == [("todos", "Fix it")]
