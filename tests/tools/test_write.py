"""Write: all of a file, and never over what was not seen."""

from __future__ import annotations

import os
from pathlib import Path
from typing import ClassVar

import pytest
from inline_snapshot import snapshot

from ferrule.core.calls import Status
from ferrule.core.content import Code, Diff
from ferrule.host.files.workfiles import Workfiles
from ferrule.testing.tool_contract import ToolContract
from ferrule.tools.write import Write
from tests.host.files.seeing import see
from tests.requirement import requirement
from tests.tools.working import Workplace, words


@pytest.fixture
def place(tmp_path: Path) -> Workplace:
    folder = tmp_path / "work"
    folder.mkdir()
    return Workplace(folder)


class TestWriteContract(ToolContract):
    samples = (
        {"file_path": "a.txt", "content": "other\n"},
        {"file_path": "deep/er/b.txt", "content": "new\n"},
    )
    files: ClassVar[Workfiles] = Workfiles()

    def make(self) -> Write:
        return Write(self.files)

    def arrange(self, folder: Path) -> None:
        path = folder / "a.txt"
        path.write_text("one\ntwo\nthree\n")
        see(self.files.ledgers.of("main"), path)


# New files


@requirement("WRITE-1", "FILE-2")
def test_a_new_file_is_made_with_its_folders_and_shown(place: Workplace) -> None:
    outcome = place.write("new/folder/b.txt", "one\ntwo\n")

    assert (place.folder / "new/folder/b.txt").read_bytes() == b"one\ntwo\n"
    assert words(outcome, place.folder) == "Created new/folder/b.txt, 2 lines."
    assert outcome.view == Code("one\ntwo", str(place.folder / "new/folder/b.txt"))


@requirement("WRITE-1")
def test_of_a_long_new_file_thirty_lines_are_shown_and_the_total_said(place: Workplace) -> None:
    outcome = place.write("b.txt", "".join(f"{n}\n" for n in range(1, 101)))

    assert words(outcome, place.folder) == "Created b.txt, 100 lines."
    assert isinstance(outcome.view, Code)
    assert outcome.view.text.splitlines()[-2:] == ["30", "[30 of 100 lines]"]


def test_an_empty_file_can_be_made(place: Workplace) -> None:
    assert words(place.write("b.txt", ""), place.folder) == "Created b.txt, which is empty."
    assert (place.folder / "b.txt").read_bytes() == b""


def test_a_new_file_can_be_written_again_at_once(place: Workplace) -> None:
    place.write("b.txt", "one\n")

    assert place.write("b.txt", "two\n").status is Status.OK


def test_a_lone_surrogate_is_refused_and_nothing_is_made(place: Workplace) -> None:
    outcome = place.write("b.txt", "a\udc80")

    assert outcome.is_error
    assert not (place.folder / "b.txt").exists()


@pytest.mark.parametrize("name", ["folder", "pipe"])
def test_what_is_no_file_is_not_overwritten(place: Workplace, name: str) -> None:
    (place.folder / "folder").mkdir()
    os.mkfifo(place.folder / "pipe")

    outcome = place.write(name, "x")

    assert outcome.is_error
    assert "it is a" in words(outcome, place.folder)


def test_a_file_in_the_way_of_a_folder_is_named(place: Workplace) -> None:
    place.put("a", "x")

    outcome = place.write("a/b.txt", "x")

    assert outcome.is_error
    assert "a/b.txt" in words(outcome, place.folder)


# Files that are there


@requirement("FILE-2")
def test_a_file_that_was_not_read_is_not_overwritten(place: Workplace) -> None:
    path = place.put("a.txt", "one\n", seen=False)

    outcome = place.write("a.txt", "two\n")

    assert path.read_text() == "one\n"
    assert words(outcome, place.folder) == "a.txt has not been read yet. Read it first."


@requirement("FILE-2")
def test_a_grep_of_one_line_does_not_license_overwriting_the_file(place: Workplace) -> None:
    path = place.put("a.txt", "one\ntwo\n", seen=False)
    place.run(("Grep", {"pattern": "two", "path": "a.txt", "output_mode": "content"}))

    outcome = place.write("a.txt", "2\n")

    assert path.read_text() == "one\ntwo\n"
    assert words(outcome, place.folder) == "a.txt has been read only in part. Read the rest of it first."


