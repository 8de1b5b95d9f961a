"""What is found below a folder by name, known again for the price of a look at each folder's time.

A folder that was not changed holds the same names. So the tree is read once,
and before each command only folders whose time or identity differs are read
again. A folder that changed a moment ago is not believed: another name could
come into it within the same tick of the clock.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Final, TypeAlias

from ...core.values import plain_value

MOST_LOOKED_AT: Final = 200_000
"""Entries of folders; a search for what has to be hidden must end."""
SETTLED_AFTER: Final = 100_000_000
"""Nanoseconds after which a folder's time tells of every change; clocks of file systems tick in up to ten."""

Wanted: TypeAlias = Callable[[str, str, bool], bool]
"""Whether an entry is looked for: its name, its path from the root of the tree, whether it is a folder."""


class TooManyEntries(Exception):
    """There is more below a folder than is looked at. The message names the folder."""


@plain_value
class _Listing:
    identity: tuple[int, int, int]
    """Device, number and time of change of the folder."""
    folders: tuple[str, ...]
    found: tuple[str, ...]
    size: int
    settled: bool


class TreeIndex:
    """The entries below one folder that are wanted. What is below one of them is not looked at, nor behind links."""

    def __init__(self, root: str, wanted: Wanted, *, without: frozenset[str] = frozenset()) -> None:
        """`without` are names of folders that are not looked into."""
        self._root = root
        self._wanted = wanted
        self._without = without
        self._listings: dict[str, _Listing] = {}
        self._found: tuple[str, ...] = ()
        self._settled = False
        """Whether every folder's time tells of any change since it was read."""

    def find(self) -> tuple[str, ...]:
        """Absolute paths. Raises `TooManyEntries`."""
        if not (self._settled and self._is_same()):
            self._found = self._search()
            self._settled = all(listing.settled for listing in self._listings.values())
        return self._found

    def _is_same(self) -> bool:
        try:
            for folder, listing in self._listings.items():
                status = os.stat(folder)
                if (status.st_dev, status.st_ino, status.st_ctime_ns) != listing.identity:
                    return False
        except OSError:
            return False
        return True

    def _search(self) -> tuple[str, ...]:
        known, listings = self._listings, dict[str, _Listing]()
        found: list[str] = []
        waiting = [self._root]
        left = MOST_LOOKED_AT
        now = time.time_ns()
        while waiting:
            folder = waiting.pop()
            try:
                status = os.stat(folder, follow_symlinks=folder == self._root)
                identity = status.st_dev, status.st_ino, status.st_ctime_ns
                listing = known.get(folder)
                if listing is None or listing.identity != identity or not listing.settled:
                    listing = self._list(folder, identity, now)
            except OSError:
                continue  # gone, or nothing that this user can read
            left -= listing.size
            if left < 0:
                raise TooManyEntries(f"There is more below {self._root} than can be searched for what is to be hidden.")
            listings[folder] = listing
            found += listing.found
            waiting += listing.folders
        self._listings = listings
        return tuple(found)

    def _list(self, folder: str, identity: tuple[int, int, int], now: int) -> _Listing:
        inside = folder[len(self._root.rstrip("/")) + 1 :]
        front = f"{inside}/" if inside else ""
        folders: list[str] = []
        found: list[str] = []
        size = 0
        with os.scandir(folder) as entries:
            for entry in entries:
                size += 1
                if size > MOST_LOOKED_AT:
                    break
                is_folder = entry.is_dir(follow_symlinks=False)
                if self._wanted(entry.name, front + entry.name, is_folder):
                    found.append(entry.path)
                elif is_folder and entry.name not in self._without:
                    folders.append(entry.path)
        return _Listing(identity, tuple(folders), tuple(found), size, now - identity[2] > SETTLED_AFTER)
