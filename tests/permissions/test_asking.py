"""A person who is asked: one question at a time, and an "always" that answers the next."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from ferrule.app.build import Settings, open_session
from ferrule.core.calls import Status, ToolCall
from ferrule.core.content import Diff, plain_text
from ferrule.engine.session import Session
from ferrule.permissions.approvals import AnswerScope, ApprovalAnswer, ApprovalQuestion
from tests.permissions.scene import rules_of
from tests.requirement import requirement


class Waiting:
    """Answers when it is told to, and remembers what it was asked."""

    def __init__(self, *answers: ApprovalAnswer) -> None:
        self.asked: list[ApprovalQuestion] = []
        self.at_once = 0
        self.most_at_once = 0
        self._answers = list(answers)

    async def answer(self, question: ApprovalQuestion, /) -> ApprovalAnswer:
        self.asked.append(question)
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        await asyncio.sleep(0)
        self.at_once -= 1
        return self._answers.pop(0)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    (workspace / "a.txt").write_text("one\n")
    return workspace


def opened(folder: Path, person: Waiting, **rules: list[str]) -> Session:
    settings = Settings(cwd=str(folder), rules=rules_of(rules), state_folder=folder.parent / "state")
    return open_session(settings, person=person)


@pytest.fixture
async def closing() -> AsyncIterator[list[Session]]:
    sessions: list[Session] = []
    yield sessions
    for session in sessions:
        await session.close()


async def said(session: Session, *calls: ToolCall) -> list[tuple[Status, str]]:
    return [(outcome.status, plain_text(outcome.content)) for outcome in await session.run(calls)]


@requirement("PERM-8")
async def test_an_always_answers_the_same_call_that_waits_behind_it(folder: Path, closing: list[Session]) -> None:
    person = Waiting(ApprovalAnswer(allowed=True, reach=AnswerScope.SESSION))
    closing.append(session := opened(folder, person))
    calls = [ToolCall(str(number), "Bash", {"command": "mkdir -p made"}) for number in range(3)]

    outcomes = await said(session, *calls)

    assert [status for status, _ in outcomes] == [Status.OK] * 3
    assert len(person.asked) == 1
    assert person.asked[0].rules == ("Bash(mkdir -p made)",)


async def test_questions_come_one_at_a_time(folder: Path, closing: list[Session]) -> None:
    person = Waiting(*[ApprovalAnswer(allowed=True)] * 4)
    closing.append(session := opened(folder, person))

    await said(session, *(ToolCall(str(n), "Write", {"file_path": f"{n}.txt", "content": "x\n"}) for n in range(4)))

    assert (len(person.asked), person.most_at_once) == (4, 1)


async def test_the_question_for_an_edit_shows_the_diff(folder: Path, closing: list[Session]) -> None:
    person = Waiting(ApprovalAnswer(allowed=True))
    closing.append(session := opened(folder, person))
    edit = {"file_path": "a.txt", "old_string": "one", "new_string": "two"}

    await said(session, ToolCall("1", "Read", {"file_path": "a.txt"}), ToolCall("2", "Edit", edit))

    (question,) = person.asked
    assert isinstance(question.view, Diff)
    assert "-one\n+two\n" in question.view.patch
    assert (folder / "a.txt").read_text() == "two\n"


async def test_what_the_person_says_with_a_no_is_what_the_model_reads(folder: Path, closing: list[Session]) -> None:
    person = Waiting(ApprovalAnswer(allowed=False, words="the person said no, and: use git rm"))
    closing.append(session := opened(folder, person))

    ((status, words),) = await said(session, ToolCall("1", "Bash", {"command": "rm a.txt"}))

    assert status is Status.DENIED
    assert words == "Bash was not allowed: the person said no, and: use git rm."
    assert (folder / "a.txt").exists()


async def test_an_input_that_the_person_changed_is_what_runs(folder: Path, closing: list[Session]) -> None:
    person = Waiting(ApprovalAnswer(allowed=True, arguments={"command": "touch other"}))
    closing.append(session := opened(folder, person))

    await said(session, ToolCall("1", "Bash", {"command": "rm a.txt"}))

    assert (folder / "a.txt").exists()
    assert (folder / "other").exists()


async def test_a_critical_risk_is_asked_about_whatever_was_granted(folder: Path, closing: list[Session]) -> None:
    person = Waiting(ApprovalAnswer(allowed=False))
    closing.append(session := opened(folder, person, allow=["Bash"]))

    await said(session, ToolCall("1", "Bash", {"command": f"rm -rf {folder}"}))

    (question,) = person.asked
    assert [risk.severity for risk in question.verdict.risks][:1] == ["critical"]
    assert question.rules == ()
    assert folder.exists()


@requirement("PERM-8")
async def test_a_saved_always_holds_in_the_next_session_too(folder: Path, closing: list[Session]) -> None:
    person = Waiting(ApprovalAnswer(allowed=True, reach=AnswerScope.SAVED))
    closing.append(session := opened(folder, person))

    await said(session, ToolCall("1", "Bash", {"command": "mkdir -p made"}))

    assert "Bash(mkdir -p made)" in (folder / ".ferrule" / "settings.local.json").read_text()
