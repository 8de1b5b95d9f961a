"""The file of a transcript: whole lines, held by one, as long as the disk allows it."""

from __future__ import annotations

import resource
import signal
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ferrule.host.storage.transcript_files import TranscriptError, TranscriptFile, Transcripts, folder_name
from tests.requirement import requirement


@contextmanager
def at_most(size: int) -> Generator[None]:
    """No file may grow beyond so many bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, ignored)


@requirement("LOOP-2")
async def test_a_line_that_a_full_disk_cut_short_does_not_spoil_the_next_one(tmp_path: Path) -> None:
    file = TranscriptFile(tmp_path / "a.jsonl")
    file.append(b"first\n")

    with at_most(10), pytest.raises(OSError, match="File too large"):
        file.append(b"the second line\n")
    file.append(b"third\n")
    await file.close()

    assert (tmp_path / "a.jsonl").read_bytes() == b"first\nthe \nthird\n"


@pytest.mark.parametrize(
    ("left", "kept"),
    [
        (b"one\ntwo\n", b"one\ntwo\n"),
        (b"one\ntw", b"one\n"),
        (b"one\n" + b"x" * 200_000, b"one\n"),
        (b"half", b""),
        (b"", b""),
    ],
)
async def test_half_a_last_line_is_cut_off_when_the_file_is_gone_on_with(
    tmp_path: Path, left: bytes, kept: bytes
) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(left)

    file = TranscriptFile.resume(path)
    file.append(b"new\n")
    file.sync()
    await file.close()

    assert path.read_bytes() == kept + b"new\n"


async def test_no_link_is_followed_and_no_missing_file_made(tmp_path: Path) -> None:
    (tmp_path / "target").write_text("precious\n")
    (tmp_path / "link.jsonl").symlink_to(tmp_path / "target")

    for name in ("link.jsonl", "missing.jsonl"):
        with pytest.raises(TranscriptError, match="cannot be opened"):
            TranscriptFile.resume(tmp_path / name)
    with pytest.raises(TranscriptError, match="cannot be opened"):
        TranscriptFile(tmp_path / "link.jsonl").append(b"x\n")
    assert (tmp_path / "target").read_text() == "precious\n"


def test_a_long_path_has_a_short_name_of_its_own() -> None:
    one, other = (folder_name("/deep" * 100 + last) for last in ("/a", "/b"))

    assert len(one) < 255
    assert one != other


def test_a_file_that_is_no_transcript_is_not_listed(tmp_path: Path) -> None:
    folder = tmp_path / "projects" / folder_name(str(tmp_path))
    folder.mkdir(parents=True)
    (folder / "odd.jsonl").write_bytes(b"\xff\x00nonsense\n[1]\n")
    (folder / "empty.jsonl").touch()
    (folder / "folder.jsonl").mkdir()

    assert Transcripts(tmp_path / "projects").listing(str(tmp_path)) == ()
