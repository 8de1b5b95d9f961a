"""Read: a text file, with line numbers."""

from __future__ import annotations

import re
import unicodedata
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ferrule.core.calls import Status, ToolCall
from ferrule.core.content import Code
from ferrule.core.effects import Effects
from ferrule.core.tool import ToolError
from ferrule.host.documents.text_pages import LINE_CHARS
from ferrule.testing import bare_context, run_call, run_calls
from ferrule.testing.tool_contract import ToolContract
from ferrule.tools.read import Read, ReadInput
from tests.requirement import requirement
from tests.tools.reading import read_file, read_refused, text_of_file


class TestReadContract(ToolContract):
    samples = (
        {"file_path": "a.txt"},
        {"file_path": "a.txt", "offset": 2, "limit": 1},
        {"file_path": "sub/../a.txt", "offset": "3"},
    )

    def make(self) -> Read:
        return Read()

    def arrange(self, folder: Path) -> None:
        (folder / "a.txt").write_text("one\ntwo\nthree\n")


# Lines


@requirement("READ-1")
async def test_lines_are_numbered_from_one(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\n\n  three")

    assert await read_file(tmp_path, "a.txt") == "1\tone\n2\t\n3\t  three"


@requirement("READ-1")
async def test_offset_and_limit_choose_lines_and_nothing_else_is_said(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\ntwo\nthree\nfour\n")

    assert await read_file(tmp_path, "a.txt", offset=2, limit=2) == "2\ttwo\n3\tthree"
    assert await read_file(tmp_path, "a.txt", offset=4, limit=10**30) == "4\tfour"


@requirement("READ-1")
async def test_offset_zero_is_the_beginning(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\ntwo\n")

    assert await read_file(tmp_path, "a.txt", offset=0, limit=1) == await read_file(tmp_path, "a.txt", limit=1)


@pytest.mark.parametrize("offset", [5, 10**30])
async def test_an_offset_past_the_end_says_how_many_lines_there_are(tmp_path: Path, offset: int) -> None:
    (tmp_path / "a.txt").write_text("one\ntwo\nthree\nfour\n")

    assert await read_refused(tmp_path, "a.txt", offset=offset) == (
        Status.FAILED,
        f"{tmp_path}/a.txt cannot be read: it has 4 lines; it cannot be read from line {offset}.",
    )


@requirement("READ-1")
@pytest.mark.parametrize("wrong", [{"offset": -1}, {"limit": 0}, {"limit": "1.5"}])
async def test_a_line_number_below_one_is_refused(tmp_path: Path, wrong: dict[str, Any]) -> None:
    (tmp_path / "a.txt").write_text("one")

    status, words = await read_refused(tmp_path, "a.txt", **wrong)

    assert status is Status.INVALID
    assert f"`{next(iter(wrong))}`" in words


@requirement("READ-1")
async def test_a_long_line_is_cut_and_says_by_how_much(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("x" * (LINE_CHARS + 1234) + "\n" + "y" * LINE_CHARS)

    assert await read_file(tmp_path, "a.txt") == (
        f"1\t{'x' * LINE_CHARS} [1,234 more characters in this line]\n2\t{'y' * LINE_CHARS}"
    )


@requirement("READ-1")
async def test_a_line_asked_for_alone_is_not_cut(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\n" + "x" * 5000 + "\nthree\n")

    text = await read_file(tmp_path, "a.txt", offset=2, limit=1)

    assert text == f"2\t{'x' * 5000}"


@requirement("READ-1")
async def test_a_file_with_no_other_endings_has_its_lines_by_carriage_returns(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"one\rtwo\rthree\r")

    assert await read_file(tmp_path, "a.txt", offset=2) == "2\ttwo\n3\tthree"


@requirement("READ-1")
async def test_line_endings_and_a_byte_order_mark_are_not_shown(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"\xef\xbb\xbfone\r\ntwo\rhalf\r\n")

    assert await read_file(tmp_path, "a.txt") == "1\tone\n2\ttwo\rhalf"


@requirement("READ-1")
async def test_only_newlines_end_lines(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a\u2028b\x0cc\x85d\n")

    assert await read_file(tmp_path, "a.txt") == "1\ta\u2028b\x0cc\x85d"


@requirement("READ-1", "CON-12")
async def test_people_see_the_lines_as_code(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x = 1\ny = 2\n")

    outcome = await run_call(tmp_path, Read(), {"file_path": "a.py", "offset": 2})

    assert outcome.view == Code("y = 2", str(tmp_path / "a.py"), 2)


# Pages


@requirement("READ-7")
async def test_a_file_over_the_budget_gives_its_first_page_and_the_next_offset(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("x" * 92 + "\n" + ("x" * 92 + "\n") * 1999)

    text = await read_file(tmp_path, "a.txt")

    assert text.endswith("\n\n[Lines 1 to 969 of 2000. Read on with offset 970.]")
    assert text.startswith("1\tx")


_blocks = st.lists(
    st.tuples(st.sampled_from(["", "a", "word " * 10, "x" * 1990, "y" * 2500]), st.integers(1, 3000)), max_size=4
)


@requirement("READ-7", "BUD-2")
@settings(max_examples=8)
@given(_blocks, st.integers(1, 10))
async def test_following_the_notices_yields_every_line_exactly_once(
    tmp_path_factory: pytest.TempPathFactory, blocks: list[tuple[str, int]], offset: int
) -> None:
    folder = tmp_path_factory.mktemp("pages")
    lines = [f"{number}:{text}" for number, text in enumerate([text for text, times in blocks for _ in range(times)])]
    (folder / "a.txt").write_text("".join(f"{line}\n" for line in lines))
    seen: list[tuple[int, str]] = []
    next_offset: int | None = min(offset, max(1, len(lines)))
    start = next_offset

    while lines and next_offset is not None:
        text = await read_file(folder, "a.txt", offset=next_offset)
        assert len(text) <= Read.result_limit
        seen += [(int(number), line) for number, line in re.findall(r"^ *(\d+)\t(.*)$", text, re.MULTILINE)]
        notice = re.search(r"\n\n\[Lines \d+ to \d+ of \d+\. Read on with offset (\d+)\.\]$", text)
        next_offset = int(notice[1]) if notice else None

    assert [number for number, _ in seen] == list(range(start, len(lines) + 1)) if lines else seen == []
    assert all(lines[number - 1].startswith(line.split(" [")[0][:LINE_CHARS]) for number, line in seen)


@requirement("READ-7", "BUD-2")
async def test_a_page_fits_its_limit_even_where_line_numbers_are_long(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("\n" * 1_100_000)

    outcome = await run_call(tmp_path, Read(), {"file_path": "a.txt", "offset": 1_000_001})

    assert outcome.record is not None
    assert (outcome.record.saved_to, outcome.record.sent_chars <= 100_000) == (None, True)


@requirement("READ-1", "FILE-6")
@pytest.mark.parametrize("encoding", ["latin-1", "utf-8-sig", "utf-16", "utf-16-le"])
async def test_text_is_read_in_the_encoding_it_is_in(tmp_path: Path, encoding: str) -> None:
    (tmp_path / "a.txt").write_bytes("café\r\nnaïve\r\n".encode(encoding))

    assert await read_file(tmp_path, "a.txt") == "1\tcafé\n2\tnaïve"


# Paths


@requirement("CON-8")
async def test_a_path_may_be_relative_or_start_with_a_tilde(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "a.txt").write_text("one")

    for path in ("a.txt", "./b/../a.txt", "~/a.txt", f"{tmp_path}//a.txt"):
        assert await read_file(tmp_path, path) == "1\tone"


@requirement("CON-8")
async def test_the_outcome_keeps_the_path_as_the_model_wrote_it(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one")

    outcome = await run_call(tmp_path, Read(), {"file_path": "./a.txt"})

    assert outcome.call.arguments == {"file_path": "./a.txt"}


@requirement("CON-8")
@pytest.mark.parametrize(("on_disk", "written"), [("NFC", "NFD"), ("NFD", "NFC")])
async def test_a_name_is_found_in_either_unicode_form(tmp_path: Path, on_disk: str, written: str) -> None:
    (tmp_path / unicodedata.normalize(on_disk, "naïve.txt")).write_text("one")

    assert await read_file(tmp_path, unicodedata.normalize(written, "naïve.txt")) == "1\tone"


@requirement("PIPE-2")
async def test_a_path_with_a_nul_character_is_refused(tmp_path: Path) -> None:
    assert await read_refused(tmp_path, "a\0b") == (
        Status.INVALID,
        "`file_path` holds a NUL character, which no path can. Remove it.",
    )


@requirement("PIPE-2")
async def test_a_path_that_no_file_system_can_hold_is_refused(tmp_path: Path) -> None:
    long = await read_refused(tmp_path, "x" * 5000)
    surrogate = await read_refused(tmp_path, "a\ud800")

    assert long == (
        Status.FAILED,
        f"{tmp_path}/{'x' * 5000} cannot be read: its name is longer than any file's. Use Glob to find the file.",
    )
    assert surrogate == (
        Status.FAILED,
        f"{tmp_path}/a? holds a character that no path can. Use Glob to find the file.",
    )


@requirement("CON-5")
def test_reading_states_the_one_file_it_reads(tmp_path: Path) -> None:
    effects = Read().effects(ReadInput(file_path="/a"), bare_context(tmp_path))

    assert (effects, effects.read_only) == (Effects.reading("/a"), True)


@requirement("CON-15")
@pytest.mark.parametrize("name", ["read_file", "FileRead"])
async def test_old_names_of_read_work(tmp_path: Path, name: str) -> None:
    (tmp_path / "a.txt").write_text("one\ntwo\n")

    (outcome,) = await run_calls(tmp_path, [ToolCall("1", name, {"file_path": "a.txt", "offset": 2, "limit": 1})])

    assert (outcome.status, text_of_file(outcome.content)) == (Status.OK, "2\ttwo")


@requirement("READ-1")
async def test_a_direct_call_raises_what_the_engine_would_tell(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="does not exist"):
        await Read().call(ReadInput(file_path=str(tmp_path / "gone")), bare_context(tmp_path))
