"""Text files, opened so that nothing can hang and nothing but a file is read."""

from __future__ import annotations

import codecs
import os
import stat
from dataclasses import dataclass

SNIFF = 8192


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
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | getattr(os, "O_NOCTTY", 0))
    with open(descriptor, "rb") as file:
        mode = os.fstat(descriptor).st_mode
        if not stat.S_ISREG(mode):
            raise NotText(f"it is {_kind(mode)}")
        data = file.read()
    return TextFile(_decoded(data), len(data))


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
