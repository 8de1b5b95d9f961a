"""The shell of one session: where commands run, what they are held to, and those that were left to run."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from pathlib import Path

from ..core.ports import Note
from .background import Background
from .command import Command
from .commands import Commands
from .environment import child_environment
from .git_environment import CannotList, neutralised, reading_environment
from .sandbox import READ_ONLY, CannotConfine, Offers, Sandbox, tried


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
        own = dict(os.environ if environment is None else environment)
        self._given = child_environment(own)
        self._quiet = neutralised(self._given, ())
        self._hidden = hidden
        self._offers: Offers | None = None
        self._trying = asyncio.Lock()
        self.commands = Commands(folder=folder, environment=own)
        self.background = Background(self.commands)

    async def offers(self) -> Offers:
        """What this machine can hold commands to, tried once."""
        async with self._trying:
            if self._offers is None:
                self._offers = await tried(self.commands)
        return self._offers

    async def reading(self, text: str, cwd: str, *, repositories: Collection[str] = ()) -> Command:
        """A command that only reads: git runs nothing of these repositories', and the kernel lets nothing be written.

        Where this machine has no sandbox it runs without one. Raises `CannotConfine` where something must be
        hidden and cannot be, or git cannot be kept from running a repository's programs.
        """
        try:
            environment = await reading_environment(self._given, *repositories) if repositories else self._quiet
        except CannotList as reason:
            raise CannotConfine(str(reason)) from None
        return await self.confined(Command(text=text, cwd=cwd, env=environment), READ_ONLY)

    async def confined(self, command: Command, sandbox: Sandbox) -> Command:
        """The command in this sandbox; as it is, where this machine has none and nothing has to be hidden."""
        offers = await self.offers()
        hidden = self._hidden()
        if not offers.confines and not hidden:
            return command
        return replace(command, jail=offers.jail(replace(sandbox, hidden=hidden)))

    def plain(self, text: str, cwd: str) -> Command:
        """A command that somebody approved, with all the rights of this user."""
        return Command(text=text, cwd=cwd, env=self._given)

    async def close(self) -> None:
        """End everything that still runs."""
        await self.background.close()
        await self.commands.close()


class FinishedTasks:
    """Tells the model once of each background command that ended; satisfies `core.ports.NoteSource`."""

    def __init__(self, background: Background) -> None:
        self._background = background

    async def notes(self, agent: str) -> tuple[Note, ...]:
        ended = self._background.notices()
        return (Note("finished_tasks", "\n".join(map(str, ended))),) if ended else ()
