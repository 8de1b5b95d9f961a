"""SIGINT before an orderly shutdown is possible."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from types import FrameType, TracebackType

from .exits import INTERRUPTED


class EndsAtOnce:
    """While the block runs, SIGINT ends the process with its exit code and without a word.

    An exception in its place could be lost: what happens in a callback of an import is printed and forgotten. Whoever
    takes the signal over inside of the block keeps it.
    """

    def __enter__(self) -> None:
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            with suppress(ValueError):  # not the main thread, to which signals do not come
                signal.signal(signal.SIGINT, _end)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if signal.getsignal(signal.SIGINT) is _end:
            signal.signal(signal.SIGINT, signal.default_int_handler)


def _end(number: int, frame: FrameType | None) -> None:
    os._exit(INTERRUPTED)