@requirement("FILE-3")
def test_a_file_that_changed_since_it_was_read_is_not_overwritten(place: Workplace) -> None:
    path = place.put("a.txt", "one\n")
    path.write_text("a person's work\n")

    outcome = place.write("a.txt", "two\n")

    assert path.read_text() == "a person's work\n"
    assert "a.txt was last seen at " in words(outcome, place.folder)


def test_an_empty_file_that_nobody_read_can_be_filled(place: Workplace) -> None:
    path = place.put("a.txt", "", seen=False)

    assert not place.write("a.txt", "x\n").is_error
    assert path.read_text() == "x\n"


@requirement("WRITE-1", "EDIT-6")
def test_an_overwritten_file_is_shown_as_a_diff(place: Workplace) -> None:
    place.put("a.txt", "one\ntwo\n")

    outcome = place.write("a.txt", "one\n2\n")

    assert words(outcome, place.folder) == "Wrote a.txt, 2 lines."
    assert isinstance(outcome.view, Diff)
    assert outcome.view.patch == snapshot("""\
--- a/a.txt
+++ b/a.txt
@@ -1,2 +1,2 @@
 one
-two
+2
""")


def test_writing_what_is_there_already_writes_nothing(place: Workplace) -> None:
    path = place.put("a.txt", "one\n")
    before = path.stat()

    outcome = place.write("a.txt", "one\n")

    assert words(outcome, place.folder) == "a.txt already contains exactly this. Nothing was written."
    assert path.stat().st_mtime_ns == before.st_mtime_ns


@requirement("FILE-6")
@pytest.mark.parametrize(
    ("before", "content", "after"),
    [
        (b"one\r\ntwo\r\n", "one\n2\nthree\n", b"one\r\n2\r\nthree\r\n"),
        (b"\xef\xbb\xbfone\n", "two\n", b"\xef\xbb\xbftwo\n"),
        ("one\n".encode("utf-16"), "zwö\n", "zwö\n".encode("utf-16")),
        ("Grüße aus Köln, schön wär's\n".encode("latin-1"), "Übermäßig schön\n", "Übermäßig schön\n".encode("latin-1")),
        (b"one\r\ntwo\nthree\r\n", "one\ntwo\n3\n", b"one\r\ntwo\n3\r\n"),
        (b"one\rtwo\r", "one\n2\n", b"one\r2\r"),
        (b"one\r\n", "a\r\nb\n", b"a\r\nb\n"),
        (b"progress 1\rprogress 2\nend\n", "progress 1\nprogress 3\nend\n", b"progress 1\nprogress 3\nend\n"),
        (b"1\r2\r3\r\nend\r\n", "1\n2\nend\n", b"1\r\n2\r\nend\r\n"),
    ],
)
def test_an_overwritten_file_keeps_its_encoding_and_line_endings(
    place: Workplace, before: bytes, content: str, after: bytes
) -> None:
    path = place.put("a.txt", before)

    assert not place.write("a.txt", content).is_error
    assert path.read_bytes() == after


@requirement("FILE-5")
def test_mode_and_link_are_kept(place: Workplace) -> None:
    path = place.put("run.sh", "one\n")
    path.chmod(0o750)
    (place.folder / "link").symlink_to("run.sh")

    outcome = place.write("link", "two\n")

    assert path.read_text() == "two\n"
    assert path.stat().st_mode & 0o777 == 0o750
    assert (place.folder / "link").is_symlink()
    assert "link is a link; what was written is run.sh." in words(outcome, place.folder)


@requirement("CON-15")
@pytest.mark.parametrize("name", ["Write", "write_file", "FileWrite"])
def test_its_old_names_take_their_old_parameters(place: Workplace, name: str) -> None:
    (outcome,) = place.run((name, {"file_path": "b.txt", "content": "x\n"}))

    assert outcome.status is Status.OK
    assert (place.folder / "b.txt").read_text() == "x\n"


@requirement("CON-15")
@pytest.mark.parametrize("name", ["Edit", "edit_file", "FileEdit"])
def test_the_old_names_of_edit_take_their_old_parameters(place: Workplace, name: str) -> None:
    path = place.put("a.txt", "one one\n")
    arguments = {"file_path": "a.txt", "old_string": "one", "new_string": "1", "replace_all": True}

    (outcome,) = place.run((name, arguments))

    assert outcome.status is Status.OK
    assert path.read_text() == "1 1\n"
