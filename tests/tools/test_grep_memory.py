"""What a search shows counts as read, as far as it is what stands in the file."""

from __future__ import annotations

from pathlib import Path

import pytest

from ferrule.core.calls import ToolCall
from ferrule.host.files.changed_files import ChangedFiles
from tests.requirement import requirement
from tests.tools.working import Workplace, words


@pytest.fixture
def place(tmp_path: Path) -> Workplace:
    return Workplace(tmp_path)


def _look(place: Workplace, pattern: str) -> None:
    place.run(("Grep", {"pattern": pattern, "output_mode": "content"}))


@pytest.mark.parametrize(
    ("content", "old"),
    [
        ("café hit\nplain\n".encode("latin-1"), "plain"),
        ("hit 中文内容在这里\n第二行也是中文内容\nplain\n".encode("gbk"), "plain"),
        ("hit 日本\nplain\n".encode("shift_jis"), "plain"),
        (b"one hit\rtwo\rthree plain\r", "plain"),
        (b"hit \rtwo\nplain\n", "plain"),
        (b"hit " + b"x" * 600 + b"\nplain\n", "plain"),
        (b"plain " + b"x" * 494 + b"\nhit\n", "plain"),
        ("\ufeffhit\nplain\n".encode(), "plain"),
        ("hit ü\nplain\n".encode("utf-16"), "plain"),
    ],
    ids=["latin-1", "gbk", "shift-jis", "cr", "cr-within", "long", "five-hundred", "mark", "utf-16"],
)
@requirement("FILE-2", "GREP-1")
def test_a_file_that_was_found_can_be_edited_and_has_not_changed(place: Workplace, content: bytes, old: str) -> None:
    path = place.put("a.txt", content, seen=False)
    _look(place, "hit")

    outcome = place.edit(path, old, "other")

    assert not outcome.is_error, words(outcome, place.folder)
    assert "has changed since" not in words(outcome, place.folder)


@requirement("FILE-2")
def test_a_line_in_another_encoding_was_not_seen_and_nobody_is_told_that_it_changed(place: Workplace) -> None:
    path = place.put("a.txt", "hit 日本\n".encode("iso2022_jp"), seen=False)
    _look(place, "hit")

    assert words(place.write(path, "new\n"), place.folder) == (
        "a.txt has been read only in part. Read the rest of it first."
    )


@requirement("FILE-2")
async def test_a_look_without_lines_does_not_hide_a_change(tmp_path: Path) -> None:
    place = Workplace(tmp_path)
    path = place.put("a.txt", "hit " + "x" * 600 + "\nbefore\n")
    path.write_text("hit " + "x" * 600 + "\nafter\n")
    await place.session.run([ToolCall("1", "Grep", {"pattern": "hit", "output_mode": "content"})])

    (note,) = await ChangedFiles(place.files.ledgers, str(tmp_path)).notes("main")

    assert "-before\n+after" in note.text


@requirement("FILE-2")
def test_each_run_of_lines_is_remembered_by_its_number(place: Workplace) -> None:
    path = place.put("a.txt", "x1\nx2\ny\nx4\n", seen=False)
    _look(place, "x")
    path.write_text("x1\nx2\ny\nx5\n")

    outcome = place.edit(path, "x1", "z")

    assert "has changed since" in words(outcome, place.folder)
    assert "-x4\n+x5" in words(outcome, place.folder)
