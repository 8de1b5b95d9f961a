"""One running command: its output as it comes, its end, and how to end it."""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, TypeAlias

from .command import Changes, Command, CommandFailed, LeftBehind, Ran, signal_name
from .output_ring import OutputRing
from .pipe_reader import PipeReader
from .spawner_link import SpawnerLink
from .terminal_text import TerminalStream

if TYPE_CHECKING:
    from .spawner.protocol import Changed, Ended, Reply


REFUSALS = re.compile(
    r"permission denied|operation not permitted|read-only file system|\bE(?:ACCES|PERM|ROFS)\b", re.IGNORECASE
)
MOST = 3


def refusals(output: str) -> tuple[str, ...]:
    """The last lines that speak of something that was not allowed.

    >>> refusals("one\\ntouch: cannot touch 'a': Permission denied\\n")
    ("touch: cannot touch 'a': Permission denied",)
    """
    return tuple([line.strip() for line in output.splitlines() if REFUSALS.search(line)][-MOST:])


GRACE = 2.0
"""Seconds between asking a command to end and killing it."""
GONE_WITHIN = 5.0
PROGRESS_EVERY = 0.05
PROGRESS_BYTES = 8_192

OnOutput: TypeAlias = Callable[[str], None]


class Running:
    """A command under way. Made by `Commands.start`."""

    def __init__(
        self, id: int, command: Command, link: SpawnerLink, output: OutputRing, *, reading: int, buffer: memoryview
    ) -> None:
        self.id = id
        self.command = command
        self.output = output
        self.pid: int | None = None
        self._link = link
        self._began = time.monotonic()
        loop = asyncio.get_running_loop()
        self._started: asyncio.Future[bool] = loop.create_future()
        self._ended: asyncio.Future[Ran] = loop.create_future()
        self._gone: asyncio.Future[None] = loop.create_future()
        self._ending = False
        self._timed_out = False
        self._watchers: list[Callable[[], None]] = []
        self._pipe = PipeReader(reading, output.feed, self._tell_of_output, buffer)

    @property
    def done(self) -> bool:
        return self._ended.done()

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._began

    async def wait_for_start(self) -> bool:
        """Whether there is a process; `False` where the spawner was lost before. Raises `CommandFailed`."""
        return await asyncio.shield(self._started)

    async def wait(self) -> Ran:
        """Raises `CommandFailed` where the process never became a shell, or the spawner was lost."""
        return await asyncio.shield(self._ended)

    async def within(self, seconds: float) -> Ran | None:
        """How it ended; `None` where it goes on."""
        try:
            async with asyncio.timeout(seconds):
                return await self.wait()
        except TimeoutError:
            return None

    async def end(self, *, grace: float = GRACE, timed_out: bool = False) -> None:
        """Ask all its processes to end, kill those that are left after `grace` seconds, and wait for the last."""
        self._ending = True
        self._timed_out = self._timed_out or timed_out
        if not self._gone.done():
            await self._link.send({"do": "end", "id": self.id, "grace": grace})
            with suppress(TimeoutError):
                async with asyncio.timeout(grace + GONE_WITHIN):
                    await asyncio.shield(self._gone)

    def watch(self, watcher: Callable[[], None]) -> None:
        """Call it after each piece of output, once more at the end, and now if either was already."""
        self._watchers.append(watcher)
        if self.output.total or self.done:
            watcher()

    def _tell_of_output(self) -> None:
        for watcher in self._watchers:
            watcher()

    # What the spawner says

    def on_reply(self, reply: Reply) -> None:
        match reply["event"]:
            case "started":
                self.pid = reply["pid"]
                self._started.set_result(True)
            case "ended":
                self._pipe.drain(lambda: self._on_end(reply))
            case "gone":
                self._pipe.drain(self._finish)
            case "refused":
                why = f"The command could not be started: {reply['why']}."
                self._started.set_exception(CommandFailed(why))
                self._fail(why)

    def on_lost(self, why: str) -> None:
        self._pipe.drain(lambda: self._fail(f"{why} The command was killed. Run it again."))

    def _on_end(self, ended: Ended) -> None:
        """Others may hold the pipe open and go on printing; that does not belong to this command's output."""
        self._pipe.discard()
        if trouble := ended["trouble"]:
            self._fail(f"The command could not be started: {trouble.decode('utf-8', 'replace')}.")
        else:
            code = os.waitstatus_to_exitcode(ended["status"])
            left = () if self._ending else tuple(LeftBehind(pid, name) for pid, name in ended["left"])
            self._settle(code, _folder_in_report(ended["cwd"]), left, _changes(ended["changes"]))

    def _settle(self, code: int, cwd: str | None, left: tuple[LeftBehind, ...], changes: Changes | None) -> None:
        output = self.output.snapshot(keep_if_over=self.command.kept_if_over)
        ran = Ran(
            exit_code=code if code >= 0 else None,
            signal=signal_name(code),
            output=output,
            cwd=cwd,
            seconds=self.seconds,
            timed_out=self._timed_out,
            left=left,
            blocked=refusals(output.text()) if self.command.jail is not None and code != 0 else (),
            changes=changes,
        )
        if not self._ended.done():
            self._ended.set_result(ran)
        self._tell_watchers()

    def _fail(self, why: str) -> None:
        if not self._ended.done():
            self._ended.set_exception(CommandFailed(why))
            self._ended.exception()  # nobody need wait for it
        self._tell_watchers()
        if not self._started.done():
            self._started.set_result(False)
        self._finish()

    def _tell_watchers(self) -> None:
        watchers, self._watchers = self._watchers, []
        for watcher in watchers:
            watcher()

    def _finish(self) -> None:
        self._pipe.close()
        if not self._gone.done():
            self._gone.set_result(None)


class Progress:
    """Gives out what is new, a few times a second, and of a flood only the end."""

    def __init__(self, running: Running, give: OnOutput) -> None:
        self._running = running
        self._give = give
        self._given = 0
        self._stream = TerminalStream()
        self._timer: asyncio.TimerHandle | None = None

    def __call__(self) -> None:
        if self._running.done:
            if self._timer is not None:
                self._timer.cancel()
            self._flush()
            if rest := self._stream.rest():
                self._give(rest)
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(PROGRESS_EVERY, self._flush)

    def _flush(self) -> None:
        self._timer = None
        total = self._running.output.total
        start = max(self._given, total - PROGRESS_BYTES)
        self._given = total
        if text := self._stream.feed(self._running.output.read(start, total)):
            self._give(text)


def _folder_in_report(report: bytes) -> str | None:
    """The directory that the shell reported, if valid: a command may have written anything there."""
    path = os.fsdecode(report.removesuffix(b"\n"))
    return path if path.startswith("/") and "\0" not in path and os.path.isdir(path) else None


def _changes(changed: Changed | None) -> Changes | None:
    if changed is None:
        return None
    return Changes(
        done=tuple(changed["done"]),
        dropped=tuple(changed["dropped"]),
        failed=tuple(changed["failed"]),
        refused=tuple(changed["refused"]),
        totals=changed["totals"],
    )
