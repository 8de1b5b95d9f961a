"""Standard input and output that belong to us alone, and that never hold up a signal."""

from __future__ import annotations

import asyncio
import os
import select
import sys
from collections.abc import Callable
from typing import Any

from ..output.plain import harmless
from .exits import UsageError
from .standard_streams import STDERR, STDIN, STDOUT, check_stdout, unfailing

PATIENCE = 1.0
"""Seconds for a reader to take what a signal left unwritten."""


class StdoutWriter:
    """The real stdout. Whatever else prints, in any library or child, goes to stderr from now on."""

    def __init__(self) -> None:
        check_stdout()
        sys.stdout.flush()
        self._descriptor = os.dup(STDOUT)
        self._is_terminal = os.isatty(self._descriptor)
        os.dup2(STDERR, STDOUT)
        sys.stdout = unfailing(STDOUT, sys.stdout)
        self._unsaid = bytearray()
        self._lock = asyncio.Lock()

    async def write(self, data: bytes) -> None:
        """Wait for a slow reader without blocking the loop.

        Whole pieces follow each other whoever writes them; what a cancellation leaves unwritten comes before the next.
        """
        self._unsaid += self._shown(data)
        async with self._lock:
            while self._unsaid:
                await _ready(self._descriptor, asyncio.get_running_loop().add_writer, _stop_writing)
                self._push()

    def write_last(self, data: bytes) -> None:
        """Writes the rest when the run is being ended, as far as the reader takes it within a moment."""
        self._unsaid += self._shown(data)
        while self._unsaid and select.select([], [self._descriptor], [], PATIENCE)[1]:
            self._push()

    def _shown(self, data: bytes) -> bytes:
        """A terminal gets no control characters of others; pipes and files get every byte."""
        return harmless(data.decode("utf-8", "replace")).encode() if self._is_terminal else data

    def _push(self) -> None:
        """No more than a ready pipe is sure to take."""
        try:
            written = os.write(self._descriptor, self._unsaid[: select.PIPE_BUF])
        except BlockingIOError:
            return  # somebody made it non-blocking, and it is not as ready as it said
        del self._unsaid[:written]


class InputLines:
    """Lines of stdin without a thread: waiting for the next one never holds up a signal or a running task."""

    def __init__(self) -> None:
        if sys.__stdin__ is None:
            raise UsageError("stdin is closed, so no lines can be read.")
        self._descriptor = STDIN
        self._buffer = bytearray()
        self._ended = False

    async def next(self) -> bytes | None:
        """The next line without its newline; `None` at the end. A last line without a newline is included."""
        searched = 0
        while True:
            end = self._buffer.find(b"\n", searched)
            if end >= 0:
                line = bytes(self._buffer[:end])
                del self._buffer[: end + 1]
                return line
            if self._ended:
                rest = bytes(self._buffer)
                self._buffer.clear()
                return rest or None
            searched = len(self._buffer)
            await self._fill()

    async def all(self, most: int) -> bytes:
        """Everything up to the end. Raises `Usage` where that is more than `most` bytes."""
        while not self._ended:
            if len(self._buffer) > most:
                raise UsageError(
                    f"stdin is longer than {most:,} bytes. Put it into a file and name the file in the prompt."
                )
            await self._fill()
        return bytes(self._buffer)

    async def begins_within(self, seconds: float) -> bool:
        """Whether input or the end of input arrives."""
        try:
            await asyncio.wait_for(self._fill(), seconds)
        except TimeoutError:
            return False
        return True

    async def _fill(self) -> None:
        await _ready(self._descriptor, asyncio.get_running_loop().add_reader, _stop_reading)
        try:
            chunk = os.read(self._descriptor, 1 << 16)
        except OSError as error:
            raise UsageError(f"stdin cannot be read: {error.strerror}.") from None
        self._ended = not chunk
        self._buffer += chunk


async def _ready(descriptor: int, watch: Callable[..., Any], unwatch: Callable[[int], Any]) -> None:
    """Wait until the descriptor can be read or written. A regular file always can."""
    ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    try:
        watch(descriptor, _wake, ready)
    except (PermissionError, NotImplementedError):
        return
    try:
        await ready
    finally:
        unwatch(descriptor)


def _stop_reading(descriptor: int) -> None:
    asyncio.get_running_loop().remove_reader(descriptor)


def _stop_writing(descriptor: int) -> None:
    asyncio.get_running_loop().remove_writer(descriptor)


def _wake(ready: asyncio.Future[None]) -> None:
    if not ready.done():
        ready.set_result(None)
