"""The shell of one session: where commands run, what they are held to, and those that were left to run."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from pathlib import Path

from ...bash_analysis.git_use import NO_GIT, GitUse
from ...core.effects import Effects
from ...core.ports import Note
from ...core.verdicts import Confinement, Grants
from ..git.git_environment import CannotList, neutralise, reading_environment
from ..git.git_history import GitHistory
from ..git.git_pathspecs import literal_pattern
from .background_tasks import Background, TaskState, TaskStatus
from .child_environment import child_environment
from .command import Command
from .command_runner import CommandRunner
from .covering import HiddenPaths, TooManyEntries
from .declared_writes import granted_writes
from .held_places import HeldPlaces
from .held_sandbox import HeldSandboxes
from .piped_process import PipedProcess, Program
from .program_hold import ProgramHold
from .sandbox import EVERYWHERE, READ_ONLY, CannotConfine, Offers, Sandbox, try_sandbox, try_workspace, workspace_write
from .shell_snapshot import take_snapshot

NOT_AWAITED = "It is not waited for any longer and ends with this run. Answer without it, and say so."


class Shell:
    """Nothing is started before the first command. Whoever opened it closes it; a program that ends does too."""

    def __init__(
        self,
        folder: Path,
        *,
        environment: Mapping[str, str] | None = None,
        hidden: Callable[[], tuple[str, ...]] = tuple,
        places: HeldPlaces | None = None,
        snapshot: bool = False,
        before_first: Callable[[], None] | None = None,
    ) -> None:
        """`folder` takes long output; `hidden` says which paths no confined command may read.

        `places` are where commands work that nobody approved. With a `snapshot` they have the functions and
        aliases of the user's own shell. `before_first` is called before the first command.
        """
        self._before_first = before_first
        self._wants_snapshot = snapshot
        self._functions: Mapping[str, str] = {}
        self._own = own = dict(os.environ if environment is None else environment)
        self._given = child_environment(own)
        self._quiet = neutralise(self._given, ())
        self._hidden = hidden
        self._offers: Offers | None = None
        self._tried_roots: frozenset[str] = frozenset()
        self._places = places or HeldPlaces()
        self._sandboxes = HeldSandboxes(self._places, self._given)
        self._denied = HiddenPaths()
        self._trying = asyncio.Lock()
        self._history = GitHistory(folder / "guards")
        self.commands = CommandRunner(folder=folder, environment=own)
        self.background = Background(self.commands)
        self.finished = FinishedTasks(self.background)
        self.open_tasks = OpenTasks(self.background)

    def take(self, variables: Mapping[str, str]) -> None:
        """For the commands from now on."""
        self._own = {**self._own, **variables}
        self._given = {**child_environment(self._own), **self._functions}
        self._quiet = neutralise(self._given, ())
        self._sandboxes = HeldSandboxes(self._places, self._given)

    async def prepare(self) -> None:
        """Before each command; only the first finds something to do."""
        if self._before_first:
            self._before_first()
            self._before_first = None
            self.take({})  # what can be read is found again, with what was made
        if not self._wants_snapshot:
            return
        async with self._trying:
            if self._wants_snapshot:
                self._functions = await take_snapshot(self.commands, self._given)
                self._wants_snapshot = False
                self.take({})

    async def offers(self) -> Offers:
        """What this machine can hold commands to, tried once, and for each folder that is worked in."""
        async with self._trying:
            if self._offers is None:
                self._offers = await try_sandbox(self.commands)
            if not self.is_tried:
                await asyncio.to_thread(self._sandboxes.look)
            for root in self._sandboxes.writable_folders():
                if root not in self._tried_roots:
                    self._offers = await try_workspace(self.commands, self._offers, root)
                    self._tried_roots |= {root}
        return self._offers

    @property
    def is_tried(self) -> bool:
        return self._offers is not None and self._tried_roots.issuperset(self._sandboxes.writable_folders())

    async def try_it(self) -> None:
        await self.offers()

    def why_unheld(self) -> str:
        """Why a command cannot be held to what it declared, as far as that is known; empty where it can."""
        if self._sandboxes.too_many:
            return self._sandboxes.too_many
        if self._offers is None:
            return ""
        if not self._offers.reads:
            return "; ".join(self._offers.trouble) or "Landlock is too old here (Linux 6.2 has what it takes)."
        return "; ".join(self._offers.trouble)

    def confines(self, needed: Confinement) -> bool:
        """Whether this machine, as far as it was tried, can hold a command to it."""
        offers = self._offers
        if offers is None or not offers.confines:
            return False
        if needed.grants is not None:
            return self._holds(offers, needed, needed.grants)
        if needed.writable is not None and not needed.read_only:
            return self._sandboxes.keep_in(needed.writable, offers, lasts=False) != ""
        return offers.mounts or not (needed.unreadable or needed.unwritable)

    async def reading(
        self,
        text: str,
        cwd: str,
        *,
        repositories: Collection[str] = (),
        unreadable: Collection[str] = (),
        git: GitUse = NO_GIT,
    ) -> Command:
        """An approved command that only reads: git runs nothing of these repositories', and nothing can be written.

        Where this machine has no sandbox it runs without one. Raises `CannotConfine` where something must be
        hidden and cannot be, or git cannot be kept from running a repository's programs.
        """
        environment = await self._reading_environment(repositories)
        hold = await self._history.hold(unreadable, cwd, self._given, git)
        command = Command(text=text, cwd=cwd, env=hold.environment(environment), notes=hold.notes)
        offers = await self.offers()
        hidden = (*self._hidden(), *await self._find_paths(unreadable), *hold.hidden)
        if not offers.confines and not hidden:
            return command
        return replace(command, jail=offers.jail(replace(READ_ONLY, hidden=hidden)))

    def _holds(self, offers: Offers, needed: Confinement, grants: Grants) -> bool:
        if not offers.reads or self._sandboxes.too_many:
            return False
        if needed.writable is not None and not needed.read_only:
            return self._sandboxes.keep_in(needed.writable, offers, lasts=grants.lasts) != ""
        if not grants.writes or needed.read_only:
            return True
        return self._sandboxes.keep_for(grants.writes, offers, lasts=grants.lasts) != ""

    async def hold_to_grants(
        self,
        text: str,
        cwd: str,
        needed: Confinement,
        effects: Effects,
        *,
        repositories: Collection[str] = (),
        git: GitUse = NO_GIT,
    ) -> Command:
        """A command that nobody approved, held to what it declared. Raises `CannotConfine`.

        git runs nothing of these repositories' configuration.
        """
        offers = await self.offers()
        grants = needed.grants or Grants()
        if not self._holds(offers, needed, grants):
            raise CannotConfine(self.why_unheld() or "This machine cannot hold it to what it declared.")
        environment = self._given
        if needed.writable is None or needed.read_only:
            environment = await self._reading_environment(repositories)
        sandbox = await asyncio.to_thread(self._sandbox, needed, grants, effects, offers, repositories)
        sandbox = replace(sandbox, hidden=tuple(dict.fromkeys((*sandbox.hidden, *self._hidden()))))
        passed_over = tuple(map(literal_pattern, sandbox.hidden)) if git.folders else ()
        hold = await self._history.hold((*needed.unreadable, *passed_over), cwd, self._given, git)
        jail = offers.jail(hold.inside(sandbox))
        return Command(text=text, cwd=cwd, env=hold.environment(environment), jail=jail, notes=hold.notes)

    def _sandbox(
        self, needed: Confinement, grants: Grants, effects: Effects, offers: Offers, repositories: Collection[str]
    ) -> Sandbox:
        return self._sandboxes.sandbox(needed, grants, granted_writes(effects, grants), offers, git=repositories)

    async def _reading_environment(self, repositories: Collection[str]) -> Mapping[str, str]:
        try:
            return await reading_environment(self._given, *repositories) if repositories else self._quiet
        except CannotList as reason:
            raise CannotConfine(str(reason)) from None

    async def confine(
        self, text: str, cwd: str, needed: Confinement, *, git: GitUse = NO_GIT, lasts: bool = False
    ) -> Command:
        """An approved command, which may do everything except what rules deny. Raises `CannotConfine`.

        Hosts cannot be distinguished here, so where one is denied none is reached.
        """
        offers = await self.offers()
        if not self.confines(needed):
            raise CannotConfine("; ".join(offers.trouble) or "This machine offers no sandbox.")
        hold = await self._history.hold(needed.unreadable, cwd, self._given, git)
        covered = () if hold.uncovered else await self._find_paths(needed.unreadable)
        hidden, protected = (*covered, *hold.hidden), (*await self._find_paths(needed.unwritable), *hold.protected)
        free = not needed.unreachable
        sandbox = (
            replace(READ_ONLY, hidden=hidden)
            if needed.read_only
            else replace(EVERYWHERE, hidden=hidden, protected=protected, network=free, unix_sockets=free)
            if needed.writable is None
            else self._inside(offers, needed.writable, hidden, protected, lasts=lasts)
        )
        environment = self._quiet if needed.read_only else self._given
        return Command(
            text=text, cwd=cwd, env=hold.environment(environment), jail=offers.jail(sandbox), notes=hold.notes
        )

    def _inside(
        self,
        offers: Offers,
        writable: tuple[str, ...],
        hidden: tuple[str, ...],
        protected: tuple[str, ...],
        *,
        lasts: bool,
    ) -> Sandbox:
        sandbox = workspace_write(*writable, keep=self._sandboxes.keep_in(writable, offers, lasts=lasts))
        return replace(sandbox, hidden=hidden, protected=(*sandbox.protected, *protected))

    def plain(self, text: str, cwd: str) -> Command:
        """A command that somebody approved, with all the rights of this user."""
        return Command(text=text, cwd=cwd, env=self._given)

    async def hold_for(self, cwd: str, needed: Confinement) -> ProgramHold:
        """What keeps a program that nobody can look into from these paths, as they are now. Raises `CannotConfine`."""
        git = await self._history.hold(needed.unreadable, cwd, self._given)
        hidden = (*await self._find_paths(needed.unreadable), *git.hidden)
        protected = (*await self._find_paths(needed.unwritable), *git.protected)
        return await asyncio.to_thread(ProgramHold.of, hidden, protected)

    async def start_program(self, program: Program, hold: ProgramHold | None) -> PipedProcess:
        """One to be spoken to, with all rights of this user but for what it is held from.

        Raises `CommandFailed` and `CannotConfine`.
        """
        if hold is not None and not hold.is_empty:
            hidden, protected = (tuple(path for path, _, _ in paths) for paths in (hold.hidden, hold.protected))
            sandbox = replace(EVERYWHERE, hidden=hidden, protected=protected)
            program = replace(program, jail=(await self.offers()).jail(sandbox))
        return await self.commands.start_program(program)

    async def _find_paths(self, patterns: Collection[str]) -> tuple[str, ...]:
        if not patterns:
            return ()
        try:
            return await asyncio.to_thread(self._denied.matching, patterns)
        except TooManyEntries as reason:
            raise CannotConfine(str(reason)) from None

    async def close(self) -> None:
        """End everything that still runs."""
        await self.background.close()
        await self.commands.close()


class FinishedTasks:
    """Reports each background command and agent that ended to the model once; satisfies `core.ports.NoteSource`."""

    def __init__(self, background: Background) -> None:
        self._background = background
        self._told_overdue: frozenset[str] = frozenset()

    async def notes(self, agent: str) -> tuple[Note, ...]:
        if agent != "main":
            return ()  # each is reported once, to the owner of the session
        ended = [await self._describe(status) for status in self._background.notices()]
        late = [status for status in self._background.overdue() if status.id not in self._told_overdue]
        self._told_overdue |= {status.id for status in late}
        texts = (("finished_tasks", ended), ("running_tasks", [f"{status} {NOT_AWAITED}" for status in late]))
        return tuple(Note(kind, "\n".join(lines)) for kind, lines in texts if lines)

    async def _describe(self, status: TaskStatus) -> str:
        """An agent's report is what everybody waits for, so it is given at once."""
        return (await self._background.report(status.id) if status.reports else "") or str(status)


class OpenTasks:
    """Names the background commands that still run; satisfies `core.ports.Lasting`."""

    def __init__(self, background: Background) -> None:
        self._background = background

    def lasting(self, agent: str) -> tuple[Note, ...]:
        running = [task for task in self._background.listing() if task.state is TaskState.RUNNING]
        lines = [f"{task} Its command: {task.command}" for task in running]
        return (Note("running_tasks", "\n".join(lines)),) if lines else ()
