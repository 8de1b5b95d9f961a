"""The paths on disk that a rule's pattern means, so that they can be covered."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator

MOST_LOOKED_AT = 200_000
"""Entries of folders; a search for what has to be hidden must end."""
_WILD = re.compile(r"[*?\[\\]")


class TooMany(Exception):
    """There is more below a folder than is looked at. The message names the folder."""


def on_disk(patterns: Iterable[str]) -> tuple[str, ...]:
    """What exists of the paths that absolute gitignore patterns mean; a folder stands for all that is in it.

    Raises `TooMany`.
    """
    return tuple(dict.fromkeys(path for pattern in patterns for path in _meant(pattern)))


def plain_folder(pattern: str) -> tuple[str, str]:
    """The folder before the first wildcard, and the rest.

    >>> plain_folder("/srv/**/.env"), plain_folder("/srv/secrets/**"), plain_folder("/srv/key")
    (('/srv', '**/.env'), ('/srv/secrets', ''), ('/srv/key', ''))
    """
    folders: list[str] = []
    segments = pattern.removesuffix("/**").split("/")
    for at, segment in enumerate(segments):
        if _WILD.search(segment):
            return "/".join(folders) or "/", "/".join(segments[at:])
        folders.append(segment)
    return "/".join(folders) or "/", ""


def _meant(pattern: str) -> Iterator[str]:
    folder, rest = plain_folder(pattern)
    if not rest:
        if os.path.lexists(folder):
            yield folder
        return
    from pathspec import GitIgnoreSpec  # noqa: PLC0415 - 40 ms, and few sessions hide anything by pattern

    matches = GitIgnoreSpec.from_lines([f"/{rest}"]).match_file
    left = MOST_LOOKED_AT
    for place, folders, files in os.walk(folder):
        left -= len(folders) + len(files)
        if left < 0:
            raise TooMany(f"There is more below {folder} than can be searched for what {pattern} hides.")
        inside = os.path.relpath(place, folder)
        front = "" if inside == "." else f"{inside}/"
        for name in files:
            if matches(front + name):
                yield os.path.join(place, name)
        for name in list(folders):
            if matches(f"{front}{name}/"):
                folders.remove(name)
                yield os.path.join(place, name)
