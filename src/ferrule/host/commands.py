"""Shell commands: started by the spawner, read as they print, ended with all that they started.

A command runs as `bash -c` with its text untouched, in a session of its own,
without terminal or input, with output and errors on one pipe. The call is over
when the shell is. What the shell left running goes on until it ends by itself,
is ended by `Running.end`, or Ferrule ends; what it prints later is thrown away,
so that it never waits for a reader.

The working directory comes back from an EXIT trap that the shell reads from
BASH_ENV before the command. A shell that was killed, that a program replaced
(`exec`), or whose command sets an EXIT trap of its own says nothing, and the
directory then stays where it was.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import signal
import struct
import termios
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Self, TypeAlias

from .output_ring import MODEL_CHARACTERS, Output, OutputRing
from .refusals import refusals
from .spawner.protocol import TROUBLE
from .spawner_link import SpawnerFailed, SpawnerLink
from .spill import make_private
from .terminal_text import TerminalStream

if TYPE_CHECKING:
    from .spawner.protocol import Ended, Jail, Reply, Start

DEFAULT_SECONDS = 120.0
MOST_SECONDS = 600.0
GRACE = 2.0
"""Seconds between asking a command to end and killing it."""
GONE_WITHIN = 5.0
CHUNK = 1 << 18
PIPE_SIZE = 1 << 18
PROGRESS_EVERY = 0.05
PROGRESS_BYTES = 8_192

OnOutput: TypeAlias = Callable[[str], None]


class CommandFailed(Exception):
    """The command could not be started, or was lost. What happened, then what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The most each process of a command may take; `None` leaves it as it is for Ferrule."""

    memory: int | None = None
    """Bytes of address space."""
    processes: int | None = None
    """Of this user altogether, as the kernel counts them; it does not count root's."""
    file_size: int | None = None
    open_files: int | None = None

    def given(self) -> dict[str, int]:
        values = {name: getattr(self, name) for name in self.__slots__}
        return {name: value for name, value in values.items() if value is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """The most that all commands of a session take together, where the system lets its user make a control group."""

    processes: int | None = 16_384
    """Threads count as well."""
    memory: int | None = None
    """Bytes really used; by default nine tenths of what the machine has."""

    def numbers(self) -> dict[str, int]:
        usual = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 10 * 9
        return {"processes": self.processes or 0, "memory": usual if self.memory is None else self.memory}


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    text: str
    cwd: str
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    """All the variables it gets: see `host/environment.py`."""
    limits: Limits = Limits()
    jail: Jail | None = None
    """What a sandbox allows it: see `host/sandbox.py`."""


@dataclass(frozen=True, slots=True)
class LeftBehind:
    pid: int
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """How a command ended."""

    exit_code: int | None
    """`None` where a signal ended the shell itself."""
    signal: str | None
    """The signal's name; also where the shell reports, as an exit code over 128, that one ended its program."""
    output: Output
    cwd: str | None
    """Where the shell stood as it ended; `None` where it did not say."""
    seconds: float
    timed_out: bool = False
    left: tuple[LeftBehind, ...] = ()
    blocked: tuple[str, ...] = ()
    """For one that failed in a sandbox: the last lines of its output that speak of something not allowed."""

    @property
    def succeeded(self) -> bool:
        return self.exit_code == 0


class Running:
    """A command under way. Made by `Commands.start`."""

    def __init__(self, id: int, command: Command, link: SpawnerLink, output: OutputRing, reading: int) -> None:
        self.id = id
        self.command = command
        self.output = output
        self.pid: int | None = None
        self._link = link
        self._reading = reading
        self._loop = asyncio.get_running_loop()
        self._began = time.monotonic()
        self._started: asyncio.Future[bool] = self._loop.create_future()
        self._ended: asyncio.Future[Ran] = self._loop.create_future()
        self._gone: asyncio.Future[None] = self._loop.create_future()
        self._ending = False
        self._timed_out = False
        self._discarding = False
        self._watchers: list[Callable[[], None]] = []
        os.set_blocking(reading, False)
        self._loop.add_reader(reading, self._read)

    @property
    def done(self) -> bool:
        return self._ended.done()

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._began

    async def started(self) -> bool:
        """Whether there is a process; `False` where the spawner was lost before there was one."""
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
        """Call it after each piece of output, and once more at the end."""
        self._watchers.append(watcher)

    # What the pipe brings

    def _read(self) -> None:
        try:
            chunk = os.read(self._reading, CHUNK)
        except BlockingIOError:
            return
        if not chunk:
            self._close_pipe()
        elif not self._discarding:
            self._take(chunk)

    def _take(self, chunk: bytes) -> None:
        self.output.feed(chunk)
        for watcher in self._watchers:
            watcher()

    def _drain(self) -> None:
        """What was in the pipe as the shell ended, and no more: others may hold it open and go on printing."""
        if self._reading < 0:
            return
        left = struct.unpack("i", fcntl.ioctl(self._reading, termios.FIONREAD, b"\0\0\0\0"))[0]
        while left > 0 and (chunk := os.read(self._reading, min(left, CHUNK))):
            left -= len(chunk)
            self._take(chunk)

    def _close_pipe(self) -> None:
        if self._reading >= 0:
            self._loop.remove_reader(self._reading)
            os.close(self._reading)
            self._reading = -1

    # What the spawner says

    def on_reply(self, reply: Reply) -> None:
        match reply["event"]:
            case "started":
                self.pid = reply["pid"]
                self._started.set_result(True)
            case "ended":
                self._on_end(reply)
            case "gone":
                self._finish()
            case "refused":
                self._fail(f"The command could not be started: {reply['why']}.")

    def on_lost(self, why: str) -> None:
        self._drain()
        self._fail(f"{why} The command was killed. Run it again.")

    def _on_end(self, ended: Ended) -> None:
        self._drain()
        self._discarding = True
        report = ended["report"]
        if report.startswith(TROUBLE):
            self._fail(f"The command could not be started: {report[1:].decode('utf-8', 'replace')}.")
        else:
            code = os.waitstatus_to_exitcode(ended["status"])
            left = () if self._ending else tuple(LeftBehind(pid, name) for pid, name in ended["left"])
            self._settle(code, _reported_folder(report), left)

    def _settle(self, code: int, cwd: str | None, left: tuple[LeftBehind, ...]) -> None:
        output = self.output.snapshot(keep_if_over=MODEL_CHARACTERS)
        ran = Ran(
            exit_code=code if code >= 0 else None,
            signal=signal_name(code),
            output=output,
            cwd=cwd,
            seconds=self.seconds,
            timed_out=self._timed_out,
            left=left,
            blocked=refusals(output.text()) if self.command.jail is not None and code != 0 else (),
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
        self._close_pipe()
        if not self._gone.done():
            self._gone.set_result(None)


class Commands:
    """Runs commands for one session, through one spawner that is started when first needed.

    Whoever opens it closes it: `async with Commands(...)`. Nothing that ran is
    left then, nor after the death of the whole program.
    """

    def __init__(
        self, *, folder: Path, environment: Mapping[str, str], shell: str | None = None, bounds: Bounds | None = None
    ) -> None:
        """`folder` takes output too long for memory; `environment` says where programs are found."""
        self._folder = folder
        self._bounds = bounds or Bounds()
        self._environment = environment
        self._shell = shell or find_shell(environment)
        self._link: SpawnerLink | None = None
        self._ids = count(1)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        link, self._link = self._link, None
        if link is not None:
            await link.close()

    async def prepare(self) -> None:
        """Start the spawner ahead of the first command, which else waits some tens of milliseconds for it."""
        await self._spawner()

    async def run(
        self, command: Command, *, timeout: float = DEFAULT_SECONDS, on_output: OnOutput | None = None
    ) -> Ran:
        """Until it ends or its time is up; then, and if this is cancelled, its whole tree is ended."""
        running = await self.start(command, on_output=on_output)
        try:
            if (ran := await running.within(min(timeout, MOST_SECONDS))) is not None:
                return ran
            await running.end(timed_out=True)
            return await running.wait()
        finally:
            if not running.done:
                await asyncio.shield(running.end())
            running.output.close()

    async def start(self, command: Command, *, on_output: OnOutput | None = None) -> Running:
        """The command under way. Whoever started it waits for it or ends it."""
        _check(command)
        running = await self._asked_for(command)
        try:
            if not await running.started():  # the spawner ended before it took it, so nothing was done yet
                running = await self._asked_for(command)
                await running.started()
        except asyncio.CancelledError:
            await asyncio.shield(running.end(grace=0))
            raise
        if on_output is not None:
            running.watch(_Progress(running, on_output))
        return running

    async def control_groups(self) -> tuple[str, ...]:
        """What holds its commands to the bounds; none where the system allows none. Waits until that is settled."""
        await self.run(Command(text="", cwd="/"))
        return (await self._spawner()).control_groups()

    async def _asked_for(self, command: Command) -> Running:
        link = await self._spawner()
        id = next(self._ids)
        reading, writing = os.pipe()
        with suppress(OSError):  # past the user's share of pipe memory, the usual size must do
            fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, PIPE_SIZE)
        running = Running(id, command, link, OutputRing(lambda: self._make_spill(id)), reading)
        try:
            await link.start(self._request(id, command), writing, running.on_reply, running.on_lost)
        except asyncio.CancelledError:  # the request goes out all the same, so the end goes after it
            await asyncio.shield(running.end(grace=0))
            raise
        finally:
            os.close(writing)
        return running

    async def _spawner(self) -> SpawnerLink:
        if self._link is not None and not self._link.alive:
            lost, self._link = self._link, None
            await lost.close()
        if self._link is None:
            try:
                self._link = SpawnerLink.opened(self._environment, **self._bounds.numbers())
            except SpawnerFailed as error:
                raise CommandFailed(str(error)) from None
        return self._link

    def _request(self, id: int, command: Command) -> Start:
        if self._shell is None:
            raise CommandFailed("bash is not installed, so no command can run. Install it, or put it on PATH.")
        return {
            "do": "start",
            "id": id,
            "program": self._shell,
            "command": command.text,
            "cwd": command.cwd,
            "env": dict(command.env),
            "limits": command.limits.given(),
            "jail": command.jail,
        }

    def _make_spill(self, id: int) -> tuple[Path, int]:
        make_private(self._folder)
        path = self._folder / f"command-{os.getpid()}-{id}.log"
        return path, os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)


