"""A server as a process: lines in, lines out, its stderr in a log, and its whole process tree ended with it.

Its output may be anything. Lines that are too long are thrown away up to
their end, so a server that never ends a line costs no memory, and text that is
no message is for the reader to pass over.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

from ..host.processes.child_environment import child_environment
from ..host.processes.spawner.descendants import all_pids, has_variable
from ..host.storage.session_folder import make_private
from .launcher import CannotStart, Launcher, ServerChild

if TYPE_CHECKING:
    from ..host.processes.program_hold import ProgramHold

LONGEST_LINE: Final = 64 << 20
"""Bytes. An answer that is longer cannot be used by a model."""
LARGEST_LOG: Final = 1 << 20
LAST_WORDS: Final = 2_000
GRACE: Final = 1.0
"""Seconds that a server has to end by itself, and again after it is asked to."""
TAKEN_WITHIN: Final = 60.0
"""Seconds in which a server must accept a message. One that has stopped reading no longer answers."""
CHUNK: Final = 1 << 16
MARK: Final = "FERRULE_MCP_PROCESS"
"""In the environment of all that a server starts; those that leave its process group are found by it."""
_ID: Final = re.compile(rb'"id"\s*:\s*(\d{1,18})\b')


def request_id(line: bytes) -> int | None:
    """The request that an unreadable line answers, if its beginning says so."""
    found = _ID.search(line[:300])
    return int(found[1]) if found else None


class NotReading(OSError):
    """The process never took what was sent to it."""


class TooLong(Exception):
    """A line was discarded. `id` is the request that it answered, if known."""

    def __init__(self, id: int | None) -> None:
        super().__init__(f"it was longer than {LONGEST_LINE >> 20} MB")
        self.id = id


class ErrorLog:
    """What a server writes to its standard error, up to two files of a bounded size. Keeps its last lines in memory."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._size: int | None = None
        self._tail = deque[bytes](maxlen=8)

    def write(self, data: bytes) -> None:
        """Never fails: a full disk must not stop a server."""
        self._tail.append(data[-LAST_WORDS:])
        with suppress(OSError):
            self._append(data)

    @property
    def last_words(self) -> str:
        text = b"".join(self._tail)[-LAST_WORDS:].decode("utf-8", "replace").strip()
        return "\n".join(text.splitlines()[-5:])

    def _append(self, data: bytes) -> None:
        if self._size is None:
            make_private(self.path.parent)
            self._size = self.path.stat().st_size if self.path.exists() else 0
        if self._size + len(data) > LARGEST_LOG:
            if self._size:
                os.replace(self.path, self.path.with_suffix(".log.1"))
            self._size = 0
        descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "ab") as file:
            self._size += file.write(data[-LARGEST_LOG:])


