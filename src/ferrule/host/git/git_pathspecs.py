"""Patterns of rules as git's own pathspecs, seen from the top of a repository."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from typing import Final

_WILD: Final = re.compile(r"[*?\[\\]")


class WholeRepository(Exception):
    """All that the repository keeps is meant."""


def paths_inside(patterns: Iterable[str], root: str) -> tuple[str, ...]:
    """What absolute gitignore patterns mean below a folder, as patterns from there. Raises `WholeRepository`.

    >>> paths_inside(["/srv/repo/secret", "/srv/**/*.pem", "/home/u/x"], "/srv/repo")
    ('secret', '**/*.pem')
    """
    names = [name for name in root.split("/") if name]
    found: dict[str, None] = {}
    for pattern in patterns:
        for spelled in dict.fromkeys((pattern, *(unicodedata.normalize(form, pattern) for form in ("NFC", "NFD")))):
            segments = [name for name in spelled.removesuffix("/**").split("/") if name]
            for rest in _below(segments, names):
                if not rest or rest == ("**",):
                    raise WholeRepository(root)
                found["/".join(rest)] = None
    return tuple(found)


def literal_pattern(path: str) -> str:
    """The pattern that means this one path.

    >>> literal_pattern("/srv/[a]")
    '/srv/\\\\[a]'
    """
    return _WILD.sub(r"\\\g<0>", path)


def pathspecs(paths: Iterable[str], *, exclude: bool) -> Iterator[str]:
    """As git takes them, whatever the folder it runs in.

    >>> list(pathspecs(["secret", "**/*.pem"], exclude=True))[:2]
    [':(top,exclude,literal)secret', ':(top,exclude,glob)**/*.pem']
    """
    magic = "top,exclude" if exclude else "top"
    for path in paths:
        if _WILD.search(path) is None:
            yield f":({magic},literal){path}"
        else:
            yield f":({magic},glob){path}"
            yield f":({magic},glob){path}/**"


def _below(pattern: Sequence[str], names: Sequence[str]) -> Iterator[tuple[str, ...]]:
    if not names or not pattern:
        yield tuple(pattern)
        return
    first, rest = pattern[0], pattern[1:]
    if first == "**":
        yield from _below(pattern, names[1:])
        yield from _below(rest, names)
    elif fnmatchcase(names[0], first) if _WILD.search(first) else names[0] == first:
        yield from _below(rest, names[1:])
