"""Work that may run away, in a Python process of its own: it has limits, and it can be ended."""

from __future__ import annotations

import errno
import json
import os
import resource
import selectors
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import IO

from ...core.values import plain_value

PROGRAM = (
    "import importlib, json, sys; sys.path[:] = json.loads(sys.argv[1]); importlib.import_module(sys.argv[2]).main()"
)
KEPT_VARIABLES = ("LD_LIBRARY_PATH",)
"""All that the process has of our environment; it does not need secrets."""
LOOK_UP = 0.05
"""Seconds between two looks at whether anybody still wants the answer."""
CHUNK = 1 << 16


@plain_value
class WorkLimits:
    seconds: float
    memory: int
    """Bytes of address space."""
    answer: int
    """Bytes of what comes back."""


class RanAway(Exception):
    """The work was stopped, or failed. The message says why."""


def in_own_process(
    module: str, arguments: str, data: bytes, limits: WorkLimits, interrupted: Callable[[], bool] = bool
) -> bytes:
    """What `main` of the module writes, given the data on its standard input.

    Raises `RanAway`, or `InterruptedError` once somebody wants it to end; either way the process is gone by then.
    """
    if not sys.executable:
        raise RanAway("the Python interpreter was not found, so a process cannot be started")
    paths = json.dumps([path for path in sys.path if os.path.isabs(path)])
    with _scratch_file() as given:
        given.write(data)
        given.seek(0)
        with subprocess.Popen(
            [sys.executable, "-I", "-X", "utf8", "-c", PROGRAM, paths, module, str(limits.memory), arguments],
            env={name: os.environ[name] for name in KEPT_VARIABLES if name in os.environ},
            stdin=given,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd="/",
            start_new_session=True,
        ) as process:
            assert process.stdout is not None, "it is a pipe"
            try:
                return _answer(process, process.stdout, limits, interrupted)
            finally:
                process.kill()


def _scratch_file() -> IO[bytes]:
    try:
        return tempfile.TemporaryFile()
    except FileNotFoundError:
        raise RanAway("no writable folder for temporary files was found (set TMPDIR to one)") from None


def limit_this_process() -> str:
    """For the process itself, before it looks at its data: it gives up what it will not need. Returns its arguments."""
    memory, arguments = sys.argv[3:]
    _lower(resource.RLIMIT_CORE, 0)
    _lower(resource.RLIMIT_FSIZE, 0)
    with suppress(OSError, ValueError):  # macOS knows no such limit; the time is limited all the same
        _lower(resource.RLIMIT_AS, int(memory))
    return arguments


def _lower(which: int, most: int) -> None:
    hard = resource.getrlimit(which)[1]
    least = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(which, (least, least))


def _answer(
    process: subprocess.Popen[bytes], stream: IO[bytes], limits: WorkLimits, interrupted: Callable[[], bool]
) -> bytes:
    deadline = time.monotonic() + limits.seconds
    answer = bytearray()
    for piece in _pieces(stream, deadline, interrupted):
        answer += piece
        if len(answer) > limits.answer:
            raise RanAway(f"it would be more than {limits.answer >> 20:,} MB")
        if time.monotonic() > deadline:
            raise RanAway(f"it takes longer than {limits.seconds:g} seconds")
    try:
        failed = process.wait(max(0.0, deadline - time.monotonic()) + LOOK_UP)
    except subprocess.TimeoutExpired:
        raise RanAway(f"it takes longer than {limits.seconds:g} seconds") from None
    if failed:
        raise RanAway(f"it failed, or needs more than {limits.memory >> 20:,} MB of memory")
    return bytes(answer)


def _pieces(stream: IO[bytes], deadline: float, interrupted: Callable[[], bool]) -> Iterator[bytes]:
    """What comes, and nothing from time to time while nothing does."""
    with selectors.DefaultSelector() as selector:
        selector.register(stream, selectors.EVENT_READ)
        while True:
            if interrupted():
                raise InterruptedError(errno.EINTR, os.strerror(errno.EINTR))
            ready = selector.select(min(LOOK_UP, max(0.0, deadline - time.monotonic())))
            piece = os.read(stream.fileno(), CHUNK) if ready else b""
            if ready and not piece:
                return
            yield piece
