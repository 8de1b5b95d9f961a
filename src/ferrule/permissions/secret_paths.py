"""Which paths contain secrets, judging by their names, for code that searches a tree."""

from __future__ import annotations

from fnmatch import fnmatchcase
from functools import lru_cache

from ..core.effects import Effects
from .path_patterns import Places
from .protected import DEFAULT_LISTS, PathGuard, PathLists


class SecretPaths:
    """By the same lists and in the same way as the judge asks about reading. Satisfies `covering.SecretNames`."""

    def __init__(self, places: Places, lists: PathLists = DEFAULT_LISTS) -> None:
        self._guard = PathGuard(places, lists)
        names = {name.casefold().rpartition("/")[2] for name in lists.secrets}
        self._plain = frozenset(name for name in names if not any(sign in name for sign in "*?["))
        self._patterns = tuple(names - self._plain)
        self.may_be = lru_cache(maxsize=65_536)(self._may_be)

    def _may_be(self, name: str) -> bool:
        name = name.casefold()
        return name in self._plain or any(fnmatchcase(name, pattern) for pattern in self._patterns)

    def is_secret(self, path: str, /) -> bool:
        return any(concern.secret is not None for concern in self._guard.concerns(Effects.reading(path)))
