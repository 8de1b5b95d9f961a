"""Where the settings of a session come from: files, options of a program or a person, and the other program's file."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, cast

from .levels import Level, SettingsPath, surroundings
from .reload import EVERY_LEVEL, Current, LiveSettings
from .settings_files import SettingsKind
from .settings_loading import Loaded, load, load_text
from .trust_items import printable, shorten
from .trust_store import TrustStore

LEVELS: Final[Mapping[str, Level]] = {"user": Level.USER, "project": Level.PROJECT, "local": Level.LOCAL}
"""The names by which levels can be chosen."""
FLAG: Final = "--mcp-config"
CLAUDE_FILE: Final = ".claude.json"
LARGEST: Final = 32 << 20
"""Bytes; the other program's file contains much more than servers."""
TRUST_VARIABLE: Final = "FERRULE_TRUST"
MOST_NAMED: Final = 3
LONGEST: Final = 80


class SettingsError(ValueError):
    """Settings that cannot be honoured. The message names the file and the key, and says what to do."""


def open_layers(
    cwd: str,
    state: Path,
    *,
    settings: str | None = None,
    flags: Mapping[str, Mapping[str, Any]] | None = None,
    levels: frozenset[Level] = EVERY_LEVEL,
    trusting: bool = False,
    mode: str = "default",
    project_hooks: bool = True,
    more: Iterable[Loaded] = (),
) -> LiveSettings:
    """The settings for a working directory. Raises `SettingsError`.

    `settings` is a file, or JSON that begins with a brace. `flags` are
    settings by the name of their flag. `more` are files
    that belong to a level besides its own ones. `mode` is the
    default; without `project_hooks` those of the folder are ignored.
    """
    given = [*more] if settings is None else [*more, _load_settings(settings)]
    for flag, content in (flags or {}).items():
        given.append(Loaded(SettingsPath(Level.COMMAND_LINE, flag, SettingsKind.SETTINGS), content))
    around = surroundings(cwd, os.environ)
    return LiveSettings(
        around,
        TrustStore(state),
        levels=levels,
        given=tuple(given),
        trusting=trusting,
        default_mode=mode,
        project_hooks=project_hooks,
    )


def require_guards(current: Current, ways_on: str) -> None:
    """Raises `SettingsError` if the folder's hooks could refuse what is about to run and are not trusted."""
    missing = current.missing_guards
    if not missing:
        return
    named = "; ".join(f"{shorten(item.words, LONGEST)} ({printable(item.file)})" for item in missing[:MOST_NAMED])
    more = f"; and {len(missing) - MOST_NAMED} more" if len(missing) > MOST_NAMED else ""
    raise SettingsError(
        f"this folder is not trusted, and it has hooks that could refuse what is to run: {named}{more}. "
        f"Nobody can be asked about them, so nothing was run. {ways_on}"
    )


def is_trusted_by(environ: Mapping[str, str]) -> bool:
    """Whether the environment trusts the folder for this run, as `--trust` does.

    >>> is_trusted_by({"FERRULE_TRUST": "1"}), is_trusted_by({"FERRULE_TRUST": "0"}), is_trusted_by({})
    (True, False, False)
    """
    return environ.get(TRUST_VARIABLE, "").strip().lower() in ("1", "true", "yes", "on")


def load_given_servers(sources: Iterable[str]) -> Iterator[Loaded]:
    """Of files, or of JSON that begins with a brace. Raises `SettingsError` for what cannot be read at all."""
    for source in sources:
        loaded = _load_given(source, FLAG, SettingsKind.MCP, f"{FLAG}: ")
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


def _load_settings(source: str) -> Loaded:
    loaded = _load_given(source, "--settings", SettingsKind.SETTINGS)
    for note in (note for note in loaded.skipped if not note.is_harmless):
        raise SettingsError(note.fault)
    return loaded


def _load_given(source: str, flag: str, kind: SettingsKind, prefix: str = "") -> Loaded:
    """A file, or JSON that begins with a brace."""
    if source.lstrip().startswith("{"):
        return load_text(SettingsPath(Level.COMMAND_LINE, flag, kind), source)
    if not os.path.exists(source):
        raise SettingsError(f"{prefix}{source} cannot be read: the file does not exist.")
    return load(SettingsPath(Level.COMMAND_LINE, source, kind))
