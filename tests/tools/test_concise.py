"""What the model reads is short, and it can still do all that it could."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from ferrule.app.build import Settings, open_session
from ferrule.app.tool_responses import shape
from ferrule.core.calls import ToolCall, ToolOutcome
from ferrule.core.content import Diff, plain_text
from ferrule.core.events import NoteAdded
from ferrule.core.model import ResultTurn
from ferrule.core.ports import Proposal
from ferrule.engine.session import Session
from ferrule.permissions.modes import Mode
from ferrule.providers.scripted import says
from ferrule.testing import RecordingModel
from ferrule.tools.read import REMINDER
from tests.requirement import requirement

GAP = re.compile(r"\[… lines (\d+)-(\d+) left out …\]")


def _session(folder: Path, after: Sequence[Any] = (), **more: Any) -> Session:
    state = folder.parent / f"{folder.name}-state"
    return open_session(Settings(cwd=str(folder), mode=Mode.BYPASS, state_folder=state, **more), after=after)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / "src").mkdir(parents=True)
    (folder / "src" / "a.py").write_text("import os\n\ndef f():\n    return 1\n")
    (folder / "src" / "b.py").write_text("def g():\n    return 1\n")
    return folder


Call: TypeAlias = tuple[str, dict[str, Any]]


async def _run(folder: Path, *calls: Call | Callable[[str], Call], **settings: Any) -> list[ToolOutcome]:
    """One after the other, as in messages of one call each; a call may depend on the text of the one before."""
    outcomes = list[ToolOutcome]()
    async with _session(folder, **settings) as session:
        for call in calls:
            name, arguments = call(_read(outcomes[-1])) if callable(call) else call
            outcomes += await session.run([ToolCall(f"call-{len(outcomes)}", name, arguments)])
    return outcomes


def _read(outcome: ToolOutcome) -> str:
    return plain_text(outcome.content)


async def _converse(session: Session, *messages: tuple[ToolCall, ...]) -> tuple[list[str], list[str]]:
    """The texts of all results, and those of the notes."""
    model = RecordingModel(*(says("", *calls) for calls in messages), says("done"))
    async with session:
        async with session.ask("go", model) as events:
            notes = [envelope.event.text async for envelope in events if isinstance(envelope.event, NoteAdded)]
        turns = [turn for turn in session.history if isinstance(turn, ResultTurn)]
    return [plain_text(result.content) for turn in turns for result in turn.results], notes


# Paths


@requirement("GREP-1", "GLOB-1")
async def test_paths_are_relative_to_the_working_directory_and_an_edit_takes_them(project: Path) -> None:
    found, lines, counted, edited = await _run(
        project,
        ("Glob", {"pattern": "src/a*"}),
        ("Grep", {"pattern": "return", "output_mode": "content", "glob": "a.py"}),
        ("Grep", {"pattern": "return", "output_mode": "count", "glob": "a.py"}),
        ("Edit", {"file_path": "src/a.py", "old_string": "return 1", "new_string": "return 2"}),
    )

    assert _read(found) == "src/a.py"
    assert _read(lines) == "src/a.py:4:    return 1"
    assert _read(counted).splitlines()[0] == "src/a.py:1"
    assert _read(edited) == "Edited src/a.py, line 4."
    assert "return 2" in (project / "src" / "a.py").read_text()


@requirement("GREP-1")
async def test_lines_of_one_named_file_have_no_path_and_can_be_edited(project: Path) -> None:
    lines, edited = await _run(
        project,
        ("Grep", {"pattern": "return", "output_mode": "content", "path": "src/a.py", "-B": 1}),
        ("Edit", {"file_path": "src/a.py", "old_string": "return 1", "new_string": "return 2"}),
    )

    assert _read(lines) == "3-def f():\n4:    return 1"
    assert not edited.is_error


@requirement("GREP-1", "GLOB-1")
async def test_what_is_outside_of_the_working_directory_keeps_its_whole_path(project: Path) -> None:
    _, found, lines, read = await _run(
        project,
        ("Bash", {"command": "mkdir docs && cd docs"}),
        ("Glob", {"pattern": "*.py", "path": "../src"}),
        ("Grep", {"pattern": "def g", "output_mode": "content", "path": "../src"}),
        ("Read", {"file_path": f"{project}/src/b.py"}),
    )

    assert sorted(_read(found).splitlines()) == [f"{project}/src/a.py", f"{project}/src/b.py"]
    assert _read(lines) == f"{project}/src/b.py:1:def g():"
    assert not read.is_error


@requirement("GLOB-1")
@pytest.mark.parametrize("name", ["~x.py", '"x".py', "a b.py", "x\ny.py"])
async def test_a_relative_path_leads_to_its_file_whatever_its_name(project: Path, name: str) -> None:
    (project / name).write_text("x = 1\n")

    def read_found(shown: str) -> Call:
        return "Read", {"file_path": json.loads(shown) if shown.startswith('"') else shown}

    _, read = await _run(project, ("Glob", {"pattern": "*.py"}), read_found)

    assert not read.is_error
    assert _read(read).startswith("1\tx = 1")


@requirement("HOOK-1")
async def test_programs_still_get_absolute_paths_and_whole_diffs(project: Path) -> None:
    found, lines, counted, edited, written = await _run(
        project,
        ("Glob", {"pattern": "src/a*"}),
        ("Grep", {"pattern": "return", "output_mode": "content", "path": "src/a.py"}),
        ("Grep", {"pattern": "return", "output_mode": "count", "path": "src/a.py"}),
        ("Edit", {"file_path": "src/a.py", "old_string": "return 1", "new_string": "return 2"}),
        ("Write", {"file_path": "c.py", "content": "x\n"}),
    )

    path = f"{project}/src/a.py"
    shapes = [shape(one) or {} for one in (found, lines, counted, edited, written)]
    assert shapes[0]["filenames"] == shapes[1]["filenames"] == shapes[2]["filenames"] == [path]
    assert shapes[1]["content"] == f"{path}:4:    return 1"
    assert shapes[2]["content"].startswith(f"{path}:1")
    assert shapes[3]["filePath"] == path
    assert shapes[3]["structuredPatch"][0]["lines"][-2:] == ["-    return 1", "+    return 2"]
    assert shapes[4]["filePath"] == f"{project}/c.py"
    assert isinstance(edited.view, Diff)
    assert "+    return 2" in edited.view.patch


@requirement("EDIT-6", "GLOB-1")
async def test_a_setting_brings_back_whole_paths_and_diffs(project: Path) -> None:
    found, _, edited, written = await _run(
        project,
        ("Glob", {"pattern": "src/a*"}),
        ("Read", {"file_path": "src/a.py"}),
        ("Edit", {"file_path": "src/a.py", "old_string": "return 1", "new_string": "return 2"}),
        ("Write", {"file_path": "c.py", "content": "x\n"}),
        concise=False,
    )

    assert _read(found) == f"{project}/src/a.py"
    assert "+    return 2" in _read(edited)
    assert _read(written) == f"Created {project}/c.py, 1 line.\nx"


# Changes


@requirement("EDIT-3", "EDIT-6")
async def test_an_edit_that_matched_other_quotes_shows_its_diff(project: Path) -> None:
    (project / "a.txt").write_text("say “hi”\n")

    _, edited = await _run(
        project,
        ("Read", {"file_path": "a.txt"}),
        ("Edit", {"file_path": "a.txt", "old_string": 'say "hi"', "new_string": 'say "ho"'}),
    )

    assert "+say “ho”" in _read(edited)


@requirement("EDIT-6", "FILE-2")
async def test_a_part_of_a_line_that_was_never_shown_does_not_make_the_line_known(project: Path) -> None:
    (project / "a.txt").write_text("one\nsecret two\n")

    *_, edited, written = await _run(
        project,
        ("Read", {"file_path": "a.txt", "limit": 1}),
        ("Edit", {"file_path": "a.txt", "old_string": "two", "new_string": "2"}),
        ("Write", {"file_path": "a.txt", "content": "all new\n"}),
    )

    assert not edited.is_error
    assert "only in part" in _read(written)


@requirement("FILE-4")
async def test_a_change_is_shown_once_and_not_again_with_the_next_edit(project: Path) -> None:
    path = project / "src" / "a.py"

    class SomebodyElse:
        def after(self, proposal: Proposal, outcome: object, /) -> None:
            if proposal.call.name == "Glob":
                path.write_text(path.read_text().replace("import os", "import sys"))

    results, notes = await _converse(
        _session(project, after=[SomebodyElse()]),
        (ToolCall("1", "Read", {"file_path": "src/a.py"}),),
        (ToolCall("2", "Glob", {"pattern": "nothing"}),),
        (ToolCall("3", "Edit", {"file_path": "src/a.py", "old_string": "return 1", "new_string": "return 3"}),),
    )

    assert ["import sys" in note for note in notes] == [True]
    assert results[-1] == "Edited src/a.py, line 4."
    assert "return 3" in path.read_text()


@requirement("FILE-4")
async def test_what_the_models_own_command_changed_is_named_and_what_it_deleted_is_not(project: Path) -> None:
    _, notes = await _converse(
        _session(project),
        (ToolCall("1", "Read", {"file_path": "src/a.py"}), ToolCall("2", "Read", {"file_path": "src/b.py"})),
        (ToolCall("3", "Bash", {"command": "sed -i s/1/2/ src/a.py && rm src/b.py"}),),
    )

    assert notes == ["Changed while your command ran: src/a.py."]


# Reading


@requirement("READ-10")
async def test_the_reminder_comes_once_in_a_conversation(project: Path) -> None:
    texts, _ = await _converse(
        _session(project),
        (ToolCall("1", "Read", {"file_path": "src/a.py"}), ToolCall("2", "Read", {"file_path": "src/b.py"})),
        (ToolCall("3", "Read", {"file_path": "src/b.py", "limit": 1}),),
    )

    assert [REMINDER in text for text in texts] == [True, False, False]


@requirement("READ-3")
async def test_the_same_read_twice_in_one_message_comes_once(project: Path) -> None:
    same = {"file_path": "src/a.py"}

    texts, _ = await _converse(_session(project), (ToolCall("1", "Read", same), ToolCall("2", "Read", same)))

    assert ["import os" in text for text in texts] == [True, False]


@requirement("READ-3")
async def test_whoever_has_no_conversation_gets_the_same_read_twice(project: Path) -> None:
    same = {"file_path": "src/a.py"}

    async with _session(project) as session:
        outcomes = await session.run([ToolCall("1", "Read", same), ToolCall("2", "Read", same)])

    assert ["import os" in _read(outcome) for outcome in outcomes] == [True, True]


# Output


@requirement("BUD-1", "BUD-2")
async def test_of_long_output_both_ends_come_and_the_gap_can_be_read_by_its_numbers(project: Path) -> None:
    def first_of_gap(text: str) -> Call:
        place, saved = GAP.search(text), re.search(r"are in (\S+)\.", text)
        assert place
        assert saved
        return "Read", {"file_path": saved[1], "offset": int(place[1]), "limit": 1}

    ran, read = await _run(project, ("Bash", {"command": "seq 100000 | sed s/^/n/"}), first_of_gap)
    text = _read(ran)
    gap = GAP.search(text)

    assert gap
    assert len(text) <= 10_000
    assert text.startswith("n1\nn2\n")
    assert f"n{int(gap[1]) - 1}\n\n[…" in text
    assert f"…]\n\nn{int(gap[2]) + 1}\n" in text
    assert _read(read).startswith(f"{gap[1]}\tn{gap[1]}")


@requirement("BUD-2", "BASH-2")
async def test_of_a_command_that_failed_the_end_comes(project: Path) -> None:
    (ran,) = await _run(project, ("Bash", {"command": "seq 100000; exit 3"}))

    text = _read(ran)
    assert text.startswith("[… lines 1-")
    assert "100000\nExit code 3." in text
    assert len(text) <= 10_000


@requirement("BUD-2")
async def test_an_output_that_is_one_long_line_says_how_many_characters_are_left_out(project: Path) -> None:
    (ran,) = await _run(project, ("Bash", {"command": "head -c 50000 /dev/zero | tr '\\0' x"}))

    assert re.search(r"\[… [\d,]+ characters left out …\]", _read(ran))
