"""Starts the programs of MCP servers for a session: by its spawner, without access to paths that its rules deny."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from typing import TYPE_CHECKING

from ..mcp.launcher import CannotStart, ServerChild
from .live_rules import LiveRules
from .session_services import LateShell

if TYPE_CHECKING:
    from ..host.processes.program_hold import ProgramHold


class SessionLauncher:
    """Nothing is loaded or started before the first server is. Satisfies `mcp.launcher.Launcher`."""

    def __init__(self, shell: LateShell, rules: LiveRules) -> None:
        self._shell = shell
        self._rules = rules

    def can_hold(self) -> bool:
        needed = self._rules.denied_paths()
        return needed is None or (self._shell.is_tried and self._shell.confines(needed))

    async def wanted_hold(self, cwd: str | None, /) -> ProgramHold | None:
        needed = self._rules.denied_paths()
        if needed is None:
            return None
        if not self._shell.is_tried:
            await self._shell.try_it()
        if not self._shell.confines(needed):
            return None  # so the judge asks about its calls
        from ..host.processes.sandbox import CannotConfine

        try:
            return await self._shell.get().hold_for(self._placed(cwd), needed)
        except CannotConfine as error:
            raise CannotStart(f"paths that rules deny cannot be hidden from it: {str(error).rstrip('.')}") from None

    async def launch(
        self, argv: tuple[str, ...], *, env: Mapping[str, str], cwd: str | None, hold: ProgramHold | None
    ) -> ServerChild:
        from ..host.processes.command import CommandFailed
        from ..host.processes.piped_process import Program
        from ..host.processes.sandbox import CannotConfine

        folder = self._placed(cwd)
        program = Program(path=_found(argv[0], env, folder), argv=argv, cwd=folder, env=env)
        try:
            return await self._shell.get().start_program(program, hold)
        except (CommandFailed, CannotConfine, OSError) as error:
            raise CannotStart(f"{argv[0]} cannot be started: {str(error).rstrip('.')}") from None

    def _placed(self, cwd: str | None) -> str:
        """Like a child process: relative to Ferrule's own working directory."""
        return os.path.abspath(cwd) if cwd else os.getcwd()


def _found(name: str, env: Mapping[str, str], cwd: str) -> str:
    """Raises `CannotStart`."""
    if "/" in name:
        path = os.path.join(cwd, name)
        why = "No such file or directory" if not os.path.exists(path) else "Permission denied"
        found = path if os.access(path, os.X_OK) and os.path.isfile(path) else None
    else:
        found, why = shutil.which(name, path=env.get("PATH", os.defpath)), "No such file or directory"
    if found is None:
        raise CannotStart(f"{name} cannot be started: {why}")
    return os.path.join(cwd, found)
