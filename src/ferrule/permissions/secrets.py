"""Secrets that a search skips: files that nobody was asked about, found quickly among many."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .name_table import is_wild
from .protected import Concern, PathGuard

MOST_FOLDERS = 10_000
"""Folders that are remembered."""


class SecretFiles:
    """Satisfies `host.search.Secrets`."""

    def __init__(self, guard: PathGuard, names: Sequence[str], is_settled: Callable[[Concern], bool]) -> None:
        """`names` are those of the list; `is_settled` tells whether a rule allows the subject of a concern by name."""
        self._guard = guard
        self._is_settled = is_settled
        last = [name.rpartition("/")[2].casefold() for name in names]
        self._names = frozenset(name for name in last if not is_wild(name))
        self._endings = tuple(name[1:] for name in last if name.startswith("*") and not is_wild(name[1:]))
        self._beginnings = tuple(name[:-1] for name in last if name.endswith("*") and not is_wild(name[:-1]))
        self._others = any(is_wild(name.removeprefix("*").removesuffix("*")) for name in last)
        self._folders: dict[str, bool] = {}

    def hides(self, path: str, /) -> bool:
        folder, _, name = path.rpartition("/")
        if not (self._others or self._may_be_one(name.casefold()) or self._is_listed(folder)):
            return False
        concern = self._guard.secret_in(path)
        return concern is not None and not self._is_settled(concern)

    def is_named_by(self, path: str, glob: str, /) -> bool:
        names = "" if glob.startswith("!") else glob.strip("/")
        return self._guard.secret_in(path) is not None or self._guard.secret_meant(path, names) is not None

    def _may_be_one(self, name: str) -> bool:
        return name in self._names or name.endswith(self._endings) or name.startswith(self._beginnings)

    def _is_listed(self, folder: str) -> bool:
        known = self._folders.get(folder)
        if known is None:
            if len(self._folders) >= MOST_FOLDERS:
                self._folders.clear()
            known = self._folders[folder] = self._guard.secret_in(folder) is not None
        return known
