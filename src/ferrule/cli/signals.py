"""SIGINT, SIGTERM and SIGHUP as a cancellation of the running task, with the exit code they mean."""

from __future__ import annotations

import asyncio
import os
import signal
from types import TracebackType
from typing import Self


class Interruptible:
    """While the block runs, the first signal cancels the task that entered it, the second ends the process.

    A signal that was being ignored, as SIGHUP is under nohup, stays ignored.
    """

    def __init__(self) -> None:
        self.exit_code: int | None = None
        self._taken: list[signal.Signals] = []
        self._task: asyncio.Task[object] | None = None

    def __enter__(self) -> Self:
        self._task = asyncio.current_task()
        loop = asyncio.get_running_loop()
        self._taken = [number for number in _SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
        for number in self._taken:
            loop.add_signal_handler(number, self._on_signal, number)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        loop = asyncio.get_running_loop()
        for number in self._taken:
            loop.remove_signal_handler(number)

    def _on_signal(self, number: int) -> None:
        if self.exit_code is not None:
            os._exit(128 + number)
        self.exit_code = 128 + number
        if self._task is not None:
            self._task.cancel()


_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
