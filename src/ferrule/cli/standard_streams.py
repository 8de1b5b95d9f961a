"""The three standard streams, made safe before anything else opens a file.

A number that is closed would be taken by the next file that is opened, and
what is meant for stderr would end up in it. Text that stderr does not take (a
full disk, a reader that is gone) is lost; the work continues.

Much of what is printed comes from files, models and servers. Control
characters are removed for a terminal; a pipe or a file gets every byte.
"""

from __future__ import annotations

import io
import os
import sys
from contextlib import suppress
from typing import TextIO

from .exits import UsageError

STDIN, STDOUT, STDERR = 0, 1, 2


def settle_streams() -> None:
    """Put /dev/null where a standard descriptor is closed, and let no write to stderr fail.

    `sys.__stdin__` and `sys.__stdout__` stay `None` where they were closed, which is how the rest knows of it.
    """
    for number in (STDIN, STDOUT, STDERR):
        _fill(number)
    if sys.stdin is None:  # pyright: ignore[reportUnnecessaryComparison] - what Python makes of a closed descriptor
        sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: SIM115 - as long as the process
    if sys.stdout is None:  # pyright: ignore[reportUnnecessaryComparison]
        sys.stdout = unfailing(STDOUT)
    if sys.stderr is None or sys.stderr is sys.__stderr__:  # pyright: ignore[reportUnnecessaryComparison]
        sys.stderr = unfailing(STDERR, sys.stderr)
    if sys.stdout is sys.__stdout__ and os.isatty(STDOUT):
        sys.stdout = _HarmlessText(
            io.BufferedWriter(io.FileIO(STDOUT, "w", closefd=False)),
            sys.stdout.encoding,
            sys.stdout.errors,
            line_buffering=True,
        )


def check_stdout() -> None:
    """Raises `Usage` if a result cannot be written anywhere."""
    if sys.__stdout__ is None:
        raise UsageError("stdout is closed, so the result cannot be written.")


def unfailing(descriptor: int, like: TextIO | None = None) -> TextIO:
    """A text stream with the encoding of another."""
    encoding = (like.encoding if like else None) or "utf-8"
    raw = io.BufferedWriter(_Words(descriptor, "w", closefd=False))
    kind = _HarmlessText if os.isatty(descriptor) else io.TextIOWrapper
    return kind(raw, encoding, "backslashreplace", line_buffering=True, write_through=True)


class _HarmlessText(io.TextIOWrapper):
    """Text for a terminal."""

    def write(self, text: str, /) -> int:
        from ..output.plain import harmless

        super().write(harmless(text))
        return len(text)


class _Words(io.FileIO):
    """What cannot be written is dropped."""

    def write(self, data: object, /) -> int:
        view = memoryview(data)  # pyright: ignore[reportArgumentType] - whatever has bytes
        with suppress(OSError):
            return super().write(view) or view.nbytes
        return view.nbytes


def _fill(number: int) -> None:
    """The lowest free number is the one that an open gets, so the numbers below must be filled already."""
    try:
        os.fstat(number)
    except OSError:
        opened = os.open(os.devnull, os.O_RDWR)
        if opened != number:
            os.dup2(opened, number)
            os.close(opened)
        os.set_inheritable(number, True)
