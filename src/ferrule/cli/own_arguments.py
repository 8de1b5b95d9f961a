"""Hides the arguments of this process from other processes, which can read them in /proc.

A command in a sandbox is kept from this process's environment and memory by
the kernel, but nothing keeps it from the command line, where a prompt or
settings may appear.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress

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
