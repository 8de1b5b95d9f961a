"""Servers that stand outside of the settings files: given with the command line, or in the other program's own file."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final, cast

from ..mcp.config import ServerConfig
from ..settings.layers import Layered
from ..settings.levels import Level, SettingsPath
from ..settings.settings_files import SettingsKind
from ..settings.settings_loading import Loaded, load, load_text
from .settings_interpretation import SettingsError

FLAG: Final = "--mcp-config"
CLAUDE_FILE: Final = ".claude.json"
LARGEST: Final = 32 << 20
"""Bytes; the other program keeps much more than servers in its file."""


def load_configured_servers(
    layered: Layered, cwd: str, *, strict: bool = False
) -> tuple[tuple[ServerConfig, ...], tuple[str, ...]]:
    """The servers that settings name and that may be started, and warnings. Without any, nothing is loaded for them."""
    if not layered.servers:
        return (), ()
    from ..mcp.configured_servers import read_configured

    found = read_configured(layered, cwd=cwd, environment=os.environ, strict=strict)
    return found.servers, found.warnings


def load_given_servers(sources: Iterable[str]) -> Iterator[Loaded]:
    """Of files, or of JSON that begins with a brace. Raises `SettingsError` for what cannot be read at all."""
    for source in sources:
        if source.lstrip().startswith("{"):
            loaded = load_text(SettingsPath(Level.COMMAND_LINE, FLAG, SettingsKind.MCP), source)
        elif not os.path.exists(source):
            raise SettingsError(f"{FLAG}: {source} cannot be read: there is no such file.")
        else:
            loaded = load(SettingsPath(Level.COMMAND_LINE, source, SettingsKind.MCP))
        if loaded.value is None:
            for note in loaded.skipped:
                raise SettingsError(f"{FLAG}: {note.fault}")
        yield loaded


def claude_servers(home: str, cwd: str) -> Iterator[Loaded]:
    """Those that a person has in the other program's own file, for all folders and for this one. It is their file."""
    path = os.path.join(home, CLAUDE_FILE)
    try:
        if os.path.getsize(path) > LARGEST:
            return
        with open(path, "rb") as file:
            content: Any = json.load(file)
    except (OSError, ValueError, RecursionError):
        return  # whatever is wrong with it is for the program whose file it is
    own, projects = _member(content, "mcpServers"), _member(content, "projects")
    for servers in (own, _member(_member(projects, cwd), "mcpServers")):
        if servers:
            loaded = load_text(SettingsPath(Level.USER, path, SettingsKind.MCP), json.dumps({"mcpServers": servers}))
            notes = (replace(note, source=replace(note.source, line=None)) for note in loaded.skipped)
            yield replace(loaded, skipped=tuple(notes), _lines=None)


def _member(value: Any, key: str) -> Mapping[str, Any]:
    found = cast(Mapping[str, Any], value).get(key) if isinstance(value, Mapping) else None
    return cast(Mapping[str, Any], found) if isinstance(found, Mapping) else {}
