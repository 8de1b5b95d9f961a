"""ripgrep as a process: found, started in a group of its own, read in pieces, and always ended."""

from __future__ import annotations

import asyncio
import fcntl
import os
import shutil
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from enum import StrEnum
from functools import partial
from io import RawIOBase
from pathlib import Path
from typing import TypeAlias, cast

from ...core.values import plain_value
from ..storage.session_folder import make_private

DESCRIPTORS = "/proc/self/fd"
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


@plain_value
class RipgrepEnding:
    end: End
    unreadable: bool = False
    """Whether something could not be read, and was left out."""

    def notes(self, seconds: float) -> tuple[str, ...]:
        """What a reader of the result must know about how it ended."""
        late = f"The search was stopped after {seconds:g} s; there may be more. Narrow it to see the rest."
        unread = "Some files or folders could not be read and were left out."
        return (late,) * (self.end is End.TIME) + (unread,) * self.unreadable


def find_ripgrep(environment: Mapping[str, str]) -> str | None:
    """The one installed beside this Python, otherwise the first on PATH; relative entries of PATH are not trusted."""
    beside = (os.path.dirname(sys.executable), os.path.join(sys.prefix, "bin"))
    for folder in (*beside, *environment.get("PATH", "").split(os.pathsep)):
        program = os.path.join(folder, "rg")
        if os.path.isabs(folder) and os.path.isfile(program) and os.access(program, os.X_OK):
            return program
    return None


def offer_ripgrep(environment: Mapping[str, str], folder: Path) -> tuple[Mapping[str, str], Callable[[], None] | None]:
    """The environment with that folder at the end of PATH, if PATH has no ripgrep, and what puts it there."""
    path = environment.get("PATH", os.defpath)
    program = None if shutil.which("rg", path=path) else find_ripgrep(environment)
    if program is None:
        return environment, None
    return {**environment, "PATH": f"{path}{os.pathsep}{folder}"}, partial(_link, program, folder / "rg")


def _link(program: str, link: Path) -> None:
    with suppress(OSError):  # a convenience
        make_private(link.parent)
        if not (link.is_symlink() and os.readlink(link) == program):
            link.unlink(missing_ok=True)
            link.symlink_to(program)


async def run(program: str, arguments: Sequence[str], *, folder: int, seconds: float, take: Take) -> RipgrepEnding:
    """Give the output to `take`, piece by piece, until one of them has enough. Raises `SearchFailed`.

    It runs in the folder that is held open, wherever that lies by now.

    However this ends, by a cancellation too, no process and no thread is left.
    """
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb", buffering=0) as output:
        try:
            process = await _start(program, arguments, folder, writing)
        finally:
            os.close(writing)
        fed = _in_a_thread(output, take)
        try:
            return await _follow(process, fed, seconds)
        finally:
            await asyncio.shield(_end(process, fed))


async def _follow(process: Process, fed: asyncio.Future[bool], seconds: float) -> RipgrepEnding:
    try:
        async with asyncio.timeout(seconds):
            if await asyncio.shield(fed):
                return RipgrepEnding(End.ENOUGH)
            return await _ending_of(process)
    except TimeoutError:
        _kill(process)  # so that what was written is read to its end
        return RipgrepEnding(End.ENOUGH if await fed else End.TIME)


async def _start(program: str, arguments: Sequence[str], folder: int, output: int) -> Process:
    """In a group of its own and not in a session: Linux shares its processors out by session."""
    kept = {name: os.environ[name] for name in KEPT_VARIABLES if name in os.environ}
    try:
        return await asyncio.create_subprocess_exec(
            program,
            *arguments,
            cwd=path_of(folder),
            env=kept,
            stdin=DEVNULL,
            stdout=output,
            stderr=PIPE,
            process_group=0,
        )
    except OSError as error:
        raise SearchFailed(f"ripgrep could not be started: {error.strerror}") from None
    except ValueError as error:  # a NUL or a lone surrogate, which no argument can hold
        raise SearchFailed(f"ripgrep cannot take these arguments: {error}") from None


def path_of(folder: int) -> str:
    """A path to a folder that is held open, for this process and for one that it forks."""
    held = f"{DESCRIPTORS}/{folder}"
    if os.path.isdir(held):
        return held
    found = fcntl.fcntl(folder, fcntl.F_GETPATH, b"\0" * 1024) if hasattr(fcntl, "F_GETPATH") else b""
    path = os.fsdecode(found.rstrip(b"\0"))
    if not path:
        raise SearchFailed("the folder cannot be entered, because this system has no paths for open folders")
    return path


def _in_a_thread(output: RawIOBase, take: Take) -> asyncio.Future[bool]:
    """In one of its own: a search may wait for long, and those of the loop are for short work.

    ripgrep writes file by file. A thread that reads costs a small part of what
    waking the event loop for each of them would.
    """
    executor = ThreadPoolExecutor(1, "ripgrep")
    fed = asyncio.get_running_loop().run_in_executor(executor, _feed, output, take)
    executor.shutdown(wait=False)
    return fed


def _feed(output: RawIOBase, take: Take) -> bool:
    """Whether `take` had enough before the end."""
    waiting = bytearray()
    while chunk := output.read(CHUNK):
        waiting += chunk
        if len(waiting) >= BATCH:
            if take(bytes(waiting)):
                return True
            waiting.clear()
    return bool(waiting) and take(bytes(waiting))


async def _ending_of(process: Process) -> RipgrepEnding:
    """By its exit code: 0 and 1 are answers. With 2 and no words, some file could not be read."""
    words = await cast(asyncio.StreamReader, process.stderr).read(MOST_WORDS)
    code = await process.wait()
    if code in (0, 1):
        return RipgrepEnding(End.WHOLE)
    if words or code != 2:
        raise SearchFailed(words.decode("utf-8", "replace").strip() or f"ripgrep ended with code {code}")
    return RipgrepEnding(End.WHOLE, unreadable=True)


async def _end(process: Process, fed: asyncio.Future[bool]) -> None:
    """Killed if need be, read to the end and reaped, so that neither process, thread nor pipe is left."""
    _kill(process)
    await asyncio.wait((fed,))
    while await cast(asyncio.StreamReader, process.stderr).read(CHUNK):
        pass
    await process.wait()


def _kill(process: Process) -> None:
    if process.returncode is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
