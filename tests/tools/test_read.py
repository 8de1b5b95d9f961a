"""Read: a text file, with line numbers."""

from __future__ import annotations

import os
import re
import socket
import unicodedata
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from inline_snapshot import snapshot

from ferrule.core.calls import Status, ToolCall
from ferrule.core.content import Code, Text
from ferrule.core.effects import Effects
from ferrule.core.tool import ToolError
from ferrule.host.pages import LINE_CHARS
from ferrule.testing import bare_context, run_call, run_calls
from ferrule.testing.tool_contract import ToolContract
from ferrule.tools.read import REMINDER, Read, ReadInput
from tests.requirement import requirement

READABLE = "Text, pictures (PNG, JPEG, GIF, WebP), PDF documents and notebooks can be read."


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


async def _read(folder: Path, file_path: str | Path, **more: Any) -> str:
    outcome = await run_call(folder, Read(), {"file_path": str(file_path), **more})
    assert outcome.status is Status.OK, outcome.content
    return _text(outcome.content)


async def _refused(folder: Path, file_path: str | Path, **more: Any) -> tuple[Status, str]:
    outcome = await run_call(folder, Read(), {"file_path": str(file_path), **more})
    assert outcome.is_error
    return outcome.status, _text(outcome.content)


def _text(content: tuple[Any, ...]) -> str:
    """What is said of the file; what is said of all files has its own test."""
    (block,) = (block for block in content if block != Text(REMINDER))
    assert isinstance(block, Text)
    return block.text


# Lines


