"""`ferrule`: finds the command and leaves the rest to it."""

from __future__ import annotations

import gc
import os
import sys
from contextlib import suppress

from .._version import __version__

ARGUMENTS_START, ARGUMENTS_END = 45, 46
"""Among what follows the name in /proc/self/stat."""


def hide_arguments() -> None:
    """What follows the program's name is overwritten; `sys.argv` is a copy, and stays. Linux only."""
    named = len(sys.orig_argv) - len(sys.argv) + 1
    kept = sum(len(os.fsencode(word)) + 1 for word in sys.orig_argv[:named])
    with suppress(OSError, ValueError, IndexError):  # it is only for want of a better way
        with open("/proc/self/stat", "rb") as file:
            fields = file.read().rpartition(b") ")[2].split()
        start, end = int(fields[ARGUMENTS_START]) + kept, int(fields[ARGUMENTS_END])
        with open("/proc/self/mem", "r+b", buffering=0) as memory:
            os.pwrite(memory.fileno(), bytes(max(0, end - start)), start)


OBJECTS_UNTIL_COLLECTION = 10_000
"""Nearly everything allocated while a command loads stays: collecting garbage costs a twentieth of that time."""


def main(argv: list[str] | None = None) -> int:
    """Run the command line; returns the exit code. `--version` answers before anything else is loaded."""
    arguments = sys.argv[1:] if argv is None else argv
    if arguments[:1] in (["--version"], ["-v"], ["-V"]):
        print(f"ferrule {__version__}")
        return 0
    gc.set_threshold(OBJECTS_UNTIL_COLLECTION)
    if argv is None:
        hide_arguments()
    from .early_signals import EndsAtOnce

    with EndsAtOnce():
        from .standard_streams import settle_streams

        settle_streams()
        from .parser import run
    return run(arguments)
