"""Names and patterns of paths in several lists, looked up in one pass over a path.

A name matches at any depth, with all that is below it; `/` at the front means
the root, `~/` the home folder. `*` stays within one name, and case is ignored,
because a file system may ignore it.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final

from ..core.values import plain_value

_SET: Final = re.compile(r"\[.*\]")
_BRACES: Final = re.compile(r"\{([^{}]*)\}")
_MOST_FORMS: Final = 64


@plain_value
class ListedName:
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
    """What must precede it, in one of these forms; empty for any depth."""

    def matches(self, parts: Sequence[str], at: int) -> bool:
        if self.fronts and tuple(parts[:at]) not in self.fronts:
            return False
        if at + len(self.segments) > len(parts):
            return False
        return all(fnmatch.fnmatchcase(parts[at + step], segment) for step, segment in enumerate(self.segments))

    def is_meant(self, parts: Sequence[str], at: int) -> bool:
        """Like `matches`, for parts that may be globs."""
        if self.fronts and tuple(parts[:at]) not in self.fronts:
            return False
        if at + len(self.segments) > len(parts):
            return False
        return all(means(parts[at + step], segment) for step, segment in enumerate(self.segments))


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
        self._entries: list[_Entry] = []
        for kind, names in lists.items():
            for name in names:
                self._add(_entry(kind, name, home))
        self._beginnings = tuple(self._by_beginning)
        self._endings = tuple(self._by_ending)
        self._meant = lru_cache(maxsize=1024)(self._find_by_glob)

    def find_meant(self, folder: str, names: str) -> tuple[ListedName, ...]:
        """All listed names that a glob below the folder targets: `.e*` targets `.env`, and `*` targets nothing."""
        return self._meant(folder.rstrip("/").casefold(), names.casefold())

    def _find_by_glob(self, folder: str, names: str) -> tuple[ListedName, ...]:
        above = folder.split("/")
        found: dict[ListedName, None] = {}
        for spelled in brace_forms(names):
            parts = [*above, *(part for part in spelled.split("/") if part not in ("", "."))]
            for entry in self._entries:
                first = max(0, len(above) - len(entry.segments) + 1)
                depths = range(first, len(parts)) if not entry.fronts else (len(front) for front in entry.fronts)
                for at in depths:
                    if at >= first and entry.is_meant(parts, at):
                        found[ListedName(entry.kind, entry.name, at, bool(entry.fronts), len(entry.segments))] = None
        return tuple(found)

    def find(self, path: str) -> list[ListedName]:
        """All listed names in the path, from its start to its end."""
        found: list[ListedName] = []
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
        self._entries.append(entry)
        first = entry.segments[0]
        if not is_wild(first):
            self._by_name.setdefault(first, []).append(entry)
        elif first.startswith("*") and len(first) > 1 and not is_wild(first[1:]):
            self._by_ending.setdefault(first[1:], []).append(entry)
        elif first.endswith("*") and len(first) > 1 and not is_wild(first[:-1]):
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


def _take(entries: Sequence[_Entry], parts: Sequence[str], at: int, found: list[ListedName]) -> None:
    found.extend(
        ListedName(entry.kind, entry.name, at, bool(entry.fronts), len(entry.segments))
        for entry in entries
        if entry.matches(parts, at)
    )


def is_wild(text: str) -> bool:
    return any(char in text for char in "*?[")


def means(glob: str, listed: str) -> bool:
    """Whether a glob for names targets a listed one, and does not merely include it.

    It does if it spells half of the name, or the beginning of it, or the ending that is listed.

    >>> means(".e*", ".env"), means("*", ".env"), means("*.pem", "*.pem"), means("*.json", "credentials.*")
    (True, False, True, False)
    """
    if not is_wild(glob):
        return fnmatch.fnmatchcase(glob, listed) if is_wild(listed) else glob == listed
    plain, beginning, ending, begins, spelled = _take_apart(glob)
    if not is_wild(listed):
        return (begins or 2 * spelled >= len(listed)) and fnmatch.fnmatchcase(listed, plain)
    if listed.startswith("*"):
        return ending.endswith(listed[1:])
    known = listed.rstrip("*?")
    return begins and (known.startswith(beginning) or beginning.startswith(known))


@lru_cache(maxsize=256)
def _take_apart(glob: str) -> tuple[str, str, str, bool, int]:
    """Without sets; how it begins and ends; whether the beginning is specific; how many characters it spells."""
    plain = _SET.sub("*", glob)
    pieces = re.split(r"[*?]", plain)
    begins = len(pieces[0]) >= (2 if pieces[0].startswith(".") else 3)
    return plain, pieces[0], pieces[-1], begins, sum(map(len, pieces))


def brace_forms(glob: str) -> list[str]:
    """The globs that one with braces expands to; nested braces, or too many of them, match any text.

    >>> brace_forms("*.{pem,key}")
    ['*.pem', '*.key']
    """
    forms = [glob]
    while len(forms) <= _MOST_FORMS and (found := _BRACES.search(forms[0])):
        head, tail = forms[0][: found.start()], forms[0][found.end() :]
        forms = [*forms[1:], *(f"{head}{choice}{tail}" for choice in found[1].split(","))]
        forms.sort(key=lambda form: _BRACES.search(form) is None)
    return [re.sub(r"\{.*\}", "*", form) for form in forms]