@requirement("READ-1")
async def test_lines_are_numbered_from_one(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\n\n  three")

    assert await _read(tmp_path, "a.txt") == "     1\tone\n     2\t\n     3\t  three"


@requirement("READ-1")
async def test_offset_and_limit_choose_lines_and_the_rest_is_announced(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\ntwo\nthree\nfour\n")

    assert await _read(tmp_path, "a.txt", offset=2, limit=2) == snapshot("""\
     2	two
     3	three

[Lines 2 to 3 of 4. Read on with offset 4.]\
""")
    assert await _read(tmp_path, "a.txt", offset=4, limit=10**30) == "     4\tfour"


@requirement("READ-1")
@pytest.mark.parametrize("offset", [5, 10**30])
async def test_an_offset_past_the_end_says_how_many_lines_there_are(tmp_path: Path, offset: int) -> None:
    (tmp_path / "a.txt").write_text("one\ntwo\nthree\nfour\n")

    assert await _refused(tmp_path, "a.txt", offset=offset) == (
        Status.FAILED,
        f"{tmp_path}/a.txt cannot be read: it has 4 lines; there is no line {offset} to start from.",
    )


@requirement("READ-1")
@pytest.mark.parametrize("wrong", [{"offset": 0}, {"offset": -1}, {"limit": 0}, {"limit": "1.5"}])
async def test_a_line_number_below_one_is_refused(tmp_path: Path, wrong: dict[str, Any]) -> None:
    (tmp_path / "a.txt").write_text("one")

    status, words = await _refused(tmp_path, "a.txt", **wrong)

    assert status is Status.INVALID
    assert f"`{next(iter(wrong))}`" in words


@requirement("READ-1")
async def test_a_long_line_is_cut_and_says_by_how_much(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("x" * (LINE_CHARS + 1234) + "\n" + "y" * LINE_CHARS)

    assert await _read(tmp_path, "a.txt") == (
        f"     1\t{'x' * LINE_CHARS} [1,234 more characters in this line]\n     2\t{'y' * LINE_CHARS}"
    )


@requirement("READ-1")
async def test_a_line_asked_for_alone_is_not_cut(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\n" + "x" * 5000 + "\nthree\n")

    text = await _read(tmp_path, "a.txt", offset=2, limit=1)

    assert text == f"     2\t{'x' * 5000}\n\n[Lines 2 to 2 of 3. Read on with offset 3.]"


@requirement("READ-1")
async def test_a_file_with_no_other_endings_has_its_lines_by_carriage_returns(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"one\rtwo\rthree\r")

    assert await _read(tmp_path, "a.txt", offset=2) == "     2\ttwo\n     3\tthree"


@requirement("READ-1")
async def test_line_endings_and_a_byte_order_mark_are_not_shown(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"\xef\xbb\xbfone\r\ntwo\rhalf\r\n")

    assert await _read(tmp_path, "a.txt") == "     1\tone\n     2\ttwo\rhalf"


@requirement("READ-1")
async def test_only_newlines_end_lines(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a\u2028b\x0cc\x85d\n")

    assert await _read(tmp_path, "a.txt") == "     1\ta\u2028b\x0cc\x85d"


@requirement("READ-1", "CON-12")
async def test_people_see_the_lines_as_code(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x = 1\ny = 2\n")

    outcome = await run_call(tmp_path, Read(), {"file_path": "a.py", "offset": 2})

    assert outcome.view == Code("y = 2", str(tmp_path / "a.py"), 2)


# Pages


@requirement("READ-7")
async def test_a_file_over_the_budget_gives_its_first_page_and_the_next_offset(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("x" * 92 + "\n" + ("x" * 92 + "\n") * 1999)

    text = await _read(tmp_path, "a.txt")

    assert text.endswith("\n\n[Lines 1 to 950 of 2000. Read on with offset 951.]")
    assert text.startswith("     1\tx")


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
        text = await _read(folder, "a.txt", offset=next_offset)
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


# What is there, and what is not


@requirement("READ-9")
async def test_an_empty_file_says_that_it_is_empty(tmp_path: Path) -> None:
    (tmp_path / "a.txt").touch()

    assert await _read(tmp_path, "a.txt", offset=7) == f"{tmp_path}/a.txt is empty."


@requirement("READ-9")
async def test_a_file_of_one_newline_has_one_empty_line(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("\n")

    assert await _read(tmp_path, "a.txt") == "     1\t"


@requirement("READ-9")
async def test_a_missing_file_names_the_nearest_ones(tmp_path: Path) -> None:
    for name in ("settings.py", "setup.py", "zebra"):
        (tmp_path / name).touch()

    assert await _refused(tmp_path, "setings.py") == (
        Status.FAILED,
        f"{tmp_path}/setings.py does not exist. In that folder there is settings.py, setup.py.",
    )
    assert await _refused(tmp_path, "qqq") == (
        Status.FAILED,
        f"{tmp_path}/qqq does not exist. Use Glob to find the file.",
    )
    assert await _refused(tmp_path, "no/such/a.txt") == (
        Status.FAILED,
        f"{tmp_path}/no/such/a.txt does not exist, and neither does {tmp_path}/no/such. Use Glob to find the file.",
    )


@requirement("READ-9")
async def test_a_path_through_a_file_says_so(tmp_path: Path) -> None:
    (tmp_path / "a.txt").touch()

    assert await _refused(tmp_path, "a.txt/b") == (
        Status.FAILED,
        f"{tmp_path}/a.txt/b cannot be read: Not a directory.",
    )


@requirement("READ-9")
async def test_a_link_that_leads_nowhere_is_a_missing_file(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("gone")
    (tmp_path / "loop").symlink_to("loop")

    assert (await _refused(tmp_path, "link"))[1].startswith(f"{tmp_path}/link does not exist.")
    assert (await _refused(tmp_path, "loop"))[1] == (
        f"{tmp_path}/loop cannot be read: Too many levels of symbolic links."
    )


@requirement("READ-8")
async def test_a_directory_is_refused_with_the_tool_to_use(tmp_path: Path) -> None:
    assert await _refused(tmp_path, tmp_path) == (
        Status.FAILED,
        f"{tmp_path} cannot be read: it is a directory. Use Glob to list what is in it.",
    )


@requirement("READ-8")
async def test_a_pipe_is_refused_and_does_not_hang(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")

    assert await _refused(tmp_path, "pipe") == (
        Status.FAILED,
        f"{tmp_path}/pipe cannot be read: it is a named pipe. {READABLE}",
    )


@requirement("READ-8")
@pytest.mark.parametrize("path", ["/dev/zero", "/dev/random", "/dev/stdin", "/proc/self/fd/0", "/proc/self/mem"])
async def test_a_stream_of_the_system_is_refused_at_once(tmp_path: Path, path: str) -> None:
    status, words = await _refused(tmp_path, path)

    assert status is Status.FAILED
    assert words.startswith(f"{path} cannot be read: ")


@requirement("READ-8")
async def test_a_socket_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # the path of a socket must be short
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("s")

        assert await _refused(tmp_path, "s") == (
            Status.FAILED,
            f"{tmp_path}/s cannot be read: it is a socket. {READABLE}",
        )


@requirement("READ-8")
async def test_a_pipe_among_the_descriptors_of_a_process_is_refused(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    try:
        status, words = await _refused(tmp_path, f"/proc/self/fd/{reading}")
    finally:
        os.close(reading)
        os.close(writing)

    assert (status, words) == (
        Status.FAILED,
        f"/proc/self/fd/{reading} cannot be read: it is a named pipe. {READABLE}",
    )


@requirement("READ-8")
async def test_a_file_that_the_kernel_makes_up_is_read(tmp_path: Path) -> None:
    assert "Name:" in await _read(tmp_path, "/proc/self/status")


@requirement("READ-8")
@pytest.mark.parametrize("data", [b"\x7fELF\x02\x01\x01\0\0\0", b"MZ\0\0" * 100_000, b"\x01\xff\x03" * 60_000])
async def test_what_is_binary_by_content_is_refused(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "a.txt").write_bytes(data)

    assert await _refused(tmp_path, "a.txt") == (
        Status.FAILED,
        f"{tmp_path}/a.txt cannot be read: it is binary. {READABLE}",
    )


@requirement("READ-8")
@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("a.zip", "an archive (.zip)"),
        ("a.tar.GZ", "an archive (.gz)"),
        ("a.mp4", "sound or video (.mp4)"),
        ("a.docx", "an office document (.docx)"),
        ("a.bmp", "a picture in a format that models do not take (.bmp)"),
    ],
)
async def test_what_is_binary_by_its_name_is_refused(tmp_path: Path, name: str, what: str) -> None:
    (tmp_path / name).write_text("whatever this is")

    assert await _refused(tmp_path, name) == (
        Status.FAILED,
        f"{tmp_path}/{name} cannot be read: it is {what}. {READABLE}",
    )


@requirement("READ-1", "FILE-6")
@pytest.mark.parametrize("encoding", ["latin-1", "utf-8-sig", "utf-16", "utf-16-le"])
async def test_text_is_read_in_the_encoding_it_is_in(tmp_path: Path, encoding: str) -> None:
    (tmp_path / "a.txt").write_bytes("café\r\nnaïve\r\n".encode(encoding))

    assert await _read(tmp_path, "a.txt") == "     1\tcafé\n     2\tnaïve"


# Paths


@requirement("CON-8")
async def test_a_path_may_be_relative_or_start_with_a_tilde(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "a.txt").write_text("one")

    for path in ("a.txt", "./b/../a.txt", "~/a.txt", f"{tmp_path}//a.txt"):
        assert await _read(tmp_path, path) == "     1\tone"


@requirement("CON-8")
async def test_the_outcome_keeps_the_path_as_the_model_wrote_it(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one")

    outcome = await run_call(tmp_path, Read(), {"file_path": "./a.txt"})

    assert outcome.call.arguments == {"file_path": "./a.txt"}


@requirement("CON-8")
@pytest.mark.parametrize(("on_disk", "written"), [("NFC", "NFD"), ("NFD", "NFC")])
async def test_a_name_is_found_in_either_unicode_form(tmp_path: Path, on_disk: str, written: str) -> None:
    (tmp_path / unicodedata.normalize(on_disk, "naïve.txt")).write_text("one")

    assert await _read(tmp_path, unicodedata.normalize(written, "naïve.txt")) == "     1\tone"


@requirement("PIPE-2")
async def test_a_path_with_a_nul_character_is_refused(tmp_path: Path) -> None:
    assert await _refused(tmp_path, "a\0b") == (
        Status.INVALID,
        "`file_path` holds a NUL character, which no path can. Remove it.",
    )


@requirement("PIPE-2")
async def test_a_path_that_no_file_system_can_hold_is_refused(tmp_path: Path) -> None:
    long = await _refused(tmp_path, "x" * 5000)
    surrogate = await _refused(tmp_path, "a\ud800")

    assert long == (Status.FAILED, f"{tmp_path}/{'x' * 5000} cannot be read: File name too long.")
    assert surrogate == (
        Status.FAILED,
        f"'{tmp_path}/a\\ud800' holds a character that no path can. Use Glob to find the file.",
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

    assert (outcome.status, _text(outcome.content)) == (Status.OK, "     2\ttwo")


@requirement("READ-1")
async def test_a_direct_call_raises_what_the_engine_would_tell(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="does not exist"):
        await Read().call(ReadInput(file_path=str(tmp_path / "gone")), bare_context(tmp_path))
