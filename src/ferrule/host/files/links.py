"""What a glob or a folder means on disk, as far as somebody must know it before a command runs. Bounded."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

MOST_ENTRIES: Final = 50_000
"""Entries that are looked at for one glob."""
MOST_FOUND: Final = 1_000

_SET: Final = re.compile(r"\[.*\]", re.DOTALL)
_WILD: Final = {"*": ".*", "?": "."}


class TooManyLinks(Exception):
    """More than is looked at."""


def through_links(folder: str, names: str) -> tuple[str, ...] | None:
    """Paths below the folder that the glob means and that lead through a link; `None` where there are too many.

    A `**` at the end means all that is below, of which the links themselves are given. Names that are not given with
    `./` before them may be options where they begin with a dash: then nobody knows what a command does, which is as
    good as too many.
    """
    try:
        return tuple(_Look().through_links(folder, parts_of(names), bare=not names.startswith("./")))
    except TooManyLinks:
        return None


def notable_entries(folder: str) -> tuple[str, ...] | None:
    """Relative paths of what is in the folder, and of what is hidden at any depth below it; `None` for too many."""
    try:
        return tuple(_Look().notable(folder))
    except TooManyLinks:
        return None


def parts_of(names: str) -> tuple[str, ...]:
    return tuple(part for part in names.split("/") if part not in ("", "."))


def part_matches(pattern: str, name: str) -> bool:
    """As a shell matches names: hidden ones only by a dot. A set is taken for any text, so that none hides a name.

    >>> part_matches("*.p?", "a.py"), part_matches("*", ".env"), part_matches(".e[mn]v", ".env")
    (True, False, True)
    """
    return _compile(pattern).fullmatch(name) is not None and (name[:1] != "." or pattern[:1] in (".", "["))


@lru_cache(maxsize=64)
def _compile(pattern: str) -> re.Pattern[str]:
    pieces = re.split(r"(\*|\?)", _SET.sub("*", pattern))
    return re.compile("".join(_WILD.get(piece) or re.escape(piece) for piece in pieces), re.DOTALL)


class _Look:
    """One look at the disk, and what is left of its bounds."""

    def __init__(self) -> None:
        self._entries = MOST_ENTRIES
        self._found = MOST_FOUND

    def through_links(self, folder: str, parts: tuple[str, ...], *, bare: bool) -> Iterator[str]:
        waiting = [(folder, parts, False)]
        while waiting:
            place, (first, *rest), linked = waiting.pop()
            if first == "**" and not rest:
                yield from self._links_below(place)
                continue
            for entry in self._list(place):
                if not part_matches(first, entry.name):
                    continue
                if bare and entry.name[0] == "-" and place is folder:
                    raise TooManyLinks
                is_linked = linked or entry.is_symlink()
                if not rest:
                    if is_linked:
                        yield self._take(entry.path)
                elif _is_folder(entry):
                    waiting.append((entry.path, tuple(rest), is_linked))

    def notable(self, folder: str) -> Iterator[str]:
        waiting = [(folder, "")]
        while waiting:
            place, above = waiting.pop()
            for entry in self._list(place):
                if not above or entry.name.startswith("."):
                    yield self._take(above + entry.name)
                if entry.is_dir(follow_symlinks=False):
                    waiting.append((entry.path, f"{above}{entry.name}/"))

    def _links_below(self, folder: str) -> Iterator[str]:
        waiting = [folder]
        while waiting:
            for entry in self._list(waiting.pop()):
                if entry.is_symlink():
                    yield self._take(entry.path)
                elif entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)

    def _list(self, folder: str) -> list[os.DirEntry[str]]:
        """What is missing, not a folder or not listable holds nothing for a command either."""
        listed: list[os.DirEntry[str]] = []
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    self._entries -= 1
                    if self._entries < 0:
                        raise TooManyLinks
                    listed.append(entry)
        except (FileNotFoundError, NotADirectoryError, PermissionError, ValueError):
            return []
        except OSError:  # no descriptor left, a path that is too long: nobody knows what is there
            raise TooManyLinks from None
        return listed

    def _take(self, path: str) -> str:
        self._found -= 1
        if self._found < 0:
            raise TooManyLinks
        return path


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link that leads round in a circle
        return False
