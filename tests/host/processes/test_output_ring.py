"""Output of any amount, in bounded memory, as text that a person or a model can read."""

from __future__ import annotations

import os
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferrule.host.processes.output_ring import HEAD, TAIL, OutputRing, decode_output
from ferrule.host.processes.terminal_text import TerminalStream, clean_output
from tests.host.processes.shell import GENEROUS, command, opened
from tests.requirement import requirement


def _spilling(folder: Path, **more: int) -> OutputRing:
    path = folder / "spill"
    return OutputRing(lambda: (path, os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)), **more)


@requirement("BUD-4")
def test_memory_stays_bounded_whatever_the_pieces(tmp_path: Path) -> None:
    for size, times in ((1, 50_000), (100, 5_000), (65_536, 200)):
        (tmp_path / "spill").unlink(missing_ok=True)
        ring, piece = _spilling(tmp_path), b"x" * size
        tracemalloc.start()
        for _ in range(times):
            ring.feed(bytes(piece))
        held, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()

        assert held < 600_000
        assert ring.total == size * times
        ring.close()


@given(st.lists(st.binary(max_size=40_000), max_size=12), st.integers(0, 400_000), st.integers(0, 400_000))
def test_what_was_fed_can_be_read_again_from_anywhere(
    tmp_path_factory: object, pieces: list[bytes], start: int, stop: int
) -> None:
    whole = b"".join(pieces)
    folder = _fresh(tmp_path_factory)
    ring = _spilling(folder)
    for piece in pieces:
        ring.feed(piece)

    output = ring.snapshot(keep_if_over=30_000)

    assert ring.read(start, stop) == whole[start:stop]
    assert output.head == whole[:HEAD]
    assert whole.endswith(output.tail)
    assert len(output.head) + len(output.tail) >= min(len(whole), HEAD + TAIL)
    assert output.saved is None or output.saved.read_bytes() == whole
    assert (output.saved is not None) == (len(whole) > 30_000)
    ring.close()


def _fresh(factory: object) -> Path:
    return factory.mktemp("ring")  # type: ignore[attr-defined]


def test_the_file_is_capped_and_says_so(tmp_path: Path) -> None:
    ring = _spilling(tmp_path, spill_cap=200_000)
    for _ in range(100):
        ring.feed(b"0123456789" * 1_000)

    output = ring.snapshot()

    assert output.saved is not None
    assert (output.capped, output.total, output.saved.stat().st_size) == (True, 1_000_000, 200_000)
    assert output.saved.stat().st_mode & 0o777 == 0o600
    assert ring.first_lost == 200_000
    ring.close()


def test_without_a_place_for_a_file_both_ends_are_kept() -> None:
    def nowhere() -> tuple[Path, int]:
        raise OSError(28, "No space left on device")

    ring = OutputRing(nowhere)
    for number in range(100_000):
        ring.feed(b"%d\n" % number)

    output = ring.snapshot()

    assert output.saved is None
    assert output.text().startswith("0\n1\n")
    assert output.text().endswith("\n99999\n")


def test_a_text_too_long_for_the_model_shows_both_its_ends() -> None:
    ring = OutputRing()
    for number in range(50_000):
        ring.feed(b"line %d\n" % number)

    text = ring.snapshot().text(30_000)

    assert len(text) <= 30_100
    assert text.startswith("line 0\n")
    assert text.endswith("line 49999\n")
    assert "lines " in text
    assert "left out …]" in text
    assert all(line.startswith(("line ", "[…")) for line in text.splitlines() if line)


@given(st.text(), st.data())
def test_a_character_cut_in_two_is_not_made_into_something_else(text: str, data: st.DataObject) -> None:
    content = text.encode("utf-8", "replace")
    text = content.decode()
    start = data.draw(st.integers(0, len(content)))
    stop = data.draw(st.integers(start, len(content)))

    assert decode_output(content[start:stop]) in text


