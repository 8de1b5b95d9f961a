"""Names and patterns of paths in several lists, looked up in one pass over a path.

A name matches at any depth, with all that is below it; `/` at the front means
the root, `~/` the home folder. `*` stays within one name, and letters match
without regard to case, for a file system may have none.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping, Sequence

from ..core.values import plain_value


@plain_value
class Listed:
    """A name that was found in a path: on which list, and from which part of the path on."""

    kind: str
    name: str
    at: int
    anchored: bool
    length: int


@plain_value
class _Entry:
    kind: str
    name: str
    segments: tuple[str, ...]
    fronts: tuple[tuple[str, ...], ...]
    """What must stand before it, in one of these forms; empty for any depth."""

    def matches(self, parts: Sequence[str], at: int) -> bool:
        if self.fronts and tuple(parts[:at]) not in self.fronts:
            return False
        if at + len(self.segments) > len(parts):
            return False
        return all(fnmatch.fnmatchcase(parts[at + step], segment) for step, segment in enumerate(self.segments))


class NameTable:
    """
    >>> table = NameTable({"a": [".git", "*.pem"], "b": ["/etc/passwd"]}, home=["/home/u"])
    >>> [found.name for found in table.find("/srv/.GIT/x.pem")], table.find("/srv/etc/passwd")
    (['.git', '*.pem'], [])
    """

    def __init__(self, lists: Mapping[str, Sequence[str]], *, home: Sequence[str]) -> None:
        self._by_name: dict[str, list[_Entry]] = {}
        self._by_beginning: dict[str, list[_Entry]] = {}
        self._by_ending: dict[str, list[_Entry]] = {}
        self._others: list[_Entry] = []
        for kind, names in lists.items():
            for name in names:
                self._add(_entry(kind, name, home))
        self._beginnings = tuple(self._by_beginning)
        self._endings = tuple(self._by_ending)

    def find(self, path: str) -> list[Listed]:
        """All that is listed of the path, from its front to its end."""
        found: list[Listed] = []
        parts = path.casefold().split("/")
        for at, part in enumerate(parts):
            if part in self._by_name:
                _take(self._by_name[part], parts, at, found)
            if part.endswith(self._endings):
                for ending, entries in self._by_ending.items():
                    if part.endswith(ending):
                        _take(entries, parts, at, found)
            if part.startswith(self._beginnings):
                for beginning, entries in self._by_beginning.items():
                    if part.startswith(beginning):
                        _take(entries, parts, at, found)
            if self._others:
                _take(self._others, parts, at, found)
        return found

    def _add(self, entry: _Entry) -> None:
        first = entry.segments[0]
        if not _is_wild(first):
            self._by_name.setdefault(first, []).append(entry)
        elif first.startswith("*") and len(first) > 1 and not _is_wild(first[1:]):
            self._by_ending.setdefault(first[1:], []).append(entry)
        elif first.endswith("*") and len(first) > 1 and not _is_wild(first[:-1]):
            self._by_beginning.setdefault(first[:-1], []).append(entry)
        else:
            self._others.append(entry)


def _entry(kind: str, name: str, home: Sequence[str]) -> _Entry:
    text, fronts = name.casefold(), ()
    if text.startswith("~/"):
        text, fronts = text[2:], tuple(tuple(folder.casefold().rstrip("/").split("/")) for folder in home)
    elif text.startswith("/"):
        text, fronts = text[1:], (("",),)
    return _Entry(kind, name, tuple(text.strip("/").split("/")), fronts)


def _take(entries: Sequence[_Entry], parts: Sequence[str], at: int, found: list[Listed]) -> None:
    found.extend(
        Listed(entry.kind, entry.name, at, bool(entry.fronts), len(entry.segments))
        for entry in entries
        if entry.matches(parts, at)
    )


def _is_wild(text: str) -> bool:
    return any(char in text for char in "*?[")
