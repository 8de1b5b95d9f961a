"""Who starts the program of a server for a session, and what it is then kept from. Satisfied in `app`."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from ..host.processes.program_hold import ProgramHold


class CannotStart(Exception):
    """The process could not be started. The message says why."""


class ServerChild(Protocol):
    """A process with three pipes. Whoever started it kills and releases it."""

    @property
    def stdin(self) -> asyncio.StreamWriter: ...

    @property
    def stdout(self) -> asyncio.StreamReader: ...

    @property
    def stderr(self) -> asyncio.StreamReader: ...

    @property
    def returncode(self) -> int | None:
        """As `subprocess` has it; `None` as long as it runs."""
        ...

    @property
    def trouble(self) -> str:
        """Why the program could not be run, or was lost; otherwise empty."""
        ...

    async def ask_to_end(self) -> None:
        """It, and what it started."""
        ...

    async def kill(self) -> None:
        """It, and all that it started."""
        ...

    def release(self) -> None:
        """Let go of the pipes, which others may hold open."""
        ...


class Launcher(Protocol):
    def can_hold(self) -> bool:
        """Whether paths that rules deny can be hidden from a server, as far as that was tried."""
        ...

    async def wanted_hold(self, cwd: str | None, /) -> ProgramHold | None:
        """What a server is to be kept from now; `None` for nothing, or where this machine cannot.

        Raises `CannotStart`.
        """
        ...

    async def launch(
        self, argv: tuple[str, ...], *, env: Mapping[str, str], cwd: str | None, hold: ProgramHold | None
    ) -> ServerChild:
        """`env` is all that it gets. Raises `CannotStart`."""
        ...
