"""A hook that is a program: JSON in, an exit code and a little text out, and nothing of it left when its time is up.

It has ended when its own process has: what it started may continue, and may keep
its output open, but nothing waits for that. Of what it prints, the first
`LARGEST` bytes are kept and the rest is discarded.
"""

from __future__ import annotations

import asyncio
import codecs
import fcntl
import os
import signal
import subprocess
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

from ..core.values import named_value
from ..host.processes.pipe_reader import PipeReader
from ..host.processes.spawner.descendants import descendants_of
from .hook import Program
from .reply_parsing import Reply

LARGEST: Final = 1 << 20
GRACE: Final = 2.0
"""Seconds between asking a program to end and killing it."""
_BUFFER: Final = 1 << 16


@named_value
class HookEnvironment:
    cwd: str
    env: Mapping[str, str]
    """All the variables it gets."""


async def run_program(program: Program, given: bytes, around: HookEnvironment, seconds: float) -> Reply:
    """What it answered, or why it did not. Cancelled, it ends the program and all that it started."""
    try:
        started = _Started(program, given, around)
    except (OSError, ValueError) as error:
        return Reply(failure=f"it could not be started: {getattr(error, 'strerror', None) or error}")
    try:
        async with asyncio.timeout(seconds):
            await started.wait_for_exit()
    except TimeoutError:
        await started.end_tree()
        return Reply(failure=f"it took longer than {seconds:g} s and was ended")
    except asyncio.CancelledError:
        await asyncio.shield(started.end_tree())
        raise
    return await started.reply()


class _Kept:
    """The first bytes of a stream."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.overflowed = False

    def feed(self, chunk: memoryview) -> None:
        room = LARGEST - len(self.data)
        self.data += chunk[:room]
        self.overflowed = self.overflowed or len(chunk) > room

    @property
    def text(self) -> str:
        """Without the mark that some programs put before it, which also says where it is UTF-16."""
        marked = self.data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
        return self.data.decode("utf-16" if marked else "utf-8", "replace").removeprefix("\ufeff")


class _Started:
    """A running program."""

    def __init__(self, program: Program, given: bytes, around: HookEnvironment) -> None:
        outputs = [os.pipe(), os.pipe()]
        stdin = _stdin(given)
        try:
            self._process = subprocess.Popen(
                _words(program, around.env),
                cwd=around.cwd,
                env=around.env,
                stdin=stdin,
                stdout=outputs[0][1],
                stderr=outputs[1][1],
                start_new_session=True,
            )
        except (OSError, ValueError):
            for reading, _ in outputs:
                os.close(reading)
            raise
        finally:
            os.close(stdin)
            for _, writing in outputs:
                os.close(writing)
        self._kept = [_Kept(), _Kept()]
        buffer = memoryview(bytearray(_BUFFER))
        self._readers = [
            PipeReader(reading, kept.feed, _no_news, buffer)
            for (reading, _), kept in zip(outputs, self._kept, strict=True)
        ]

    async def wait_for_exit(self) -> None:
        """It is not reaped by this, so that its number stays its own."""
        if not hasattr(os, "pidfd_open"):  # macOS
            await asyncio.to_thread(os.waitid, os.P_PID, self._process.pid, os.WEXITED | os.WNOWAIT)
            return
        loop = asyncio.get_running_loop()
        ended: asyncio.Future[None] = loop.create_future()
        descriptor = os.pidfd_open(self._process.pid)
        loop.add_reader(descriptor, lambda: ended.done() or ended.set_result(None))
        try:
            await ended
        finally:
            loop.remove_reader(descriptor)
            os.close(descriptor)

    async def reply(self) -> Reply:
        await self._drain()
        code = self._process.wait()
        out, err = self._kept
        if out.overflowed:
            failure = "" if code == 2 else f"it printed more than {LARGEST >> 20} MB"
            return Reply(exit_code=code, stderr=err.text, failure=failure)
        if code < 0 and not out.text.lstrip().startswith("{"):
            return Reply(failure=f"it was ended by {_signal_name(-code)}")
        return Reply(exit_code=code if code >= 0 else 128 - code, stdout=out.text, stderr=err.text)

    async def end_tree(self) -> None:
        """Ask all of its processes to end, then kill those that are left."""
        handles = list(_handles(descendants_of([self._process.pid])))
        try:
            _signal(self._process.pid, handles, signal.SIGTERM)
            with suppress(TimeoutError):
                async with asyncio.timeout(GRACE):
                    await self.wait_for_exit()
            _signal(self._process.pid, handles, signal.SIGKILL)
            await self.wait_for_exit()
        finally:
            for handle in handles:
                os.close(handle)
        await self._drain()
        self._process.wait()

    async def _drain(self) -> None:
        """Read what is available now, and close the pipes."""
        loop = asyncio.get_running_loop()
        for reader in self._readers:
            done: asyncio.Future[None] = loop.create_future()
            reader.drain(lambda done=done: done.set_result(None))
            await done
            reader.close()


def _words(program: Program, env: Mapping[str, str]) -> list[str]:
    if program.arguments is None:
        return [program.shell, "-c", program.command]
    return [_fill(word, env) for word in (program.command, *program.arguments)]


def _fill(word: str, env: Mapping[str, str]) -> str:
    """Without a shell, the project's folder is filled in here."""
    for name in ("CLAUDE_PROJECT_DIR", "FERRULE_PROJECT_DIR"):
        word = word.replace(f"${{{name}}}", env.get(name, ""))
    return word


def _stdin(given: bytes) -> int:
    """A pipe that holds all of it, so that a program that does not read blocks nobody; a file for longer input."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    if hasattr(fcntl, "F_SETPIPE_SZ") and len(given) > _BUFFER:
        with suppress(OSError):  # past the user's share of pipe memory
            fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, len(given))
    try:
        written = os.write(writing, given) if given else 0
    except BlockingIOError:
        written = -1
    os.close(writing)
    if written == len(given):
        return reading
    os.close(reading)
    with tempfile.TemporaryFile() as file:
        file.write(given)
        file.flush()
        copy = os.dup(file.fileno())
    os.lseek(copy, 0, os.SEEK_SET)
    return copy


def _handles(pids: list[int]) -> list[int]:
    """A permanent handle of a process: its number may be reused by another one."""
    handles: list[int] = []
    for pid in pids if hasattr(os, "pidfd_open") else ():
        with suppress(OSError):
            handles.append(os.pidfd_open(pid))
    return handles


def _signal(group: int, handles: list[int], number: signal.Signals) -> None:
    with suppress(OSError):
        os.killpg(group, number)
    for handle in handles:
        with suppress(OSError):
            signal.pidfd_send_signal(handle, number)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # one of those that have a number alone
        return f"signal {number}"


def _no_news() -> None:
    pass
