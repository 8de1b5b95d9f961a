"""The shell of a session, made when something first needs it: the first request to a model does not."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from ..core.ports import Note
from ..core.verdicts import Confinement
from .live_rules import LiveRules

if TYPE_CHECKING:
    from ..host.shell import Shell


class LateShell:
    """Stands for the shell towards everybody but the tools, who get it itself.

    Satisfies `live_rules.Box`, `core.ports.NoteSource` and `core.ports.Lasting`.
    """

    def __init__(self, folder: Path, environment: Mapping[str, str], rules: LiveRules) -> None:
        self._folder = folder
        self._environment = environment
        self._rules = rules
        self._is_made = False

    def get(self) -> Shell:
        return self._shell

    @cached_property
    def _shell(self) -> Shell:
        from ..host.shell import Shell

        self._is_made = True
        return Shell(self._folder, environment=self._environment, hidden=self._rules.plain_hidden)

    def take(self, variables: Mapping[str, str]) -> None:
        """For the commands from now on."""
        self._shell.take(variables)

    @property
    def is_tried(self) -> bool:
        return self._is_made and self._shell.is_tried

    async def try_it(self) -> None:
        await self._shell.try_it()

    def confines(self, needed: Confinement, /) -> bool:
        return self._is_made and self._shell.confines(needed)

    async def notes(self, agent: str) -> tuple[Note, ...]:
        return await self._shell.finished.notes(agent) if self._is_made else ()

    def lasting(self, agent: str) -> tuple[Note, ...]:
        return self._shell.open_tasks.lasting(agent) if self._is_made else ()

    async def close(self) -> None:
        if self._is_made:
            await self._shell.close()
