"""The shell of one session: where commands run, what they are held to, and those that were left to run."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from pathlib import Path

from ..core.ports import Note
from ..core.verdicts import Confinement
from .background import Background, State
from .command import Command
from .commands import Commands
from .covering import TooMany, on_disk
from .environment import child_environment
from .git_environment import CannotList, neutralised, reading_environment
from .sandbox import EVERYWHERE, READ_ONLY, CannotConfine, Offers, Sandbox, tried, try_workspace, workspace_write


class Shell:
    """Nothing is started before the first command. Whoever opened it closes it; a program that ends does too."""

    def __init__(
        self,
        folder: Path,
        *,
        environment: Mapping[str, str] | None = None,
        hidden: Callable[[], tuple[str, ...]] = tuple,
    ) -> None:
        """`folder` takes long output; `hidden` says which paths no confined command may read."""
        self._own = own = dict(os.environ if environment is None else environment)
        self._given = child_environment(own)
        self._quiet = neutralised(self._given, ())
        self._hidden = hidden
        self._offers: Offers | None = None
        self._trying = asyncio.Lock()
        self.commands = Commands(folder=folder, environment=own)
        self.background = Background(self.commands)
        self.finished = FinishedTasks(self.background)
        self.open_tasks = OpenTasks(self.background)

    def take(self, variables: Mapping[str, str]) -> None:
        """For the commands from now on."""
        self._own = {**self._own, **variables}
        self._given = child_environment(self._own)
        self._quiet = neutralised(self._given, ())

    async def offers(self) -> Offers:
        """What this machine can hold commands to, tried once."""
        async with self._trying:
            if self._offers is None:
                self._offers = await tried(self.commands)
        return self._offers

    @property
    def is_tried(self) -> bool:
        return self._offers is not None

    async def try_it(self) -> None:
        await self.offers()

    def confines(self, needed: Confinement) -> bool:
        """Whether this machine, as far as it was tried, can hold a command to it."""
        offers = self._offers
        if offers is None or not offers.confines:
            return False
        return offers.mounts or not (needed.unreadable or needed.unwritable or needed.writable)

    async def reading(
        self, text: str, cwd: str, *, repositories: Collection[str] = (), unreadable: Collection[str] = ()
    ) -> Command:
        """A command that only reads: git runs nothing of these repositories', and the kernel lets nothing be written.

        Where this machine has no sandbox it runs without one. Raises `CannotConfine` where something must be
        hidden and cannot be, or git cannot be kept from running a repository's programs.
        """
        try:
            environment = await reading_environment(self._given, *repositories) if repositories else self._quiet
        except CannotList as reason:
            raise CannotConfine(str(reason)) from None
        command = Command(text=text, cwd=cwd, env=environment)
        offers = await self.offers()
        hidden = (*self._hidden(), *await _found(unreadable))
        if not offers.confines and not hidden:
            return command
        return replace(command, jail=offers.jail(replace(READ_ONLY, hidden=hidden)))

    async def held(self, text: str, cwd: str, needed: Confinement) -> Command:
        """A command that may do all but what rules deny. Raises `CannotConfine`.

        Hosts cannot be told apart here, so where one is denied none is reached.
        """
        offers = await self.offers()
        if not self.confines(needed):
            raise CannotConfine("; ".join(offers.trouble) or "This machine offers no sandbox.")
        hidden, protected = await _found(needed.unreadable), await _found(needed.unwritable)
        free = not needed.unreachable
        sandbox = (
            replace(READ_ONLY, hidden=hidden)
            if needed.read_only
            else replace(EVERYWHERE, hidden=hidden, protected=protected, network=free, unix_sockets=free)
            if needed.writable is None
            else await self._inside(needed.writable, hidden, protected)
        )
        environment = self._quiet if needed.read_only else self._given
        return Command(text=text, cwd=cwd, env=environment, jail=offers.jail(sandbox))

    async def _inside(self, writable: tuple[str, ...], hidden: tuple[str, ...], protected: tuple[str, ...]) -> Sandbox:
        first, *more = writable
        self._offers = offers = await try_workspace(self.commands, await self.offers(), first)
        sandbox = workspace_write(first, *more, keep=offers.keep_for(first, background=False))
        return replace(sandbox, hidden=hidden, protected=(*sandbox.protected, *protected))

    def plain(self, text: str, cwd: str) -> Command:
        """A command that somebody approved, with all the rights of this user."""
        return Command(text=text, cwd=cwd, env=self._given)

    async def close(self) -> None:
        """End everything that still runs."""
        await self.background.close()
        await self.commands.close()


async def _found(patterns: Collection[str]) -> tuple[str, ...]:
    if not patterns:
        return ()
    try:
        return await asyncio.to_thread(on_disk, patterns)
    except TooMany as reason:
        raise CannotConfine(str(reason)) from None


class FinishedTasks:
    """Tells the model once of each background command that ended; satisfies `core.ports.NoteSource`."""

    def __init__(self, background: Background) -> None:
        self._background = background

    async def notes(self, agent: str) -> tuple[Note, ...]:
        if agent != "main":
            return ()  # each is told once, and to whom the session belongs
        ended = self._background.notices()
        return (Note("finished_tasks", "\n".join(map(str, ended))),) if ended else ()


class OpenTasks:
    """Names the background commands that still run; satisfies `core.ports.Lasting`."""

    def __init__(self, background: Background) -> None:
        self._background = background

    def lasting(self, agent: str) -> tuple[Note, ...]:
        running = [task for task in self._background.listing() if task.state is State.RUNNING]
        lines = [f"{task} Its command: {task.command}" for task in running]
        return (Note("running_tasks", "\n".join(lines)),) if lines else ()
