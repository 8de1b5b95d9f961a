"""Edit: only what was named changes, and only in what was seen."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import ClassVar

import pytest
from inline_snapshot import snapshot

from ferrule.core.calls import Status, ToolCall
from ferrule.core.content import Diff
from ferrule.core.context import ToolContext
from ferrule.host.files.ledger import Ledgers
from ferrule.host.files.workfiles import Workfiles
from ferrule.testing.tool_contract import ToolContract
from ferrule.tools.edit import Edit, EditInput, FileEdited
from tests.host.files.seeing import see
from tests.requirement import requirement
from tests.tools.working import Workplace, words


@pytest.fixture
def place(tmp_path: Path) -> Workplace:
    folder = tmp_path / "work"
    folder.mkdir()
    return Workplace(folder)


class TestEditContract(ToolContract):
    samples = (
        {"file_path": "a.txt", "old_string": "two", "new_string": "2"},
        {"file_path": "new/b.txt", "old_string": "", "new_string": "hello\n"},
    )
    files: ClassVar[Workfiles] = Workfiles(Ledgers())

    def make(self) -> Edit:
        return Edit(self.files)

    def arrange(self, folder: Path) -> None:
        path = folder / "a.txt"
        path.write_text("one\ntwo\nthree\n")
        see(self.files.ledgers.of("main"), path)


# What it does


@requirement("EDIT-6", "EDIT-1")
def test_the_result_is_the_range_and_people_see_a_diff_with_true_line_numbers(place: Workplace) -> None:
    path = place.put("a.txt", "".join(f"line {n}\n" for n in range(1, 101)))

    outcome = place.edit("a.txt", "line 50\n", "line fifty\n")

    assert path.read_text().count("line fifty\n") == 1
    assert words(outcome, place.folder) == "Edited a.txt, line 50."
    assert isinstance(outcome.view, Diff)
    assert outcome.view.patch == snapshot("""\
--- a/a.txt
+++ b/a.txt
@@ -47,7 +47,7 @@
 line 47
 line 48
 line 49
-line 50
+line fifty
 line 51
 line 52
 line 53
""")


@requirement("EDIT-1")
def test_a_text_that_stands_twice_is_not_replaced_and_both_lines_are_named(place: Workplace) -> None:
    path = place.put("a.txt", "x\ny\nx\n")

    outcome = place.edit("a.txt", "x", "z")

    assert outcome.is_error
    assert path.read_text() == "x\ny\nx\n"
    assert words(outcome, place.folder) == snapshot("""\
`old_string` occurs 2 times in a.txt, on lines 1 and 3. \
Add surrounding lines until it is unique, or set `replace_all`.\
""")


@requirement("EDIT-1")
def test_all_occurrences_are_replaced_when_asked_for(place: Workplace) -> None:
    path = place.put("a.txt", "x\ny\nx\n")

    outcome = place.edit("a.txt", "x", "z", replace_all=True)

    assert path.read_text() == "z\ny\nz\n"
    assert words(outcome, place.folder) == "Edited a.txt in 2 places, lines 1, 3."


@requirement("EDIT-2", "EDIT-4")
def test_a_text_that_is_not_there_is_answered_with_the_nearest_and_its_whitespace(place: Workplace) -> None:
    place.put("a.py", "def f():\n\treturn 1\n")

    outcome = place.edit("a.py", "def f():\n    return 1", "def f():\n    return 2")

    assert words(outcome, place.folder) == snapshot("""\
`old_string` is not in a.py. The nearest text is on lines 1 to 2.
It differs in indentation: the file has tabs where `old_string` has spaces.

(- `old_string`, + the file; · is a space, → a tab)
     1   def f():
       - ····return·1
     2 + →return·1

Copy `old_string` from there; this is lines 1 to 2, exactly:
def f():
	return 1\
