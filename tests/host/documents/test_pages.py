"""Pages of text: the same whether the file was loaded or read in pieces."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferrule.host.documents import text_pages as pages
from ferrule.host.documents.text_pages import (
    LINE_CHARS,
    LongLine,
    PastEnd,
    TextPage,
    Wanted,
    cut_line,
    line_pieces,
    read_page,
    weight,
)
from ferrule.host.files.ledger import lines_of
from ferrule.host.files.open_files import HEAD, open_file
from ferrule.host.files.text_files import NotText
from tests.requirement import requirement

ROOM = 95_000
FILLING = ("word " * 12 + "\n") * (HEAD // 60 + 1)
"""So much text that a file with it is not read at once."""


def _read(path: Path, **wanted: int) -> TextPage | LongLine:
    with open_file(str(path)) as file:
        return read_page(file, Wanted(**{"room": ROOM, **wanted}))


def _page(path: Path, **wanted: int) -> TextPage:
    page = _read(path, **wanted)
    assert isinstance(page, TextPage)
    return page


lines_of_text = st.lists(
    st.sampled_from(["", "a", "é漢", "x" * 70, "\r", "word " * 12, "漢字" * 30, "z" * 2500]), max_size=12
)
encodings = st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "utf-32"])


@requirement("READ-1", "READ-7")
@given(lines_of_text, st.sampled_from(["\n", "\r\n", "\r"]), encodings, st.integers(1, 30), st.booleans())
def test_a_page_holds_the_lines_of_the_file(
    tmp_path_factory: pytest.TempPathFactory, ending: list[str], end: str, encoding: str, count: int, large: bool
) -> None:
    path = tmp_path_factory.mktemp("pages") / "a.txt"
    text = (FILLING if large else "plain words first\n").replace("\n", end) + end.join(ending)
    path.write_bytes(text.encode(encoding))
    lines = lines_of(text)
    first = max(1, len(lines) - count)

    page = _page(path, first=first, count=count)

    shown = [line if count == 1 else cut_line(line) for line in lines[first - 1 : first - 1 + count]]
    assert (page.lines, page.first, page.total) == (tuple(shown), first, len(lines))


@requirement("READ-7")
def test_a_page_ends_where_the_room_does(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("".join(f"{number:05} {'漢' if number % 7 == 0 else 'x'}\n" for number in range(30_000)))

    page = _page(path)

    used = sum(weight(f"{number}\t{line}\n") for number, line in enumerate(page.lines, 1))
    assert 0.9 * ROOM < used <= ROOM
    assert (page.total, page.is_whole) == (30_000, False)


@requirement("READ-1")
def test_an_encoding_that_only_shows_later_is_found(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(FILLING.encode() + "café naïve\n".encode("latin-1") * 3)
    total = FILLING.count("\n") + 3

    page = _page(path, first=total)

    assert (page.lines, page.total) == (("café naïve",), total)


@requirement("READ-1")
@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_a_large_file_in_a_wide_encoding_without_a_mark_is_read(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(("some words\r\n" * 20_000).encode(encoding))

    page = _page(path, first=19_999)

    assert (page.lines, page.total, page.encoding) == (("some words",) * 2, 20_000, encoding)


@requirement("READ-1")
def test_a_large_file_in_an_old_encoding_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(("Привет, мир\n" * 20_000).encode("koi8-r"))

    page = _page(path, first=19_999)

    assert (page.lines, page.total) == (("Привет, мир",) * 2, 20_000)


@requirement("READ-1")
def test_a_line_feed_far_down_makes_carriage_returns_part_of_lines(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("a\r" * HEAD + "end\nlast", newline="")

    page = _page(path, first=2)

    assert (page.lines, page.total) == (("last",), 2)


@requirement("READ-7")
def test_a_page_ends_before_a_line_that_is_more_than_a_page(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("short\n" + "x" * 300_000 + "\nlast\n")

    page, line = _page(path), _read(path, first=2)

    assert (page.lines, page.before_long, page.total) == (("short",), True, 3)
    assert isinstance(line, LongLine)
    assert (line.number, line.total) == (2, 3)
    with open_file(str(path)) as file:
        assert "".join(line_pieces(file, line)) == "x" * 300_000


@requirement("READ-7")
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_a_long_line_comes_in_pieces_without_its_ending(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(("漢" * 200_000 + "\r\nlast").encode(encoding))

    line = _read(path)

    assert isinstance(line, LongLine)
    with open_file(str(path)) as file:
        assert "".join(line_pieces(file, line)) == "漢" * 200_000


@requirement("READ-7")
def test_a_long_line_that_is_no_text_is_told(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"x" * 300_000 + b"\xff\xfe\xff" + b"x" * 300_000)

    line = _read(path)

    assert isinstance(line, LongLine)
    with open_file(str(path)) as file, pytest.raises(NotText, match="not valid utf-8 text"):
        list(line_pieces(file, line))


@requirement("READ-1")
def test_past_the_end_it_says_how_many_lines_there_are(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text(FILLING)

    with pytest.raises(PastEnd) as caught:
        _read(path, first=10**9)

    assert caught.value.total == FILLING.count("\n")


@requirement("READ-1")
def test_the_lines_that_were_cut_are_not_among_the_whole_ones(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    long = "x" * (LINE_CHARS + 1)
    path.write_text(f"{long}\na\nb\n{long}\nc\n{long}\n")

    page = _page(path)

    assert list(page.whole_runs()) == [(2, ("a", "b")), (5, ("c",))]
    assert not page.is_whole


@requirement("READ-1")
def test_lines_beyond_a_bound_are_not_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "MOST_COUNTED", HEAD)
    (tmp_path / "a.txt").write_text(FILLING * 4)

    page = _page(tmp_path / "a.txt")

    assert (page.first, page.total) == (1, None)


@requirement("PIPE-5")
def test_going_through_a_file_can_be_interrupted(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(FILLING * 4)

    with open_file(str(tmp_path / "a.txt"), interrupted=lambda: True) as file, pytest.raises(InterruptedError):
        read_page(file, Wanted(ROOM, first=10**9))


MEASURE = """
import resource, sys
from ferrule.host.files.open_files import open_file
from ferrule.host.documents.text_pages import LINE_CHARS, Wanted, cut_line, weight
from ferrule.host.documents.text_pages import LongLine, PastEnd, TextPage, line_pieces, read_page
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for first in (1, 400_000, 1):
    with open_file(sys.argv[1]) as file:
        page = read_page(file, Wanted(95_000, first))
assert page.total > 600_000, page.total
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


@requirement("READ-7")
def test_paging_through_a_large_file_takes_no_memory_for_it(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("word " * 12 + "\n" + ("word " * 12 + "\n") * 700_000)

    done = subprocess.run([sys.executable, "-c", MEASURE, str(path)], capture_output=True, text=True, check=True)

    assert int(done.stdout) < 15, "MiB, for a file of 40"
