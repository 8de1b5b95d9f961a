"""Standard input and output that belong to us alone."""

from __future__ import annotations

import asyncio
import os
import sys
from io import TextIOWrapper
from typing import BinaryIO, cast


def claim_stdout() -> BinaryIO:
    """Keep the real stdout for our own lines; whatever else prints, in any library or child, goes to stderr."""
    sys.stdout.flush()
    ours = os.fdopen(os.dup(1), "wb")
    try:
        os.dup2(2, 1)
    except OSError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.close(nowhere)
    printed = cast(TextIOWrapper, sys.stdout)
    printed.reconfigure(line_buffering=True)
    return ours


class InputLines:
    """Lines of stdin without a thread: waiting for the next one never holds up a signal or a running task."""

    def __init__(self, descriptor: int = 0) -> None:
        self._descriptor = descriptor
        self._buffer = bytearray()
        self._ended = False

    async def next(self) -> bytes | None:
        """The next line without its newline; `None` at the end. A last line without a newline counts."""
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

    async def _fill(self) -> None:
        await self._readable()
        chunk = os.read(self._descriptor, 1 << 16)
        self._ended = not chunk
        self._buffer += chunk

    async def _readable(self) -> None:
        loop = asyncio.get_running_loop()
        ready = loop.create_future()
        try:
            loop.add_reader(self._descriptor, _wake, ready)
        except (PermissionError, NotImplementedError):
            return  # a regular file is always readable
        try:
            await ready
        finally:
            loop.remove_reader(self._descriptor)


def _wake(ready: asyncio.Future[None]) -> None:
    if not ready.done():
        ready.set_result(None)