""")


@requirement("EDIT-3")
def test_curly_quotes_are_matched_and_kept_and_the_result_says_so(place: Workplace) -> None:
    path = place.put("a.md", "He said “yes” today.\n")

    outcome = place.edit("a.md", 'said "yes"', 'said "no"')

    assert path.read_text() == "He said “no” today.\n"
    assert "Matched apart from curly and straight quotes; those of the file were kept." in words(outcome, place.folder)


@requirement("EDIT-4", "FILE-6")
def test_mixed_line_endings_stay_mixed(place: Workplace) -> None:
    path = place.put("a.txt", b"one\r\ntwo\nthree\r\nfour\n")

    place.edit("a.txt", "two\nthree\n", "2\n3\n")

    assert path.read_bytes() == b"one\r\n2\n3\r\nfour\n"


@requirement("EDIT-5")
@pytest.mark.parametrize("new", ["$1", r"\1", "&", r"\n", "trailing   \n\n", "%s {x}"])
def test_the_replacement_is_literal_to_its_last_space(place: Workplace, new: str) -> None:
    path = place.put("a.txt", "[x]")

    place.edit("a.txt", "x", new)

    assert path.read_text() == f"[{new}]"


@requirement("EDIT-5", "EDIT-10")
def test_old_equal_to_new_is_refused_before_the_disk_is_touched(place: Workplace) -> None:
    outcome = place.edit("missing/folder/a.txt", "same", "same")

    assert outcome.status is Status.INVALID
    assert words(outcome, place.folder).startswith("`old_string` and `new_string` are the same")


@requirement("EDIT-7")
def test_an_empty_old_string_makes_a_missing_file_with_its_folders(place: Workplace) -> None:
    outcome = place.edit("new/b.txt", "", "hello\n")

    assert (place.folder / "new/b.txt").read_text() == "hello\n"
    assert words(outcome, place.folder) == "Created new/b.txt, 1 line."


@requirement("EDIT-7")
def test_an_empty_old_string_fills_an_empty_file_that_nobody_read(place: Workplace) -> None:
    path = place.put("empty.txt", "", seen=False)

    place.edit("empty.txt", "", "text\n")

    assert path.read_text() == "text\n"


@requirement("EDIT-7")
def test_an_empty_old_string_is_refused_on_a_file_with_text(place: Workplace) -> None:
    path = place.put("a.txt", "text")

    outcome = place.edit("a.txt", "", "other")

    assert path.read_text() == "text"
    assert words(outcome, place.folder) == snapshot("""\
