"""Text files, opened so that nothing can hang."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferrule.host.files.open_files import MOST, MOST_UNSIZED, NotText, read_document
from tests.requirement import requirement


def _reason(path: Path | str) -> str:
    with pytest.raises(NotText) as caught:
        read_document(str(path))
    return str(caught.value)


@requirement("READ-1")
@given(st.text(st.characters(exclude_characters="\0", exclude_categories=("Cs",))))
def test_text_is_read_back_as_it_was_written(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    path = tmp_path_factory.getbasetemp() / "text"
    path.write_bytes(text.encode())

    read = read_document(str(path))

    assert (read.document.text, read.identity.size) == (text.removeprefix("\ufeff"), len(text.encode()))


@requirement("READ-8")
def test_what_is_not_a_file_is_refused_by_what_it_is(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.txt")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "socket.txt"))

    assert _reason(tmp_path / "socket.txt") == "it is a socket"
    assert _reason(tmp_path / "pipe.txt") == "it is a named pipe"
    assert _reason(tmp_path) == "it is a directory"
    assert _reason("/dev/zero") == "it is a device"
    assert _reason("/dev/null") == "it is a device"


@requirement("READ-8")
def test_a_refusal_leaves_no_descriptor_open(tmp_path: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))

    for _ in range(3):
        assert _reason(tmp_path) == "it is a directory"

    assert len(os.listdir("/proc/self/fd")) == before


@requirement("READ-8")
def test_a_link_to_a_device_is_still_a_device(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").symlink_to("/dev/zero")

    assert _reason(tmp_path / "notes.txt") == "it is a device"


@requirement("READ-8")
def test_a_file_the_kernel_makes_up_is_read_where_it_ends() -> None:
    assert read_document("/proc/self/status").document.text.startswith("Name:")


@requirement("READ-8")
def test_a_file_without_a_size_that_never_ends_is_a_stream(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "endless"
    path.write_bytes(b"x" * (MOST_UNSIZED + 1))
    sized = os.fstat
    monkeypatch.setattr(os, "fstat", lambda descriptor: _without_size(sized(descriptor)))

    assert _reason(path) == "it is a stream"


@requirement("READ-8")
@pytest.mark.skipif(not os.access("/proc/self/pagemap", os.R_OK), reason="needs /proc/self/pagemap")
def test_a_window_into_memory_is_refused_at_once() -> None:
    assert _reason("/proc/self/pagemap") in ("it is a stream", "it is binary")


@requirement("READ-8")
def test_a_file_that_claims_more_than_memory_holds_is_refused_at_once(tmp_path: Path) -> None:
    path = tmp_path / "sparse"
    path.touch()
    os.truncate(path, MOST + 1)

    assert _reason(path) == "it has 1,073,741,825 bytes, and at most 1,073,741,824 can be loaded"


@requirement("READ-8")
def test_what_is_not_text_says_why(tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(b"ELF\0\1")
    (tmp_path / "mixed").write_bytes("größer, schöner, weiß".encode() + b" na\xefve")

    assert _reason(tmp_path / "binary") == "it is binary"
    assert _reason(tmp_path / "mixed") == "it is UTF-8 but for stray bytes, the first in line 1 (byte 28 is 0xef)"


@requirement("READ-1", "FILE-6")
def test_text_in_an_older_encoding_is_read(tmp_path: Path) -> None:
    (tmp_path / "latin").write_bytes("naïve\r\n".encode("latin-1"))

    read = read_document(str(tmp_path / "latin"))

    assert (read.document.text, read.identity.size) == ("naïve\r\n", 7)


def _without_size(status: os.stat_result) -> os.stat_result:
    return os.stat_result((*status[:6], 0, *status[7:10]))
