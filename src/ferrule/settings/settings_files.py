"""Which files hold settings.

Recognized by name below any folder, and by identity for those of the home and the
workspace: a file under another name (a link, a hard link, the target of a
dotfiles link) is the same file. Names are compared without case everywhere,
because on some file systems `.Claude/Settings.json` is the same file; where it is
a different one, the only cost is that it must be valid as well.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Final

from ..host.files.local_paths import LocalPaths


class SettingsKind(StrEnum):
    """What a settings file holds; its value is the name of its schema."""

    SETTINGS = "settings"
    HOOKS = "hooks"
    PERMISSIONS = "permissions"
    MCP = "mcp"


HOOKS_NAME: Final = "hooks.json"
FOLDERS: Final = (".claude", ".ferrule")
NAMES: Final[Mapping[str, SettingsKind]] = {
    "settings.json": SettingsKind.SETTINGS,
    "settings.local.json": SettingsKind.SETTINGS,
    HOOKS_NAME: SettingsKind.HOOKS,
    "permissions.json": SettingsKind.PERMISSIONS,
}
PROJECT_SERVERS: Final = ".mcp.json"
MANAGED_FOLDERS: Final = (
    "/etc/claude-code",
    "/Library/Application Support/ClaudeCode",
    "/etc/ferrule",
    "/Library/Application Support/Ferrule",
)
"""Later ones take precedence: ours override theirs."""
MANAGED_NAMES: Final[Mapping[str, SettingsKind]] = {
    "managed-settings.json": SettingsKind.SETTINGS,
    "managed-mcp.json": SettingsKind.MCP,
}
MANAGED_PARTS: Final = "managed-settings.d"

_MANAGED: Final = frozenset(folder.casefold() for folder in MANAGED_FOLDERS)


def kind_of(
    path: str, *, home: str, workspace: str | None = None, config_folder: str | None = None
) -> SettingsKind | None:
    """`None` for a file that holds no settings.

    `path` is absolute and need not exist. `config_folder` replaces
    `~/.claude` if the user moved it (`$CLAUDE_CONFIG_DIR`).
    """
    real, links = LocalPaths().resolve(path)
    for name in (path, *links, real):
        if kind := _kind_by_name(name, config_folder):
            return kind
    return _kind_by_identity(path, home, workspace, config_folder)


def _kind_by_name(path: str, config_folder: str | None) -> SettingsKind | None:
    folder, _, name = path.casefold().rpartition("/")
    if name == PROJECT_SERVERS:
        return SettingsKind.MCP
    if name in NAMES and folder.rpartition("/")[2] in FOLDERS:
        return NAMES[name]
    if name in NAMES and config_folder is not None and folder == os.path.normpath(config_folder).casefold():
        return NAMES[name]
    if folder in _MANAGED:
        return MANAGED_NAMES.get(name)
    above, _, last = folder.rpartition("/")
    if last == MANAGED_PARTS and above in _MANAGED and name.endswith(".json") and not name.startswith("."):
        return SettingsKind.SETTINGS
    return None


def _kind_by_identity(path: str, home: str, workspace: str | None, config_folder: str | None) -> SettingsKind | None:
    identity = _identity(path)
    if identity is None:
        return None
    for known, kind in _list_known_files(home, workspace, config_folder):
        if _identity(known) == identity:
            return kind
    return None


def _list_known_files(
    home: str, workspace: str | None, config_folder: str | None
) -> Iterator[tuple[str, SettingsKind]]:
    roots = [home] if workspace is None else [home, workspace]
    folders = [os.path.join(root, folder) for root in roots for folder in FOLDERS]
    if config_folder is not None:
        folders.append(config_folder)
    for folder in folders:
        yield from ((os.path.join(folder, name), kind) for name, kind in NAMES.items())
    if workspace is not None:
        yield os.path.join(workspace, PROJECT_SERVERS), SettingsKind.MCP
    for folder in MANAGED_FOLDERS:
        yield from ((os.path.join(folder, name), kind) for name, kind in MANAGED_NAMES.items())


def _identity(path: str) -> tuple[int, int] | None:
    """Device and inode of the file that the path resolves to."""
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return None
    return found.st_dev, found.st_ino