`old_string` is empty, which fits only a missing or empty file, and a.txt has text. \
Give the text to replace, or use Write to replace all of it.\
""")


NOTEBOOK = '{"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}'


def test_a_notebook_is_left_to_its_own_tool(place: Workplace) -> None:
    place.put("a.ipynb", NOTEBOOK)

    assert "Use NotebookEdit" in words(place.edit("a.ipynb", "4,", "4 ,"), place.folder)


def test_a_broken_notebook_is_repaired_as_text(place: Workplace) -> None:
    path = place.put("a.ipynb", NOTEBOOK.replace("5}", "5,}"))

    assert not place.edit("a.ipynb", "5,}", "5}").is_error
    assert path.read_text() == NOTEBOOK


def test_several_edits_of_one_message_are_carried_out_in_their_order(place: Workplace) -> None:
    path = place.put("a.txt", "one\n")
    first = {"file_path": "a.txt", "old_string": "one", "new_string": "two"}
    second = {"file_path": "a.txt", "old_string": "two", "new_string": "three"}

    outcomes = place.run(("Edit", first), ("Edit", second))

    assert [outcome.is_error for outcome in outcomes] == [False, False]
    assert path.read_text() == "three\n"


def test_what_the_encoding_cannot_say_is_refused_and_nothing_is_written(place: Workplace) -> None:
    data = "Köln, Straße, Grüße, Äpfel, Öl und Übung\n".encode("latin-1")
    path = place.put("a.txt", data)

    outcome = place.edit("a.txt", "Öl", "油")

    assert path.read_bytes() == data
    assert "has no way to write 油 (U+6CB9 " in words(outcome, place.folder)


def test_a_link_is_followed_and_the_file_behind_it_named(place: Workplace) -> None:
    path = place.put("real.txt", "one\n")
    (place.folder / "link.txt").symlink_to("real.txt")

    outcome = place.edit("link.txt", "one", "two")

    assert (place.folder / "link.txt").is_symlink()
    assert path.read_text() == "two\n"
    assert "link.txt is a link; what was written is real.txt." in words(outcome, place.folder)


# What must have been seen


@requirement("FILE-2", "EDIT-10")
def test_a_file_that_was_not_read_is_not_edited(place: Workplace) -> None:
    path = place.put("a.txt", "one\n", seen=False)

    outcome = place.edit("a.txt", "one", "two")

    assert path.read_text() == "one\n"
    assert words(outcome, place.folder) == "a.txt has not been read yet. Read it first, then edit it."


def test_a_missing_file_is_answered_with_near_names(place: Workplace) -> None:
    place.put("settings.py", "x\n")

    assert words(place.edit("setings.py", "x", "y"), place.folder) == (
        "setings.py does not exist. In that folder there is settings.py."
    )


@requirement("FILE-2")
def test_a_range_that_was_read_is_enough_where_the_text_stands_once(place: Workplace) -> None:
    path = place.put("a.txt", "one\ntwo\nthree\n", seen=False)
    place.see(path, first=1, last=1)

    assert not place.edit("a.txt", "three", "3").is_error
    assert path.read_text() == "one\ntwo\n3\n"


@requirement("FILE-2")
def test_lines_that_grep_showed_are_enough_where_the_text_stands_once(place: Workplace) -> None:
    path = place.put("a.txt", "one\ntwo\n", seen=False)
    place.run(("Grep", {"pattern": "two", "path": str(path), "output_mode": "content"}))

    assert not place.edit(path, "two", "2").is_error


@requirement("FILE-2")
def test_a_part_is_not_enough_to_replace_what_stands_often(place: Workplace) -> None:
    path = place.put("a.txt", "x\nx\nx\n", seen=False)
    place.see(path, first=1, last=1)

    outcome = place.edit("a.txt", "x", "y", replace_all=True)

    assert path.read_text() == "x\nx\nx\n"
    assert "has been read only in part" in words(outcome, place.folder)


# What changed meanwhile


@requirement("EDIT-9", "FILE-3")
def test_an_edit_that_still_fits_goes_through_and_shows_what_else_changed(place: Workplace) -> None:
    path = place.put("a.txt", "one\ntwo\nthree\n")
    path.write_text("ONE\ntwo\nthree\n")

    outcome = place.edit("a.txt", "three", "3")

    assert path.read_text() == "ONE\ntwo\n3\n"
    said = words(outcome, place.folder)
    assert "a.txt was last seen at " in said
    assert said.endswith("@@ -1,3 +1,3 @@\n-one\n+ONE\n two\n three")


@requirement("EDIT-9")
@pytest.mark.parametrize("now", ["three\nthree\n", "four\n"])
def test_an_edit_that_does_not_fit_any_more_is_refused_with_both_times(place: Workplace, now: str) -> None:
    path = place.put("a.txt", "three\n")
    path.write_text(now)

    outcome = place.edit("a.txt", "three", "3", replace_all=True)

    assert path.read_text() == now
    assert "a.txt was last seen at " in words(outcome, place.folder)


@requirement("FILE-3")
def test_a_touched_file_is_edited_without_a_word_about_it(place: Workplace) -> None:
    path = place.put("a.txt", "one\n")
    os.utime(path, ns=(1, 1))

    assert "last seen" not in words(place.edit("a.txt", "one", "two"), place.folder)


@requirement("FILE-7")
def test_of_two_agents_the_second_is_told_what_the_first_changed(place: Workplace) -> None:
    path = place.put("a.txt", "one\ntwo\n")
    other = Workplace(place.folder, files=place.files, agent="other")
    other.see(path)
    assert not other.edit("a.txt", "one", "1").is_error

    outcome = place.edit("a.txt", "two", "2")

    assert path.read_text() == "1\n2\n"
    assert "-one\n+1\n" in words(outcome, place.folder)


@requirement("SEC-3")
def test_a_link_planted_after_the_decision_is_not_followed(place: Workplace) -> None:
    path = place.put("a.txt", "one\n")
    secret = place.put("secret.txt", "one\n")

    class Planting(Edit):
        async def call(self, input: EditInput, ctx: ToolContext) -> FileEdited:
            path.unlink()
            path.symlink_to(secret)
            return await super().call(input, ctx)

    place.session.registry.add(Planting(place.files))

    outcome = place.edit("a.txt", "one", "two")

    assert outcome.is_error
    assert secret.read_text() == "one\n"
    assert "leads to" in words(outcome, place.folder)


def test_an_interrupted_edit_has_happened_or_not(place: Workplace) -> None:
    path = place.put("a.txt", "one\n")

    async def interrupted(steps: int) -> None:
        executor = place.session.executor()
        async with executor:
            executor.submit(ToolCall("c", "Edit", {"file_path": "a.txt", "old_string": "one", "new_string": "two"}))
            executor.message_complete()
            for _ in range(steps):
                await asyncio.sleep(0)

    for steps in range(6):
        place.put("a.txt", "one\n")
        asyncio.run(interrupted(steps))
        assert path.read_text() in ("one\n", "two\n")
        assert os.listdir(place.folder) == ["a.txt"]
