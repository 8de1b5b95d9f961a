"""Where settings come from: five levels, each with its files.

On one level, a `.ferrule` file takes precedence over a `.claude` file, and a
settings file over the files that contain only hooks or only permissions.
"""

from __future__ import annotations

import os
import pwd
from collections.abc import Iterator, Mapping
from enum import IntEnum
from typing import Final

from ..core.values import named_value, plain_value
from ..host.git.checkouts import Checkout, checkout_of
from .settings_files import FOLDERS, MANAGED_FOLDERS, MANAGED_NAMES, MANAGED_PARTS, NAMES, PROJECT_SERVERS, SettingsKind

LOCAL_NAME: Final = "settings.local.json"
CONFIG_VARIABLE: Final = "CLAUDE_CONFIG_DIR"

_NAMES: Final = tuple(sorted(name for name in NAMES if name != LOCAL_NAME))
"""hooks.json, permissions.json, settings.json: later ones take precedence."""
_MANAGED_NAMES: Final = tuple(sorted(MANAGED_NAMES))


class Level(IntEnum):
    """Ordered: a value of a higher level takes precedence."""

    USER = 1
    PROJECT = 2
    LOCAL = 3
    COMMAND_LINE = 4
    MANAGED = 5

    @property
    def in_folder(self) -> bool:
        """Whether its files are in the workspace, so that whoever can write there can write them."""
        return self in (Level.PROJECT, Level.LOCAL)


@plain_value
class Source:
    """Where a value comes from."""

    level: Level
    path: str
    """The file or the flag that contains it."""
    line: int | None = None

    def __str__(self) -> str:
        return self.path if self.line is None else f"{self.path}:{self.line}"


@plain_value
class SettingsPath:
    """A place for a settings file, existing or not."""

    level: Level
    path: str
    kind: SettingsKind


@named_value
class SettingsContext:
    """What decides which files apply."""

    cwd: str
    """The start folder; a later change of directory does not change the settings."""
    home: str
    config_folder: str
    """`~/.claude`, or where the user moved it."""
    checkout: Checkout | None
    managed_folders: tuple[str, ...] = MANAGED_FOLDERS

    @property
    def local_folder(self) -> str:
        """Of the main checkout, so that all worktrees share it, unless it is another user's or the home."""
        if self.checkout is None:
            return self.cwd
        main = self.checkout.main
        if os.path.realpath(main) == os.path.realpath(self.home) or not _is_own(main):
            return self.cwd
        return main


def surroundings(
    cwd: str, environment: Mapping[str, str], *, managed_folders: tuple[str, ...] = MANAGED_FOLDERS
) -> SettingsContext:
    """For a working directory. Home and a moved config folder apply only if their paths are absolute.

    A relative one would be a different folder in each workspace, and so be
    chosen by whoever made the workspace.
    """
    home = environment.get("HOME", "")
    if not os.path.isabs(home):
        home = pwd.getpwuid(os.geteuid()).pw_dir
    moved = environment.get(CONFIG_VARIABLE, "")
    return SettingsContext(
        cwd=cwd,
        home=home,
        config_folder=moved if os.path.isabs(moved) else os.path.join(home, FOLDERS[0]),
        checkout=checkout_of(cwd),
        managed_folders=managed_folders,
    )


def settings_paths(around: SettingsContext) -> tuple[SettingsPath, ...]:
    """Every place that is checked, lowest precedence first, and each file on one level only."""
    users = tuple(_user_paths(around))
    known = {os.path.realpath(place.path) for place in users}
    real = {folder: os.path.realpath(folder) for folder in {around.cwd, around.local_folder}}
    inside = (place for place in _folder_paths(around) if _real_path(place.path, real) not in known)
    return (*users, *inside, *_paths_of_managed(around))


def _real_path(path: str, real: Mapping[str, str]) -> str:
    """Like `os.path.realpath`, but from folders whose real path is known: for a deep one that takes milliseconds."""
    if path in real:
        return real[path]
    folder, name = os.path.split(path)
    if not name or os.path.islink(path):
        return os.path.realpath(path)
    return os.path.join(_real_path(folder, real), name)


def _user_paths(around: SettingsContext) -> Iterator[SettingsPath]:
    for folder in (around.config_folder, os.path.join(around.home, FOLDERS[1])):
        for name in _NAMES:
            yield SettingsPath(Level.USER, os.path.join(folder, name), NAMES[name])


def _folder_paths(around: SettingsContext) -> Iterator[SettingsPath]:
    """The project's own only in the start folder, never from the folders above."""
    yield SettingsPath(Level.PROJECT, os.path.join(around.cwd, PROJECT_SERVERS), SettingsKind.MCP)
    for folder in FOLDERS:
        for name in _NAMES:
            yield SettingsPath(Level.PROJECT, os.path.join(around.cwd, folder, name), NAMES[name])
    for folder in FOLDERS:
        path = os.path.join(around.local_folder, folder, LOCAL_NAME)
        yield SettingsPath(Level.LOCAL, path, SettingsKind.SETTINGS)


def _paths_of_managed(around: SettingsContext) -> Iterator[SettingsPath]:
    for folder in around.managed_folders:
        for name in _MANAGED_NAMES:
            yield SettingsPath(Level.MANAGED, os.path.join(folder, name), MANAGED_NAMES[name])
        for path in _parts_in(os.path.join(folder, MANAGED_PARTS)):
            yield SettingsPath(Level.MANAGED, path, SettingsKind.SETTINGS)


def _parts_in(folder: str) -> list[str]:
    """In alphabetical order. A folder that cannot be listed is returned itself, and then reported as unreadable."""
    try:
        names = sorted(os.listdir(folder))
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError:
        return [folder]
    return [os.path.join(folder, name) for name in names if name.endswith(".json") and not name.startswith(".")]


def _is_own(folder: str) -> bool:
    try:
        return os.stat(folder).st_uid == os.geteuid()
    except OSError:
        return False
