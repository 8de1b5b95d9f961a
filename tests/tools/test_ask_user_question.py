"""AskUserQuestion: a person answers, or nobody can."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ferrule.app.build import Settings, open_session
from ferrule.core.calls import Status, ToolCall
from ferrule.core.content import Table, plain_text
from ferrule.core.ports import Answer, Choice, Question, Unanswered
from ferrule.permissions.modes import Mode
from ferrule.testing import Answering, allow, run_call
from ferrule.testing.tool_contract import ToolContract
from ferrule.tools.ask_user_question import DECLINED, NOBODY, AskUserQuestion
from tests.requirement import requirement
from tests.tools.answering import Person

ONE: dict[str, Any] = {
    "question": "Which database?",
    "header": "Database",
    "options": [{"label": "SQLite", "description": "one file"}, {"label": "Postgres"}],
}
TWO: dict[str, Any] = {**ONE, "question": "Which tests?", "header": "Tests", "multiSelect": True}


class TestAskUserQuestionContract(ToolContract):
    samples = ({"questions": [ONE]},)

    def make(self) -> AskUserQuestion:
        return AskUserQuestion(Person(Answer(("SQLite",))))


@requirement("TASK-5")
async def test_a_person_answers_by_choice_and_in_words(tmp_path: Path) -> None:
    person = Person(Answer(("SQLite",)), Answer(("SQLite", "Postgres"), "and MariaDB"))

    outcome = await run_call(tmp_path, AskUserQuestion(person), {"questions": [ONE, TWO]})

    assert plain_text(outcome.content) == (
        "Question: Which database?\nAnswer: SQLite\n\nQuestion: Which tests?\nAnswer: SQLite, Postgres, and MariaDB"
    )
    assert isinstance(outcome.view, Table)
    ((questions, asker),) = person.asked
    choices = (Choice("SQLite", "one file"), Choice("Postgres"))
    assert questions == (
        Question("Which database?", "Database", choices),
        Question("Which tests?", "Tests", choices, several=True),
    )
    assert asker == "main"


@requirement("TASK-5")
async def test_headless_it_says_that_nobody_can_answer(tmp_path: Path) -> None:
    outcome = await run_call(tmp_path, AskUserQuestion(), {"questions": [ONE]})

    assert outcome.status is Status.INVALID
    assert plain_text(outcome.content).endswith(
        "nobody is there to answer, so decide yourself and say what you assumed."
    )


@requirement("TASK-5")
@pytest.mark.parametrize(("why", "words"), [("nobody", NOBODY), ("declined", DECLINED)])
async def test_a_person_who_does_not_answer_is_told_of(tmp_path: Path, why: Any, words: str) -> None:
    outcome = await run_call(tmp_path, AskUserQuestion(Person(refusing=Unanswered(why))), {"questions": [ONE]})

    assert (outcome.status, plain_text(outcome.content)) == (Status.FAILED, words)


async def test_whoever_approves_calls_may_fill_in_the_answers(tmp_path: Path) -> None:
    answers = {"Which database?": "Postgres"}
    approver = Answering(allow(updated_arguments={"questions": [ONE, TWO], "answers": answers}))
    settings = Settings(cwd=str(tmp_path), mode=Mode.BYPASS, state_folder=tmp_path / "state")
    session = open_session(settings, tools=[AskUserQuestion(by_approver=True)], approver=approver)

    (outcome,) = await session.run([ToolCall("1", "AskUserQuestion", {"questions": [ONE, TWO]})])

    assert outcome.output.answers == (("Which database?", "Postgres"), ("Which tests?", "(no answer)"))


async def test_the_model_cannot_answer_for_the_person(tmp_path: Path) -> None:
    made_up = {"questions": [ONE], "answers": {"Which database?": "made up"}}

    asked = await run_call(tmp_path, AskUserQuestion(Person(Answer(("SQLite",)))), made_up)
    headless = await run_call(tmp_path, AskUserQuestion(), made_up)

    assert asked.output.answers == (("Which database?", "SQLite"),)
    assert headless.output is None


@pytest.mark.parametrize(
    ("questions", "words"),
    [
        ([], "questions"),
        ([ONE] * 5, "questions"),
        ([ONE, ONE], "Two of the questions are the same."),
        ([{**ONE, "options": [{"label": "a"}, {"label": "a"}]}], "has the same answer twice"),
        ([{**ONE, "options": [{"label": "a"}]}], "options"),
    ],
)
async def test_questions_that_cannot_be_asked_are_refused(tmp_path: Path, questions: list[Any], words: str) -> None:
    outcome = await run_call(tmp_path, AskUserQuestion(Person()), {"questions": questions})

    assert outcome.status is Status.INVALID
    assert words in plain_text(outcome.content)
