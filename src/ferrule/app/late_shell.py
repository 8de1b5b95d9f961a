"""The shell of a session, made when something first needs it: the first request to a model does not."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from ..core.ports import Note
from ..core.verdicts import Confinement
from ..host.processes.held_sandbox import HeldPlaces
from .live_rules import LiveRules

if TYPE_CHECKING:
    from ..host.processes.session_shell import Shell


class LateShell:
    """Stands for the shell towards everybody but the tools, who get it itself.

    Satisfies `live_rules.Box`, `core.ports.NoteSource` and `core.ports.Lasting`.
    """

    def __init__(self, folder: Path, environment: Mapping[str, str], rules: LiveRules, places: HeldPlaces) -> None:
        self._folder = folder
        self._places = places
        self._environment = environment
        self._rules = rules
        self._made: Shell | None = None

    def get(self) -> Shell:
        if self._made is None:
            from ..host.processes.session_shell import Shell

            self._made = Shell(
                self._folder, environment=self._environment, hidden=self._rules.plain_hidden_paths, places=self._places
            )
        return self._made

    def take(self, variables: Mapping[str, str]) -> None:
        """For the commands from now on."""
        self.get().take(variables)

    @property
    def is_tried(self) -> bool:
        return self._made is not None and self._made.is_tried

    async def try_it(self) -> None:
        await self.get().try_it()

    def confines(self, needed: Confinement, /) -> bool:
        return self._made is not None and self._made.confines(needed)

    def why_unheld(self) -> str:
        return self._made.why_unheld() if self._made else ""

    async def notes(self, agent: str) -> tuple[Note, ...]:
        return await self._made.finished.notes(agent) if self._made else ()

    def lasting(self, agent: str) -> tuple[Note, ...]:
        return self._made.open_tasks.lasting(agent) if self._made else ()

    async def close(self) -> None:
        if self._made:
            await self._made.close()
