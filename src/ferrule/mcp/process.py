"""A server as a process: lines in, lines out, its complaints in a log, and its whole tree ended with it.

What it writes is its own affair. Lines that are too long are thrown away up to
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
from typing import Final, cast

from ..host.environment import child_environment
from ..host.spawner.descendants import all_pids, has_variable
from ..host.spill import make_private

LONGEST_LINE: Final = 64 << 20
"""Bytes. An answer that is longer cannot be used by a model."""
LARGEST_LOG: Final = 1 << 20
LAST_WORDS: Final = 2_000
GRACE: Final = 1.0
"""Seconds that a server has to end by itself, and again after it is asked to."""
TAKEN_WITHIN: Final = 60.0
"""Seconds in which a server must make room for a message. One that has stopped reading answers nothing any more."""
CHUNK: Final = 1 << 16
MARK: Final = "FERRULE_MCP_PROCESS"
"""In the environment of all that a server starts; those that leave its process group are found by it."""
_ID: Final = re.compile(rb'"id"\s*:\s*(\d{1,18})\b')


def request_id(line: bytes) -> int | None:
    """The request that a line answers which cannot be read, where its beginning says so."""
    found = _ID.search(line[:300])
    return int(found[1]) if found else None


class CannotStart(Exception):
    """The process could not be started. The message says why."""


class NotReading(OSError):
    """The process never took what was sent to it."""


class TooLong(Exception):
    """A line was thrown away. `id` is the request that it answered, where that can be told."""

    def __init__(self, id: int | None) -> None:
        super().__init__(f"it was longer than {LONGEST_LINE >> 20} MB")
        self.id = id


class ErrorLog:
    """What a server writes to its standard error, up to two files of a bounded size. Keeps its last words at hand."""

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

    def __init__(self, process: asyncio.subprocess.Process, mark: str, errors: ErrorLog) -> None:
        self._process = process
        self._mark = mark
        self._errors = errors
        self._reading_errors = asyncio.ensure_future(self._read_errors())

    @classmethod
    async def start(
        cls, argv: tuple[str, ...], *, env: Mapping[str, str], cwd: str | None, errors: ErrorLog
    ) -> ServerProcess:
        """`env` is what it gets beside our own variables, of which our keys are left out. Raises `CannotStart`."""
        mark = os.urandom(8).hex()
        environment = {**child_environment(os.environ), **env, MARK: mark}
        try:
            process = await asyncio.create_subprocess_exec(
                *argv,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                env=environment,
                cwd=cwd,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            words = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            raise CannotStart(f"{argv[0]} cannot be started: {words}") from None
        return cls(process, mark, errors)

    @property
    def end(self) -> str:
        """How it ended, in words."""
        code = self._process.returncode
        if code is None:
            return "it closed its output"
        return f"it was ended by signal {-code}" if code < 0 else f"it ended with exit code {code}"

    async def lines(self, on_too_long: Callable[[TooLong], None]) -> AsyncIterator[bytes]:
        stdout = self._process.stdout
        assert stdout is not None, "it is a pipe"
        parts, size, skipping = list[bytes](), 0, False
        while chunk := await stdout.read(CHUNK):
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
        await self._seen_to_end()

    async def send(self, line: bytes) -> None:
        """Raises `OSError` where nobody reads any more; `NotReading` for a process that is ended for that."""
        stdin = self._process.stdin
        assert stdin is not None, "it is a pipe"
        stdin.write(line + b"\n")
        try:
            async with asyncio.timeout(TAKEN_WITHIN):
                await stdin.drain()
        except TimeoutError:
            self._signal(signal.SIGKILL)
            raise NotReading from None

    async def close(self) -> None:
        """It is asked to end by the end of its input, then by a signal, then killed; and so is all that it started."""
        assert self._process.stdin is not None, "it is a pipe"
        with suppress(OSError):
            self._process.stdin.close()
        if not await self._ended_within(GRACE):
            self._signal(signal.SIGTERM)
            await self._ended_within(GRACE)
        self._signal(signal.SIGKILL)
        self._end_strays()
        await self._ended_within(GRACE)
        self._reading_errors.cancel()
        await asyncio.wait((self._reading_errors,))
        # What it started may hold its pipes open, and nothing public lets go of them.
        cast(asyncio.SubprocessTransport, self._process._transport).close()  # pyright: ignore[reportAttributeAccessIssue, reportPrivateUsage, reportUnknownMemberType]

    async def _ended_within(self, seconds: float) -> bool:
        """By its exit alone: what it started may hold its pipes open."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self._process.returncode is None:  # noqa: ASYNC110 - nobody tells of the exit alone
                    await asyncio.sleep(0.01)
        return self._process.returncode is not None

    async def _seen_to_end(self) -> None:
        """Its output is over, so it has ended or soon will; its last words are on their way."""
        await self._ended_within(GRACE)
        await asyncio.wait((self._reading_errors,), timeout=0.2)

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

    async def _read_errors(self) -> None:
        stderr = self._process.stderr
        assert stderr is not None, "it is a pipe"
        while data := await stderr.read(CHUNK):
            self._errors.write(data)
