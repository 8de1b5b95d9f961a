"""ripgrep as a process: found, started in a group of its own, read in pieces, and always ended."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias, cast

CHUNK = 1 << 16
BATCH = 1 << 14
"""Bytes worth a trip to a thread; ripgrep writes file by file, and most files say little."""
MOST_WORDS = 4_000
KEPT_VARIABLES = ("HOME", "XDG_CONFIG_HOME", "LANG", "LC_ALL")
"""All that ripgrep gets to know: where git's own ignore file lies, and no RIPGREP_CONFIG_PATH."""

Take: TypeAlias = Callable[[bytes], bool]
"""Called in a thread with the next bytes; true when enough was seen."""


class SearchFailed(Exception):
    """The search could not be made. The message is ripgrep's own, or the system's."""


class End(StrEnum):
    WHOLE = "whole"
    ENOUGH = "enough"
    """Stopped, because nobody needs the rest."""
    TIME = "time"
    """Stopped, because its time was up."""


@dataclass(frozen=True, slots=True)
class Ending:
    end: End
    unreadable: bool = False
    """Whether something could not be read, and was left out."""

    def notes(self, seconds: float) -> tuple[str, ...]:
        """What whoever reads the result must know of how it ended."""
        late = f"The search was stopped after {seconds:g} s; there may be more. Narrow it to see the rest."
        unread = "Some files or folders could not be read and were left out."
        return (late,) * (self.end is End.TIME) + (unread,) * self.unreadable


def find_ripgrep(environment: Mapping[str, str]) -> str | None:
    """The one installed beside this Python, else the first on PATH; a relative entry of PATH is nobody's word."""
    beside = (os.path.dirname(sys.executable), os.path.join(sys.prefix, "bin"))
    for folder in (*beside, *environment.get("PATH", "").split(os.pathsep)):
        program = os.path.join(folder, "rg")
        if os.path.isabs(folder) and os.path.isfile(program) and os.access(program, os.X_OK):
            return program
    return None


async def run(program: str, arguments: Sequence[str], *, folder: str, seconds: float, take: Take) -> Ending:
    """Give the output to `take`, piece by piece, until one of them has enough. Raises `SearchFailed`.

    However this ends, by a cancellation too, no process is left.
    """
    process = await _started(program, arguments, folder)
    waiting = bytearray()
    try:
        async with asyncio.timeout(seconds):
            if await _fed(cast(asyncio.StreamReader, process.stdout), waiting, take):
                return Ending(End.ENOUGH)
            return await _judged(process)
    except TimeoutError:
        enough = await _taken(take, waiting)
        return Ending(End.ENOUGH if enough else End.TIME)
    finally:
        await asyncio.shield(_ended(process))


async def _started(program: str, arguments: Sequence[str], folder: str) -> Process:
    kept = {name: os.environ[name] for name in KEPT_VARIABLES if name in os.environ}
    try:
        return await asyncio.create_subprocess_exec(
            program, *arguments, cwd=folder, env=kept, stdin=DEVNULL, stdout=PIPE, stderr=PIPE, start_new_session=True
        )
    except OSError as error:
        raise SearchFailed(f"ripgrep could not be started: {error.strerror}") from None
    except ValueError as error:  # a NUL or a lone surrogate, which no argument can hold
        raise SearchFailed(f"ripgrep cannot be given this: {error}") from None


async def _fed(stream: asyncio.StreamReader, waiting: bytearray, take: Take) -> bool:
    """Whether `take` had enough before the end. What it has not been given yet is in `waiting`."""
    while chunk := await stream.read(CHUNK):
        waiting += chunk
        if len(waiting) >= BATCH and await _taken(take, waiting):
            return True
    return await _taken(take, waiting)


async def _taken(take: Take, waiting: bytearray) -> bool:
    """In a thread, which is never left behind: what it collects is read when this returns."""
    if not waiting:
        return False
    batch = bytes(waiting)
    waiting.clear()
    work = asyncio.get_running_loop().run_in_executor(None, take, batch)
    try:
        return await asyncio.shield(work)
    except asyncio.CancelledError:
        await asyncio.wait((work,))
        raise


async def _judged(process: Process) -> Ending:
    """By its exit code: 0 and 1 are answers. With 2 and no words, some file could not be read."""
    words = await cast(asyncio.StreamReader, process.stderr).read(MOST_WORDS)
    code = await process.wait()
    if code in (0, 1):
        return Ending(End.WHOLE)
    if words or code != 2:
        raise SearchFailed(words.decode("utf-8", "replace").strip() or f"ripgrep ended with code {code}")
    return Ending(End.WHOLE, unreadable=True)


async def _ended(process: Process) -> None:
    """Killed if need be, read to the end and reaped, so that neither process nor pipe is left."""
    if process.returncode is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    for stream in (process.stdout, process.stderr):
        while await cast(asyncio.StreamReader, stream).read(CHUNK):
            pass
    await process.wait()
