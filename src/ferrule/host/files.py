"""Text files, opened so that nothing can hang and nothing but a file is read."""

from __future__ import annotations

import codecs
import errno
import os
import stat
from dataclasses import dataclass
from typing import BinaryIO, cast

SNIFF = 8192
MOST = 1 << 30
"""Bytes beyond which nothing is loaded: a sparse file or a window into memory can claim any size."""
MOST_UNSIZED = 16 << 20
"""Bytes to take from a file that says it has none, as those the kernel makes up do."""


class NotText(Exception):
    """There is something at this path, but no text that can be read. The message says what."""


@dataclass(frozen=True, slots=True)
class TextFile:
    text: str
    size: int


def read_text(path: str) -> TextFile:
    """The whole file as text. Raises `NotText` or `OSError`.

    Opened without blocking and looked at through the descriptor: a FIFO, a
    device or a directory is refused by what it is, whatever it is called.
    """
    descriptor = _opened(path)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise NotText(f"it is {_kind(status.st_mode)}")
        if status.st_size > MOST:
            raise NotText(f"it has {status.st_size:,} bytes, more than can be loaded")
        with open(descriptor, "rb", closefd=False) as file:
            data = file.read() if status.st_size else _unsized(file)
    finally:
        os.close(descriptor)
    return TextFile(_decoded(data), len(data))


def _opened(path: str) -> int:
    try:
        return os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | getattr(os, "O_NOCTTY", 0))
    except OSError as error:
        if error.errno == errno.ENXIO:  # what cannot be opened at all: a socket
            raise NotText(f"it is {_kind(os.stat(path).st_mode)}") from None
        raise


def _unsized(file: BinaryIO) -> bytes:
    data = cast(bytes | None, file.read(MOST_UNSIZED + 1))
    if data is None or len(data) > MOST_UNSIZED:
        raise NotText("it is a stream")
    return data


def _decoded(data: bytes) -> str:
    if b"\0" in data[:SNIFF]:
        raise NotText("it is binary")
    try:
        return data.removeprefix(codecs.BOM_UTF8).decode()
    except UnicodeDecodeError as error:
        raise NotText(f"it is not UTF-8 (byte {error.start:,} is {data[error.start]:#04x})") from None


def _kind(mode: int) -> str:
    kinds = {
        stat.S_IFDIR: "a directory",
        stat.S_IFIFO: "a named pipe",
        stat.S_IFSOCK: "a socket",
        stat.S_IFCHR: "a device",
        stat.S_IFBLK: "a device",
    }
    return kinds.get(stat.S_IFMT(mode), "not a regular file")