@pytest.mark.parametrize("content", [b"caf\xe9", b"\x80abc", b"\xf0\x9f\x98"])
def test_of_a_whole_output_no_broken_character_is_left_out(content: bytes) -> None:
    ring = OutputRing()
    ring.feed(content)

    assert ring.snapshot().text() == content.decode("utf-8", "replace")


@given(st.binary())
def test_any_bytes_can_be_shown(content: bytes) -> None:
    shown = clean_output(decode_output(content))

    assert not [character for character in shown if ord(character) < 32 and character not in "\t\n"]
    assert "\x1b" not in shown


@given(st.lists(st.sampled_from(["a", "é", "\n", "\r\n", "\x1b[31m", "\x1b]0;title\x07", "\x1b[0m", "\t"])), st.data())
def test_a_stream_cut_anywhere_reads_like_the_whole(parts: list[str], data: st.DataObject) -> None:
    content = "".join(parts).encode()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(content)))))
    stream = TerminalStream()

    pieces = [content[start:stop] for start, stop in zip([0, *cuts], [*cuts, len(content)], strict=True)]
    shown = "".join(stream.feed(piece) for piece in pieces) + stream.rest()

    assert shown == clean_output(content.decode())


def test_a_line_written_over_shows_what_stood_there_last() -> None:
    assert clean_output("10%\r50%\r100%\r\nabc\x08\x08XY\n\x1b[2Kdone\r") == "100%\naXY\ndone"


@pytest.mark.parametrize("begun", ["\x1b]0;title", "\x1bP", "\x1b_"])
def test_a_title_that_never_ends_hides_no_other_line(begun: str) -> None:
    stream = TerminalStream()

    assert clean_output(f"{begun}\nseen\n") == "\nseen\n"
    assert stream.feed(begun.encode()) + stream.feed(b"\nseen\n") == "\nseen\n"


def test_hostile_output_takes_no_time() -> None:
    for text in (
        "\x08" * 200_000,
        "a" * 100_000 + "\x08" * 100_000,
        "\x1b]" * 100_000,
        "\x1b[" * 100_000,
        "\r" * 200_000,
    ):
        clean_output(text)  # seconds or more if it were not linear
        TerminalStream().feed(text.encode())


async def test_a_flood_is_kept_byte_for_byte(tmp_path: Path) -> None:
    """Where it is read changes on the way, from the loop to a thread and back."""
    whole = "".join(f"{number}\n" for number in range(1, 1_000_001)).encode()
    async with opened(tmp_path) as commands:
        ran = await commands.run(command("seq 1000000", tmp_path), timeout=GENEROUS)

    assert ran.output.saved is not None
    assert ran.output.saved.read_bytes() == whole
    assert (ran.output.total, ran.output.head) == (len(whole), whole[:HEAD])
    assert whole.endswith(ran.output.tail)


async def test_a_flood_from_what_was_left_behind_holds_nobody_up(tmp_path: Path) -> None:
    async with opened(tmp_path) as commands:
        ran = await commands.run(command("yes & sleep 0.2; echo end", tmp_path), timeout=GENEROUS)
        again = await commands.run(command("echo again", tmp_path), timeout=GENEROUS)

        assert (len(ran.left), again.output.text()) == (1, "again\n")
        assert ran.output.total > 1_000_000


@requirement("BUD-4")
async def test_a_flood_costs_little_memory(tmp_path: Path) -> None:
    async with opened(tmp_path) as commands:
        await commands.run(command("true", tmp_path))
        before = _resident()
        sizes: list[int] = []

        def watch(_: str) -> None:
            sizes.append(_resident())

        ran = await commands.run(command("head -c 300M /dev/zero", tmp_path), timeout=GENEROUS, on_output=watch)

    assert (ran.exit_code, ran.output.total, ran.output.capped) == (0, 300 << 20, True)
    assert ran.output.saved is not None
    assert ran.output.saved.stat().st_size == 64 << 20
    assert max(sizes) - before < 64 << 20


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
