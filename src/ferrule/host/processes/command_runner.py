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
import shutil
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Self

from ..storage.session_folder import make_private
from .command import Bounds, Command, CommandFailed, Ran
from .output_ring import OutputRing
from .piped_process import PipedProcess, Program
from .running_command import OnOutput, Progress, Running
from .spawner_link import SpawnerFailed, SpawnerLink

if TYPE_CHECKING:
    from .spawner.protocol import Start

DEFAULT_SECONDS = 120.0
MOST_SECONDS = 600.0
PIPE_SIZE = 1 << 18


class CommandRunner:
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
        self._buffer = memoryview(bytearray(PIPE_SIZE))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        link, self._link = self._link, None
        if link is not None:
            await link.close()

    async def prepare(self) -> None:
        """Start the spawner ahead of the first command, which would otherwise wait tens of milliseconds for it."""
        await self._spawner()

    @asynccontextmanager
    async def temporary_folder(self) -> AsyncGenerator[str]:
        """A folder beside those of the commands. Whoever is killed meanwhile, it goes with them."""
        folder = (await self._spawner()).make_folder()
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

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
        """The command under way. Whoever started it waits for it or ends it. Raises `CommandFailed`."""
        _check(command)
        running = await self._request_start(command)
        try:
            if not await running.wait_for_start():  # the spawner ended before it took it, so nothing was done yet
                running = await self._request_start(command)
                await running.wait_for_start()
        except asyncio.CancelledError:
            await asyncio.shield(running.end(grace=0))
            raise
        if on_output is not None:
            running.watch(Progress(running, on_output))
        return running

    async def start_program(self, program: Program) -> PipedProcess:
        """A program to be spoken to. Whoever started it kills and releases it. Raises `CommandFailed`."""
        for _ in range(2):  # a spawner that was lost before it took it has done nothing yet
            process, kept = PipedProcess(id := next(self._ids), await self._spawner()), False
            try:
                await process.open(_program_request(id, program))
                kept = await process.started()
                if kept:
                    return process
            except OSError as error:
                raise CommandFailed(error.strerror or str(error)) from None
            finally:
                if not kept:
                    await asyncio.shield(_give_up(process))
        raise CommandFailed("The process that runs commands ended twice before it could start it.")

    async def control_groups(self) -> tuple[str, ...]:
        """What holds its commands to the bounds; none where the system allows none. Waits until that is settled."""
        await self.run(Command(text="", cwd="/"))
        return (await self._spawner()).control_groups()

    async def _request_start(self, command: Command) -> Running:
        link = await self._spawner()
        id = next(self._ids)
        reading, writing = os.pipe()
        with suppress(OSError):  # past the user's share of pipe memory, the usual size must do
            fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, PIPE_SIZE)
        running = Running(
            id, command, link, OutputRing(lambda: self._make_spill(id)), reading=reading, buffer=self._buffer
        )
        try:
            await link.start(self._request(id, command), (writing,), running.on_reply, running.on_lost)
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
                self._link = SpawnerLink.open(self._environment, **self._bounds.numbers())
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
            "argv": [],
            "cwd": command.cwd,
            "env": dict(command.env),
            "limits": command.limits.as_numbers(),
            "jail": command.jail,
        }

    def _make_spill(self, id: int) -> tuple[Path, int]:
        make_private(self._folder)
        path = self._folder / f"command-{os.getpid()}-{id}.log"
        return path, os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)


async def _give_up(process: PipedProcess) -> None:
    await process.kill()
    process.release()


def _program_request(id: int, program: Program) -> Start:
    return {
        "do": "start",
        "id": id,
        "program": program.path,
        "command": "",
        "argv": [*program.argv],
        "cwd": program.cwd,
        "env": dict(program.env),
        "limits": {},
        "jail": program.jail,
    }


def find_shell(environment: Mapping[str, str]) -> str | None:
    """The first bash on PATH; relative entries of PATH are not trusted."""
    for folder in (*environment.get("PATH", "").split(os.pathsep), "/bin", "/usr/bin"):
        program = os.path.join(folder, "bash")
        if os.path.isabs(folder) and os.path.isfile(program) and os.access(program, os.X_OK):
            return program
    return None


def _check(command: Command) -> None:
    if "\0" in command.text:
        raise CommandFailed("The command contains a NUL character, which cannot be passed to a program. Leave it out.")
    try:
        os.fsencode(command.text)
    except UnicodeEncodeError:
        raise CommandFailed("The command contains half a character (a lone surrogate). Write it whole.") from None
    if not os.path.isdir(command.cwd):
        raise CommandFailed(f"{command.cwd} is not a directory any more. Change to one that exists.")
