"""Keeps servers from denied paths: a server's program cannot reach what the session's rules deny."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from ..permissions.domains import is_local
from .config import Remote, ServerConfig, Stdio
from .launcher import CannotStart, Launcher
from .server_context import ServerTrouble
from .server_process import ErrorLog, ServerProcess

if TYPE_CHECKING:
    from ..host.processes.program_hold import ProgramHold


class ServerHold:
    """Of one server: who starts it, and what the program that runs now was started under."""

    def __init__(self, config: ServerConfig) -> None:
        self._config = config
        self.launcher: Launcher | None = None
        """`None` if it is not started by a session of its own."""
        self._hold: ProgramHold | None = None

    async def start(self, stdio: Stdio, errors: ErrorLog) -> ServerProcess:
        """Raises `CannotStart`."""
        self._hold = await self.launcher.wanted_hold(stdio.cwd) if self.launcher is not None else None
        return await ServerProcess.start(
            (stdio.command, *stdio.args),
            env=stdio.env or {},
            cwd=stdio.cwd,
            errors=errors,
            launcher=self.launcher,
            hold=self._hold,
        )

    async def is_enough(self) -> bool:
        """Whether the program has no access to what the rules deny now. Raises `ServerTrouble`."""
        transport = self._config.transport
        if self.launcher is None or not isinstance(transport, Stdio):
            return True
        try:
            wanted = await self.launcher.wanted_hold(transport.cwd)
        except CannotStart as error:
            raise ServerTrouble(f"The server `{self._config.name}` cannot be used: {error}.") from None
        return wanted is None or wanted.is_empty or (self._hold is not None and self._hold.covers(wanted))

    @property
    def keeps_from_paths(self) -> bool:
        """Whether it cannot reach files that rules deny, or will not before its next call."""
        match self._config.transport:
            case Stdio():
                return self.launcher is not None and self.launcher.can_hold()
            case Remote(url=url):
                return _is_elsewhere(url)
            case _:
                return False


def _is_elsewhere(url: str) -> bool:
    """Whether the server is certainly on another machine, judged by its URL.

    >>> _is_elsewhere("https://example.com/mcp"), _is_elsewhere("http://localhost:8000/mcp")
    (True, False)
    """
    try:
        host = (urlsplit(url).hostname or "").rstrip(".")
    except ValueError:
        return False
    own = os.uname().nodename.lower()
    return bool(host) and not is_local(host) and host not in (own, own.partition(".")[0])
