"""The file tools in one session: what one shows, the others know."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ferrule.app.build import Settings, open_session
from ferrule.core.calls import ToolCall, ToolOutcome
from ferrule.core.content import Text, plain_text
from ferrule.engine.session import Session
from ferrule.permissions.modes import Mode
from ferrule.providers.scripted import says
from ferrule.testing import RecordingModel
from tests.requirement import requirement

NOTEBOOK = {
    "cells": [
        {"cell_type": "code", "id": "a", "metadata": {}, "source": ["1 + 1"], "outputs": [], "execution_count": None}
    ],
    "metadata": {},
    "nbformat": 4,
    "nbformat_minor": 5,
}


@pytest.fixture
def session(tmp_path: Path) -> Session:
    return at(tmp_path)


def at(folder: Path, **settings: Any) -> Session:
    state = folder.parent / f"{folder.name}-state"
    return open_session(Settings(cwd=str(folder), mode=Mode.BYPASS, state_folder=state, **settings))


async def done(session: Session, *calls: tuple[str, dict[str, Any]]) -> list[ToolOutcome]:
    return await session.run(ToolCall(f"call-{n}", name, arguments) for n, (name, arguments) in enumerate(calls))


@requirement("FILE-2")
async def test_reading_editing_and_writing_follow_each_other_in_one_message(session: Session, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\ntwo\n")

    outcomes = await done(
        session,
        ("Read", {"file_path": "a.txt"}),
        ("Edit", {"file_path": "a.txt", "old_string": "one", "new_string": "1"}),
        ("Write", {"file_path": "a.txt", "content": "1\n2\n"}),
        ("Read", {"file_path": "a.txt"}),
    )

    assert [outcome.is_error for outcome in outcomes] == [False] * 4
    assert plain_text(outcomes[-1].content) == "1\t1\n2\t2"


@requirement("FILE-2")
async def test_a_page_is_not_the_file_and_two_pages_are(session: Session, tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("one\ntwo\nthree\n")
    write = ("Write", {"file_path": "a.txt", "content": "all new\n"})

    first = await done(session, ("Read", {"file_path": "a.txt", "limit": 2}), write)
    second = await done(session, ("Read", {"file_path": "a.txt", "offset": 3}), write)

    assert [outcome.is_error for outcome in (*first, *second)] == [False, True, False, False]
    assert path.read_text() == "all new\n"


@requirement("FILE-2", "READ-1")
async def test_a_file_with_a_line_that_was_cut_is_not_known_whole(session: Session, tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("x" * 5_000 + "\nend\n")

    read, write, edit = await done(
        session,
        ("Read", {"file_path": "a.txt"}),
        ("Write", {"file_path": "a.txt", "content": ""}),
        ("Edit", {"file_path": "a.txt", "old_string": "end", "new_string": "END"}),
    )

    assert [read.is_error, write.is_error, edit.is_error] == [False, True, False]
    assert path.read_text().endswith("\nEND\n")


@requirement("NB-1", "READ-6")
async def test_a_notebook_that_was_read_can_be_edited(session: Session, tmp_path: Path) -> None:
    path = tmp_path / "a.ipynb"
    path.write_text(json.dumps(NOTEBOOK))
    edit = ("NotebookEdit", {"notebook_path": "a.ipynb", "cell_id": "a", "new_source": "2 + 2"})

    (unread,) = await done(session, edit)
    read, edited = await done(session, ("Read", {"file_path": "a.ipynb"}), edit)

    assert [unread.is_error, read.is_error, edited.is_error] == [True, False, False]
    assert json.loads(path.read_text())["cells"][0]["source"] == ["2 + 2"]


@requirement("READ-3")
async def test_in_a_conversation_the_same_again_is_a_stub_until_something_changes(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("one\ntwo\n")
    session = at(tmp_path)
    look = {"file_path": "a.txt"}
    edit = {"file_path": "a.txt", "old_string": "one", "new_string": "1"}
    model = RecordingModel(
        says("", ToolCall("1", "Read", look)),
        says("", ToolCall("2", "Read", look)),
        says("", ToolCall("3", "Edit", edit)),
        says("", ToolCall("4", "Read", look)),
        says("done"),
    )

    async with session.ask("go", model) as events:
        async for _ in events:
            pass

    results = {r.call_id: plain_text(r.content) for turn in session.history for r in getattr(turn, "results", ())}
    assert "1\tone" in results["1"]
    assert "has not changed" in results["2"]
    assert "1\t1" in results["4"]


@requirement("READ-1", "READ-10")
async def test_budget_and_reminder_are_settings(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("word and word and word\n" * 2_000)
    session = at(tmp_path, read_tokens=1_000, reminder="Mind what you read.", reminder_off_for=("careful",))

    (told,) = await done(session, ("Read", {"file_path": "a.txt"}))
    session.model, session.turn = "careful", 1
    (untold,) = await done(session, ("Read", {"file_path": "a.txt"}))

    assert told.content[-1] == Text("Mind what you read.")
    assert "Read on with offset " in plain_text(told.content)
    assert len(plain_text(told.content)) < 5_000
    assert "Mind what you read." not in plain_text(untold.content)


@requirement("FILE-2", "BUD-2", "BUD-6")
@pytest.mark.parametrize(
    "settings", [{"message_limit": 3_000}, {"result_limits": {"Read": 1_000}}, {"result_limits": {"Grep": 500}}]
)
async def test_what_the_budget_cut_away_was_not_seen(tmp_path: Path, settings: dict[str, Any]) -> None:
    path = tmp_path / "a.txt"
    path.write_text("".join(f"line {n} of many\n" for n in range(200)))
    session = at(tmp_path, **settings)
    look = (
        ("Grep", {"pattern": "line", "path": "a.txt", "output_mode": "content"})
        if "Grep" in settings.get("result_limits", {})
        else ("Read", {"file_path": "a.txt"})
    )

    await done(session, look)
    (write,) = await done(session, ("Write", {"file_path": "a.txt", "content": ""}))

    assert write.is_error
    assert path.stat().st_size > 0
