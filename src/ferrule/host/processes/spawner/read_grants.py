"""Which paths to grant so that all of some folders may be read, but for what is hidden in them.

Landlock cannot take back a part of what it grants. Where something is hidden
below a folder, the folder is not granted itself, but everything in it that does
not lead there: the complement, level by level.
"""

from __future__ import annotations

import os
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    Seen = dict[str, tuple[int, int, int]]

MOST_ENTRIES = 100_000
"""In all folders together that have to be looked into."""
UNSETTLED = (-1, -1, -1)
"""Marks a folder that changed so recently that its time would not show another change."""
SETTLED = 20_000_000
"""Nanoseconds after which a folder that changes again has another time, whatever clock the file system uses."""


class ReadGrants:
    """Paths to grant, and what they were found in: true as long as `is_current`."""

    __slots__ = ("paths", "seen")

    def __init__(self, readable: Iterable[str], hidden: Iterable[str]) -> None:
        """Raises `OSError` where there is too much to look at."""
        self.paths: list[str] = []
        self.seen: Seen = {}
        self._look(readable, sorted({path.rstrip("/") or "/" for path in hidden}))

    def is_current(self) -> bool:
        """Whether each path still means the same, and each folder that was looked into is as it was."""
        return all(seen == _identity(path, with_time=bool(seen[2])) != UNSETTLED for path, seen in self.seen.items())

    def _look(self, readable: Iterable[str], hidden: list[str]) -> None:
        ahead = [path.rstrip("/") or "/" for path in readable]
        entries = 0
        for path in ahead:
            self.seen[path] = _identity(path, with_time=False)
        while ahead:
            path = ahead.pop()
            if any(_is_at_or_below(path, one) for one in hidden):
                continue
            if not any(_is_at_or_below(one, path) for one in hidden):
                self.paths.append(path)
                continue
            self.seen[path] = _identity(path, with_time=True)
            inside = _entries(path)
            entries += len(inside)
            if entries > MOST_ENTRIES:
                raise OSError(f"there is too much in {path} and folders like it to leave out what is hidden")
            ahead += inside


def _is_at_or_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith("/" if folder == "/" else folder + "/")


def _entries(folder: str) -> list[str]:
    """What is in a folder, but for links: what they lead to is granted by its own name."""
    try:
        with os.scandir(folder) as found:
            return [entry.path for entry in found if not entry.is_symlink()]
    except OSError:
        return []


def _identity(path: str, *, with_time: bool) -> tuple[int, int, int]:
    """Device, number and, where it is wanted, the time of the last change; zeros for what is not there."""
    try:
        found = os.lstat(path)
    except OSError:
        return (0, 0, 0)
    if not with_time:
        return (found.st_dev, found.st_ino, 0)
    if time.time_ns() - found.st_ctime_ns < SETTLED:
        return UNSETTLED
    return (found.st_dev, found.st_ino, found.st_ctime_ns)
