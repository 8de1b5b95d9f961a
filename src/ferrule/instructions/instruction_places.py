"""Where instructions are found, in the order in which the model gets them: what is nearer to the work comes later."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import islice
from typing import Final

from ..core.values import plain_value
from ..settings.levels import Level, SettingsContext

NAME: Final = "CLAUDE.md"
LOCAL_NAME: Final = "CLAUDE.local.md"
AGENTS_NAME: Final = "AGENTS.md"
FOLDER: Final = ".claude"
RULES: Final = "rules"
MOST_RULES: Final = 200
"""Rule files of one folder."""
MOST_FOLDERS: Final = 2000
"""Folders that are looked through for them: `rules` may be a link to all there is."""


@plain_value
class InstructionFile:
    """A file that is there, or seems to be."""

    path: str
    level: Level
    base: str
    """The folder that its rules and imports are about."""
    is_rule: bool = False


def starting_places(around: SettingsContext, levels: frozenset[Level]) -> Iterator[InstructionFile]:
    """Of an administrator, of the user, then of each folder from the root down to the working directory."""
    for folder in around.managed_folders:
        yield from _present(os.path.join(folder, NAME), Level.MANAGED, folder)
    if Level.USER in levels:
        yield from _present(os.path.join(around.config_folder, NAME), Level.USER, around.config_folder)
        yield from _rules(os.path.join(around.config_folder, RULES), Level.USER, around.cwd)
    for folder in folders_down_to(around.cwd):
        if os.path.join(folder, FOLDER) != around.config_folder:
            yield from places_in(folder, levels)
        else:  # the home itself: its `.claude` is the user's own, and was included already
            yield from _project_files(folder, levels, own_folder=False)


def places_in(folder: str, levels: frozenset[Level]) -> Iterator[InstructionFile]:
    """The instruction files in a folder of a project."""
    yield from _project_files(folder, levels, own_folder=True)
    if Level.PROJECT in levels:
        yield from _rules(os.path.join(folder, FOLDER, RULES), Level.PROJECT, folder)


def folders_down_to(folder: str) -> list[str]:
    """
    >>> folders_down_to("/a/b")
    ['/', '/a', '/a/b']
    """
    folders = [folder]
    while (above := os.path.dirname(folder)) != folder:
        folders.append(above)
        folder = above
    return folders[::-1]


def _project_files(folder: str, levels: frozenset[Level], *, own_folder: bool) -> Iterator[InstructionFile]:
    if Level.PROJECT in levels:
        names = (NAME, os.path.join(FOLDER, NAME)) if own_folder else (NAME,)
        found = [place for name in names for place in _present(os.path.join(folder, name), Level.PROJECT, folder)]
        yield from found or _present(os.path.join(folder, AGENTS_NAME), Level.PROJECT, folder)
    if Level.LOCAL in levels:
        yield from _present(os.path.join(folder, LOCAL_NAME), Level.LOCAL, folder)


def _present(path: str, level: Level, base: str) -> Iterator[InstructionFile]:
    """A broken link is treated as present, so that it is reported."""
    if os.path.lexists(path):
        yield InstructionFile(path, level, base)


def _rules(folder: str, level: Level, base: str) -> Iterator[InstructionFile]:
    found: list[str] = []
    for above, folders, names in islice(os.walk(folder), MOST_FOLDERS):
        folders.sort()
        found += (os.path.join(above, name) for name in sorted(names) if name.endswith(".md"))
        if len(found) > MOST_RULES:
            break
    yield from (InstructionFile(path, level, base, is_rule=True) for path in found[:MOST_RULES])
