"""The paths on disk that rules deny or that hold secrets, so that they can be hidden from a command."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterator
from functools import partial
from typing import Final, Protocol

from ..files.tree_index import TooManyEntries, TreeIndex, Wanted

__all__ = ["HiddenPaths", "NoSecrets", "SecretNames", "TooManyEntries", "plain_folder"]

_WILD: Final = re.compile(r"[*?\[\\]")
INSTALLED: Final = frozenset({".git", "node_modules", "site-packages", "dist-packages"})
"""Folders of other people's files, in which a name says nothing: certificates in them are public."""
MOST_INDEXES: Final = 32


class SecretNames(Protocol):
    """Which names are those of secrets."""

    def may_be(self, name: str, /) -> bool:
        """Whether a path that ends in the name may be secret. Quick: asked about every name in a tree."""
        ...

    def is_secret(self, path: str, /) -> bool: ...


class NoSecrets:
    """Where no name says anything; satisfies `SecretNames`."""

    def may_be(self, name: str, /) -> bool:
        return False

    def is_secret(self, path: str, /) -> bool:
        return False


class HiddenPaths:
    """Finds them again before each command. Keeps an index of every tree it has searched lately."""

    def __init__(self, secrets: SecretNames | None = None) -> None:
        self._secrets = secrets or NoSecrets()
        self._indexes: dict[tuple[str, ...], TreeIndex] = {}

    def matching(self, patterns: Collection[str], within: Collection[str] | None = None) -> tuple[str, ...]:
        """What exists of the paths that absolute gitignore patterns mean; a folder includes all that is in it.

        `within` are the only folders that are searched for patterns that reach beyond them. Raises `TooManyPaths`.
        """
        found: dict[str, None] = {}
        trees: dict[tuple[str, str], list[str]] = {}
        for pattern in patterns:
            folder, rest = plain_folder(pattern)
            if rest:
                for place in (folder,) if within is None else _folders_to_search(folder, within):
                    trees.setdefault((place, folder), []).append(rest)
            elif os.path.lexists(folder):
                found[folder] = None
        for (place, folder), rests in trees.items():
            wanted = tuple(sorted(set(rests)))
            index = self._index((place, folder, *wanted), partial(_matcher, wanted, os.path.relpath(place, folder)))
            found |= dict.fromkeys(index.find())
        return tuple(found)

    def secret(self, folders: Collection[str]) -> tuple[str, ...]:
        """The secrets below these folders. Raises `TooManyPaths`."""
        found: dict[str, None] = {}
        for folder in folders:
            index = self._index((folder,), partial(self._is_secret_below, folder), without=INSTALLED)
            found |= dict.fromkeys(index.find())
        return tuple(found)

    def _is_secret_below(self, folder: str) -> Wanted:
        may_be, is_secret, front = self._secrets.may_be, self._secrets.is_secret, folder.rstrip("/")
        return lambda name, path, is_folder: may_be(name) and is_secret(f"{front}/{path}")

    def _index(
        self, key: tuple[str, ...], make: Callable[[], Wanted], without: frozenset[str] = frozenset()
    ) -> TreeIndex:
        index = self._indexes.pop(key, None) or TreeIndex(key[0], make(), without=without)
        self._indexes[key] = index  # the last used is the last in line
        while len(self._indexes) > MOST_INDEXES:
            del self._indexes[next(iter(self._indexes))]
        return index


def plain_folder(pattern: str) -> tuple[str, str]:
    """The folder before the first wildcard, and the rest.

    >>> plain_folder("/srv/**/.env"), plain_folder("/srv/secrets/**"), plain_folder("/srv/key")
    (('/srv', '**/.env'), ('/srv/secrets', ''), ('/srv/key', ''))
    """
    segments = pattern.removesuffix("/**").split("/")
    folders = list(_before_wildcards(segments))
    return "/".join(folders) or "/", "/".join(segments[len(folders) :])


def _before_wildcards(segments: list[str]) -> Iterator[str]:
    for segment in segments:
        if _WILD.search(segment):
            return
        yield segment


def _folders_to_search(folder: str, within: Collection[str]) -> Iterator[str]:
    """The folder, if it lies in one of those; otherwise those of them that lie in it."""
    if any(_is_below(folder, place) for place in within):
        yield folder
    else:
        yield from (place for place in within if _is_below(place, folder))


def _is_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(f"{folder.rstrip('/')}/")


def _matcher(rests: tuple[str, ...], inside: str) -> Wanted:
    """For a tree that lies `inside` the folder of the patterns."""
    from pathspec import GitIgnoreSpec

    matches = GitIgnoreSpec.from_lines([f"/{rest}" for rest in rests]).match_file
    front = "" if inside == "." else f"{inside}/"
    return lambda name, path, is_folder: matches(f"{front}{path}/" if is_folder else front + path)
