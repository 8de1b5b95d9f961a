"""What an agent knows of a file, by content and not by time."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferrule.host.files.ledger import KEPT_IN_MEMORY, Knowledge, Ledger, Ledgers, NotSeen, Stamp, lines_of
from ferrule.host.files.open_files import FileIdentity, FileSnapshot
from ferrule.host.files.text_files import TextDocument
from ferrule.host.files.text_store import OnDisk, TextStore
from ferrule.text.matching import TextEdit
from tests.host.files.seeing import see, see_lines, snapshot_of
from tests.requirement import requirement

TEN = "".join(f"line {n}\n" for n in range(1, 11))


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledgers(TextStore(tmp_path / "seen")).of("main")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "a.txt"
    path.write_text(TEN)
    return path


def knows(ledger: Ledger, path: Path) -> Knowledge | None:
    return ledger.knows(snapshot_of(path))


def refusal(ledger: Ledger, path: Path) -> str:
    with pytest.raises(NotSeen) as caught:
        ledger.check_whole("a.txt", snapshot_of(path))
    return str(caught.value)


ALL = Knowledge(everything=True, changed=False)
SOME = Knowledge(everything=False, changed=False)
STALE = Knowledge(everything=False, changed=True)


# Whole files


@requirement("FILE-1")
def test_what_was_seen_is_kept_with_its_digest_its_stamp_and_how_often(ledger: Ledger, path: Path) -> None:
    see(ledger, path)
    see(ledger, path)

    seen = ledger.seen(str(path))
    assert seen is not None
    assert seen.whole is not None
    assert seen.count == 2
    assert seen.stamp == Stamp.of(path.stat())
    assert seen.whole.digest == snapshot_of(path).identity.digest
    assert seen.whole.content == TEN


def test_a_file_that_nobody_read_is_not_known(ledger: Ledger, path: Path) -> None:
    assert knows(ledger, path) is None
    assert refusal(ledger, path) == "a.txt has not been read yet. Read it first."


@requirement("FILE-3")
def test_a_touched_file_is_as_it_was(ledger: Ledger, path: Path) -> None:
    see(ledger, path)
    os.utime(path, ns=(1, 1))

    assert knows(ledger, path) == ALL


@requirement("FILE-3")
def test_a_change_of_one_byte_with_the_same_size_and_time_is_seen(ledger: Ledger, path: Path) -> None:
    see(ledger, path)
    before = path.stat()
    path.write_text(TEN.replace("line 7", "line 9"))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))

    assert knows(ledger, path) == STALE


@requirement("FILE-3")
def test_the_refusal_of_a_changed_file_tells_both_times_and_what_to_do(ledger: Ledger, path: Path) -> None:
    see(ledger, path)
    path.write_text("other")

    words = refusal(ledger, path)

    assert words.startswith("a.txt was last seen at ")
    assert "and has changed since (modified at " in words
    assert words.endswith("Read it again, then decide what to write.")


def test_a_file_replaced_by_rename_with_the_same_content_is_as_it_was(ledger: Ledger, path: Path) -> None:
    see(ledger, path)
    other = path.with_name("b.txt")
    other.write_text(TEN)
    os.replace(other, path)

    assert knows(ledger, path) == ALL


def test_what_changed_is_a_diff_from_what_was_seen(ledger: Ledger, path: Path) -> None:
    see(ledger, path)
    path.write_text(TEN.replace("line 7", "line seven"))

    assert "-line 7\n+line seven\n" in ledger.diff_since_seen("a.txt", snapshot_of(path))


# Parts


@requirement("FILE-2")
def test_a_range_is_a_part_of_the_file(ledger: Ledger, path: Path) -> None:
    see_lines(ledger, path, 3, 5)

    assert knows(ledger, path) == SOME
    assert refusal(ledger, path) == "a.txt has been read only in part. Read the rest of it first."


@requirement("FILE-1")
def test_pages_that_cover_the_file_are_the_whole_of_it(ledger: Ledger, path: Path) -> None:
    see_lines(ledger, path, 6, 10)
    see_lines(ledger, path, 1, 3)
    assert knows(ledger, path) == SOME

    see_lines(ledger, path, 3, 6)
    assert knows(ledger, path) == ALL


def test_a_change_outside_of_the_parts_that_were_seen_leaves_them_standing(ledger: Ledger, path: Path) -> None:
    see_lines(ledger, path, 1, 3)
    path.write_text(TEN.replace("line 7", "line seven"))

    assert knows(ledger, path) == SOME


def test_a_change_inside_of_a_part_is_seen_and_shown(ledger: Ledger, path: Path) -> None:
    see_lines(ledger, path, 1, 3)
    path.write_text(TEN.replace("line 2", "line two"))

    assert knows(ledger, path) == STALE
    assert "-line 2\n+line two\n" in ledger.diff_since_seen("a.txt", snapshot_of(path))


def test_lines_seen_after_a_change_make_up_the_whole_with_those_that_still_stand(ledger: Ledger, path: Path) -> None:
    see(ledger, path)
    path.write_text(TEN.replace("line 2", "line two"))
    see_lines(ledger, path, 1, 3)

    assert knows(ledger, path) == ALL


def test_looking_at_one_change_does_not_hide_another(ledger: Ledger, path: Path) -> None:
    see(ledger, path)
    path.write_text(TEN.replace("line 2", "line two").replace("line 9", "line nine"))
    see_lines(ledger, path, 1, 3)

    assert knows(ledger, path) == STALE
    assert "-line 9\n+line nine\n" in ledger.diff_since_seen("a.txt", snapshot_of(path))


@requirement("FILE-2")
def test_a_file_seen_in_part_keeps_the_stamp_of_its_first_look_while_it_may_have_changed(
    ledger: Ledger, path: Path
) -> None:
    see_lines(ledger, path, 1, 2)
    first = Stamp.of(path.stat())
    path.write_text(TEN.replace("line 1\n", "another line\n"))

    see_lines(ledger, path, 5, 6)

    seen = ledger.seen(str(path))
    assert seen is not None
    assert (seen.stamp, seen.count) == (first, 2)


def test_a_look_without_lines_is_a_look_and_no_more(ledger: Ledger, path: Path) -> None:
    ledger.saw_lines(str(path), Stamp.of(path.stat()), first=1, lines=())

    assert knows(ledger, path) == SOME


@requirement("FILE-2")
def test_an_edited_line_that_no_diff_shows_whole_is_not_known(ledger: Ledger, path: Path) -> None:
    path.write_text("ok\nstart " + "y" * 5_000 + "\n")
    before = snapshot_of(path)
    see_lines(ledger, path, 1, 1)
    path.write_text("ok\nbegin " + "y" * 5_000 + "\n")

    ledger.note_edit(before, [TextEdit(3, 8, "begin")], snapshot_of(path))

    assert knows(ledger, path) == SOME


@requirement("FILE-2", "BUD-2")
def test_what_a_call_showed_is_forgotten_when_its_result_was_cut(ledger: Ledger, path: Path) -> None:
    see(ledger, path)
    ledger.note_form(str(path), "lines 1 None", "v1", "call-1")

    ledger.not_shown("call-1")

    assert knows(ledger, path) is None
    assert ledger.call_that_showed(str(path), "lines 1 None", "v1") is None


def test_a_file_of_which_one_of_two_results_is_gone_has_not_been_seen(ledger: Ledger, path: Path) -> None:
    other = path.with_name("b.txt")
    other.write_text(TEN)
    for call_id, file, first, last in [("1", path, 1, 5), ("2", path, 6, 10), ("3", other, 1, 10)]:
        see_lines(ledger, file, first, last)
        ledger.note_shown(call_id, str(file))

    ledger.keep_only({"1", "2", "3"})
    assert (knows(ledger, path), knows(ledger, other)) == (ALL, ALL)

    ledger.keep_only({"2", "3"})
    assert (knows(ledger, path), knows(ledger, other)) == (None, ALL)


def test_lines_seen_again_take_nothing_from_the_whole(ledger: Ledger, path: Path) -> None:
    see(ledger, path)
    see_lines(ledger, path, 1, 3)

    assert knows(ledger, path) == ALL


def test_an_empty_file_is_known_whole_by_any_look(ledger: Ledger, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.write_text("")
    see_lines(ledger, empty, 1, 1)

    assert knows(ledger, empty) == ALL


# The agent's own changes


def test_after_its_own_write_an_agent_knows_the_whole_file(ledger: Ledger, path: Path) -> None:
    now = snapshot_of(path)
    ledger.wrote(now.identity, now.document.text)

    assert knows(ledger, path) == ALL


@given(st.data())
def test_after_an_edit_every_part_that_is_known_stands_where_it_is_said_to(data: st.DataObject) -> None:
    ledger = Ledger(TextStore())
    text = "".join(data.draw(st.lists(st.sampled_from(["a\n", "b\n", "c\n", "\n"]), min_size=1, max_size=12)))
    before = _document(text)
    lines = lines_of(text)
    first = data.draw(st.integers(1, len(lines)))
    last = data.draw(st.integers(first, len(lines)))
    ledger.saw_lines("/f", Stamp(0, 0, 0), first=first, lines=lines[first - 1 : last])
    start = data.draw(st.integers(0, len(text)))
    edit = TextEdit(
        start, data.draw(st.integers(start, len(text))), data.draw(st.sampled_from(["", "x", "y\nz\n", "\n"]))
    )
    after = _document(text[: edit.start] + edit.new + text[edit.end :])

    ledger.note_edit(before, [edit], after)

    knowledge = ledger.knows(after)
    assert knowledge is None or not knowledge.changed
    kept = ledger.seen("/f")
    outside = [n for n in range(first, last + 1) if n < _line(text, edit.start)]
    assert all(any(part.first <= n <= part.last for part in (kept.parts if kept else ())) for n in outside)


def _line(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1


def _document(text: str) -> FileSnapshot:
    data = text.encode()
    status = os.stat("/")
    return FileSnapshot(TextDocument(text, "utf-8", b"", data), FileIdentity.of("/f", status, data))


# Agents, and what is too much


@requirement("FILE-1")
def test_each_agent_has_a_ledger_of_its_own(path: Path) -> None:
    ledgers = Ledgers()
    see(ledgers.of("main"), path)

    assert knows(ledgers.of("main"), path) == ALL
    assert knows(ledgers.of("explorer"), path) is None


@requirement("FILE-1")
def test_content_beyond_a_mebibyte_is_kept_on_disk_for_this_user_alone(ledger: Ledger, tmp_path: Path) -> None:
    large = tmp_path / "large.txt"
    large.write_text("x" * 99 + "\n" * 1 + "y\n" * KEPT_IN_MEMORY)
    see(ledger, large)

    seen = ledger.seen(str(large))
    assert seen is not None
    assert seen.whole is not None
    assert seen.kept == 0
    assert isinstance(seen.whole.content, OnDisk)
    assert seen.whole.content.path is not None
    assert seen.whole.content.path.stat().st_mode & 0o077 == 0
    large.write_text("z\n" + large.read_text()[2:])
    assert knows(ledger, large) == STALE
    assert "+z\n" in ledger.diff_since_seen("large.txt", snapshot_of(large))


def test_where_nothing_can_be_kept_a_change_is_seen_all_the_same(tmp_path: Path) -> None:
    ledger = Ledger(TextStore())
    large = tmp_path / "large.txt"
    large.write_text("y\n" * KEPT_IN_MEMORY)
    see(ledger, large)
    large.write_text("z\n" * KEPT_IN_MEMORY)

    assert knows(ledger, large) == STALE
    assert ledger.diff_since_seen("large.txt", snapshot_of(large)) == ""


def test_paging_through_a_large_file_keeps_a_bounded_amount_in_memory(ledger: Ledger) -> None:
    page = ["x" * 100] * 1_000
    for number in range(200):
        ledger.saw_lines("/large", Stamp(0, 0, 0), first=1 + number * 1_000, lines=page)

    seen = ledger.seen("/large")
    assert seen is not None
    assert seen.kept <= KEPT_IN_MEMORY
    assert sum(len(part.content) for part in seen.parts if isinstance(part.content, str)) <= KEPT_IN_MEMORY


# What was shown


@requirement("READ-3")
def test_a_form_shown_before_is_known_by_its_call_until_the_agent_changes_the_file(ledger: Ledger, path: Path) -> None:
    now = snapshot_of(path)
    ledger.note_form(str(path), "lines 1 3", "v1", "call-1")

    assert ledger.call_that_showed(str(path), "lines 1 3", "v1") == "call-1"
    assert ledger.call_that_showed(str(path), "lines 1 3", "v2") is None
    assert ledger.call_that_showed(str(path), "lines 2 3", "v1") is None

    ledger.wrote(now.identity, now.document.text)
    assert ledger.call_that_showed(str(path), "lines 1 3", "v1") is None


def test_a_forgotten_file_has_not_been_seen(ledger: Ledger, path: Path) -> None:
    see(ledger, path)
    ledger.note_form(str(path), "whole", "v1", "call-1")
    ledger.forget(str(path))

    assert list(ledger) == []
    assert ledger.call_that_showed(str(path), "whole", "v1") is None
