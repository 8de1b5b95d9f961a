"""Landlock rules that are made once for each set of grants, and used by one command after another.

Each set comes with a folder that it lets be written, in which every command
has a temporary folder of its own; two commands at once have two of them.
"""

from __future__ import annotations

import os
from contextlib import suppress

from . import landlock
from .read_grants import ReadGrants

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .protocol import Jail

MOST_KEPT = 16


class Ruleset:
    """Belongs to one command at a time."""

    __slots__ = ("descriptor", "folder", "grants", "key")

    def __init__(self, key: str, folder: str, jail: Jail, always: tuple[str, ...]) -> None:
        """`always` are the files without which no shell starts. Raises `OSError`."""
        self.key = key
        self.folder = folder
        self.grants = ReadGrants(jail["readable"] or (), jail["hidden"])
        rights = landlock.Rights(reading=jail["readable"] is not None, tcp=jail["network"], version=jail["landlock"])
        os.mkdir(folder, 0o700)
        self.descriptor = landlock.make_ruleset(
            rights, readable=(*self.grants.paths, *always), writable=(folder, *jail["writable"])
        )

    def close(self) -> None:
        os.close(self.descriptor)
        with suppress(OSError):  # goes with all the rest at the end
            os.rmdir(self.folder)


class Rulesets:
    """Those that nobody uses at the moment, the latest last."""

    def __init__(self, home: str) -> None:
        self._home = home
        self._made = 0
        self._free: list[Ruleset] = []

    def take(self, jail: Jail, always: tuple[str, ...]) -> Ruleset:
        """Raises `OSError`."""
        key = _key(jail, always)
        for ruleset in [one for one in self._free if one.key == key]:
            self._free.remove(ruleset)
            if ruleset.grants.is_current():
                return ruleset
            ruleset.close()
        self._made += 1
        return Ruleset(key, os.path.join(self._home, f"rules-{self._made}"), jail, always)

    def give_back(self, ruleset: Ruleset) -> None:
        """When nothing is in its folder any more, and no process of the command is left."""
        self._free.append(ruleset)
        if len(self._free) > MOST_KEPT:
            self._free.pop(0).close()


def _key(jail: Jail, always: tuple[str, ...]) -> str:
    parts = (jail["readable"], jail["hidden"], jail["writable"], jail["network"], jail["landlock"], always)
    return repr(parts)