class ServerProcess:
    """Made by `start`. Whoever made it closes it."""

    def __init__(self, child: ServerChild, errors: ErrorLog) -> None:
        self._child = child
        self._errors = errors
        self._reading_errors = asyncio.ensure_future(self._read_errors())

    @classmethod
    async def start(
        cls,
        argv: tuple[str, ...],
        *,
        env: Mapping[str, str],
        cwd: str | None,
        errors: ErrorLog,
        launcher: Launcher | None = None,
        hold: ProgramHold | None = None,
    ) -> ServerProcess:
        """`env` is added to our own variables, without our keys. Raises `CannotStart`.

        Without a launcher it is started here, and nothing is hidden from it.
        """
        environment = {**child_environment(os.environ), **env}
        if launcher is None:
            return cls(await _OwnChild.start(argv, environment, cwd), errors)
        return cls(await launcher.launch(argv, env=environment, cwd=cwd, hold=hold), errors)

    @property
    def end(self) -> str:
        """How it ended, as text."""
        if self._child.trouble:
            return f"it could not be run: {self._child.trouble}"
        code = self._child.returncode
        if code is None:
            return "it closed its output"
        return f"it was ended by signal {-code}" if code < 0 else f"it ended with exit code {code}"

    async def lines(self, on_too_long: Callable[[TooLong], None]) -> AsyncIterator[bytes]:
        parts, size, skipping = list[bytes](), 0, False
        while chunk := await self._child.stdout.read(CHUNK):
            *whole, rest = chunk.split(b"\n")
            for piece in whole:
                if skipping:
                    skipping = False
                else:
                    yield b"".join((*parts, piece))
                parts, size = [], 0
            size += len(rest)
            if size > LONGEST_LINE and not skipping:
                skipping = True
                on_too_long(TooLong(request_id(b"".join(parts))))
                parts = []
                yield b""  # so that whoever reads lines hears of it before the next one comes
            if rest and not skipping:
                parts.append(rest)
        await self._wait_for_end()

    async def send(self, line: bytes) -> None:
        """Raises `OSError` if the pipe is closed; `NotReading` for a process that is ended because it does not read."""
        stdin = self._child.stdin
        stdin.write(line + b"\n")
        try:
            async with asyncio.timeout(TAKEN_WITHIN):
                await stdin.drain()
        except TimeoutError:
            await self._child.kill()
            raise NotReading from None

    async def close(self) -> None:
        """It is asked to end by the end of its input, then by a signal, then killed; and so is all that it started."""
        with suppress(OSError):
            self._child.stdin.close()
        if not await _ended_within(self._child, GRACE):
            await self._child.ask_to_end()
            await _ended_within(self._child, GRACE)
        await self._child.kill()
        await _ended_within(self._child, GRACE)
        self._reading_errors.cancel()
        await asyncio.wait((self._reading_errors,))
        self._child.release()

    async def _wait_for_end(self) -> None:
        """Its output has ended, so it has exited or soon will; its last lines may still arrive."""
        await _ended_within(self._child, GRACE)
        await asyncio.wait((self._reading_errors,), timeout=0.2)

    async def _read_errors(self) -> None:
        while data := await self._child.stderr.read(CHUNK):
            self._errors.write(data)


class _OwnChild:
    """A process that is started here, without a session. Satisfies `ServerChild`."""

    trouble = ""

    def __init__(self, process: asyncio.subprocess.Process, mark: str) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None, "they are pipes"
        self.stdin, self.stdout, self.stderr = process.stdin, process.stdout, process.stderr
        self._process = process
        self._mark = mark

    @classmethod
    async def start(cls, argv: tuple[str, ...], environment: Mapping[str, str], cwd: str | None) -> _OwnChild:
        """Raises `CannotStart`."""
        mark = os.urandom(8).hex()
        try:
            process = await asyncio.create_subprocess_exec(
                *argv,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                env={**environment, MARK: mark},
                cwd=cwd,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            words = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            raise CannotStart(f"{argv[0]} cannot be started: {words}") from None
        return cls(process, mark)

    @property
    def returncode(self) -> int | None:
        return self._process.returncode

    async def ask_to_end(self) -> None:
        self._signal(signal.SIGTERM)

    async def kill(self) -> None:
        self._signal(signal.SIGKILL)
        self._end_strays()

    def release(self) -> None:
        # What it started may hold its pipes open, and nothing public lets go of them.
        cast(asyncio.SubprocessTransport, self._process._transport).close()  # pyright: ignore[reportAttributeAccessIssue, reportPrivateUsage, reportUnknownMemberType]

    def _signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)

    def _end_strays(self) -> None:
        if not os.path.isdir("/proc/self"):
            return
        variable = f"{MARK}={self._mark}".encode()
        for pid in list(all_pids()):
            if has_variable(pid, variable):
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)


async def _ended_within(child: ServerChild, seconds: float) -> bool:
    """By its exit alone: what it started may hold its pipes open."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            while child.returncode is None:  # noqa: ASYNC110 - nobody tells of the exit alone
                await asyncio.sleep(0.01)
    return child.returncode is not None
