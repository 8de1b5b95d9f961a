"""Variables that hooks set for later commands: a file that they add `export` lines to.

A shell reads the file once, when a hook that could write to it has ended. Values
that changed apply to all commands from then on.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

from ..core.values import named_value
from ..host.storage.session_folder import make_private
from .hook import Program
from .program_process import HookEnvironment, run_program

log = logging.getLogger(__name__)

VARIABLE: Final = "CLAUDE_ENV_FILE"
EVENTS: Final = frozenset({"SessionStart", "CwdChanged"})
"""Those whose hooks may leave variables."""
SECONDS: Final = 10.0
_SHELLS_OWN: Final = frozenset({"_", "SHLVL", "PWD", "OLDPWD", VARIABLE})
_READ: Final = f'set -a; . "${VARIABLE}" >/dev/null 2>&1; exec env -0'


@named_value
class EnvFile:
    path: Path
    """No tool may write here without asking: the content is run."""
    take: Callable[[Mapping[str, str]], None]
    """Given all changed variables."""

    def create(self) -> str:
        """The path of an existing file. Raises `OSError`."""
        make_private(self.path.parent)
        os.close(os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
        return str(self.path)

    async def read(self, around: HookEnvironment) -> None:
        """`around` is what the hook found, this file included."""
        try:
            if not self.path.stat().st_size:
                return
        except OSError:
            return
        reply = await run_program(Program("bash", ("-c", _READ)), b"", around, SECONDS)
        if reply.failure or reply.exit_code:
            log.warning("the variables in %s are not used: %s", self.path, reply.failure or "bash could not read it")
            return
        self.take({name: value for name, value in _pairs(reply.stdout) if around.env.get(name) != value})


def _pairs(listing: str) -> Iterator[tuple[str, str]]:
    """Without those that every shell sets for itself."""
    for line in listing.split("\0"):
        name, equals, value = line.partition("=")
        if equals and name not in _SHELLS_OWN and not name.startswith("BASH_FUNC_"):
            yield name, value
