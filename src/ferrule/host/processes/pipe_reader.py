"""Reading a pipe that somebody else fills, at any speed.

Most commands print little, and the event loop reads that in passing. A flood
comes in small pieces, and a trip through the loop for each would take several
times as long as the reading: from `FLOOD` bytes on, a thread reads.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import select
import struct
import termios
from collections.abc import Callable
from contextlib import suppress
from threading import Thread
from typing import TypeAlias

FLOOD = 1 << 20
THREAD_BUFFER = 1 << 18

Feed: TypeAlias = Callable[[memoryview], None]
"""Takes what was read, and copies what it keeps. Called in the loop or in a thread, never in both at once."""


class PipeReader:
    """Owns the reading end. All but `feed` is called in the event loop."""

    def __init__(self, descriptor: int, feed: Feed, on_news: Callable[[], None], buffer: memoryview) -> None:
        """`buffer` may be shared with others of the same loop: it is used within one step."""
        self._descriptor = descriptor
        self._feed = feed
        self._on_news = on_news
        self._buffer = buffer
        self._loop = asyncio.get_running_loop()
        self._total = 0
        self._waker = -1
        self._stopping = False
        self._news_is_coming = False
        self._then: list[Callable[[], None]] = []
        os.set_blocking(descriptor, False)
        self._loop.add_reader(descriptor, self._read)

    def drain(self, then: Callable[[], None]) -> None:
        """Read what is in the pipe now, and no more; `then` is called when that is done, perhaps at once."""
        if self._waker >= 0:
            self._then.append(lambda: self.drain(then))
            self._stop_thread()
            return
        if self._descriptor >= 0:
            left = struct.unpack("i", fcntl.ioctl(self._descriptor, termios.FIONREAD, b"\0\0\0\0"))[0]
            while left > 0 and (size := os.readv(self._descriptor, [self._buffer[:left]])):
                left -= size
                self._take(self._buffer[:size])
        then()

    def discard(self) -> None:
        """From now on throw away what comes, so that who prints it never waits."""
        self._feed = _nothing
        self._on_news = _no_news

    def close(self) -> None:
        if self._waker >= 0:
            self._then.append(self.close)
            self._stop_thread()
        elif self._descriptor >= 0:
            self._loop.remove_reader(self._descriptor)
            os.close(self._descriptor)
            self._descriptor = -1

    def _read(self) -> None:
        try:
            size = os.readv(self._descriptor, [self._buffer])
        except BlockingIOError:
            return
        if not size:
            self.close()
            return
        self._take(self._buffer[:size])
        if self._total > FLOOD:
            self._start_thread()

    def _take(self, chunk: memoryview) -> None:
        self._total += len(chunk)
        self._feed(chunk)
        self._on_news()

    # In a thread

    def _start_thread(self) -> None:
        self._loop.remove_reader(self._descriptor)
        self._stopping = False
        self._waker = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        Thread(target=self._pump, name="ferrule-pipe", daemon=True).start()

    def _stop_thread(self) -> None:
        self._stopping = True
        os.eventfd_write(self._waker, 1)

    def _pump(self) -> None:
        buffer = memoryview(bytearray(THREAD_BUFFER))
        poll = select.poll()
        for descriptor in (self._descriptor, self._waker):
            poll.register(descriptor, select.POLLIN)
        while True:
            poll.poll()
            if self._stopping:
                break
            size = os.readv(self._descriptor, [buffer])
            if not size:
                break
            self._feed(buffer[:size])
            if not self._news_is_coming:
                self._news_is_coming = True
                self._in_loop(self._news_came)
        self._in_loop(self._on_thread_end)

    def _in_loop(self, step: Callable[[], None]) -> None:
        with suppress(RuntimeError):  # the loop is closed: nobody is left to tell
            self._loop.call_soon_threadsafe(step)

    def _news_came(self) -> None:
        self._news_is_coming = False
        self._on_news()

    def _on_thread_end(self) -> None:
        os.close(self._waker)
        self._waker = -1
        self._total = 0  # what comes now is a trickle again, until it is not
        self._loop.add_reader(self._descriptor, self._read)  # which also finds the end, if it is that
        waiting, self._then = self._then, []
        for step in waiting:
            step()


def _nothing(_: memoryview) -> None:
    pass


def _no_news() -> None:
    pass