class _Progress:
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


def signal_name(code: int) -> str | None:
    """
    >>> signal_name(-9), signal_name(143), signal_name(1)
    ('SIGKILL', 'SIGTERM', None)
    """
    number = -code if code < 0 else code - 128
    try:
        return signal.Signals(number).name if number > 0 else None
    except ValueError:
        return f"signal {number}" if code < 0 else None


def find_shell(environment: Mapping[str, str]) -> str | None:
    """The first bash on PATH; a relative entry of PATH is nobody's word."""
    for folder in (*environment.get("PATH", "").split(os.pathsep), "/bin", "/usr/bin"):
        program = os.path.join(folder, "bash")
        if os.path.isabs(folder) and os.path.isfile(program) and os.access(program, os.X_OK):
            return program
    return None


def _check(command: Command) -> None:
    if "\0" in command.text:
        raise CommandFailed("The command holds a NUL character, which no program can be given. Leave it out.")
    try:
        os.fsencode(command.text)
    except UnicodeEncodeError:
        raise CommandFailed("The command holds half a character (a lone surrogate). Write it whole.") from None
    if not os.path.isdir(command.cwd):
        raise CommandFailed(f"{command.cwd} is not a directory any more. Change to one that exists.")


def _reported_folder(report: bytes) -> str | None:
    """The last word of the shell, if it is one: anything may have been written there."""
    path = os.fsdecode(report.removesuffix(b"\n"))
    return path if path.startswith("/") and "\0" not in path and os.path.isdir(path) else None
