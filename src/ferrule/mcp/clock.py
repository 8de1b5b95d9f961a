"""How long a call may take: a limit without progress, and a hard cap."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Generator
from contextlib import contextmanager
from typing import Final

EXTENDS_TO: Final = 10
"""The hard cap of a call that keeps reporting progress, as a multiple of its limit."""


class CallClock:
    """Moves the end of a running time limit. While a person is asked something, no time limit runs."""

    def __init__(self, timeout: asyncio.Timeout, limit: float) -> None:
        self._timeout = timeout
        self._limit = limit
        self._loop = asyncio.get_running_loop()
        self._latest = self._loop.time() + limit * EXTENDS_TO
        self._held_since: float | None = None

    @property
    def is_over(self) -> bool:
        """Whether the cap itself was reached."""
        return self._loop.time() >= self._latest

    def extend(self) -> None:
        """Progress: the time starts again, up to the cap."""
        if self._held_since is None:
            self._reschedule(min(self._loop.time() + self._limit, self._latest))

    def hold(self) -> None:
        if self._held_since is None:
            self._held_since = self._loop.time()
            self._reschedule(None)

    def go_on(self) -> None:
        if self._held_since is not None:
            self._latest += self._loop.time() - self._held_since
            self._held_since = None
            self.extend()

    def _reschedule(self, when: float | None) -> None:
        if not self._timeout.expired():
            self._timeout.reschedule(when)


@contextmanager
def hold(clocks: Collection[CallClock]) -> Generator[None]:
    """While it lasts, all time limits are paused."""
    for clock in clocks:
        clock.hold()
    try:
        yield
    finally:
        for clock in clocks:
            clock.go_on()
