"""The settings of a session from all sources: files, and options of a program or a person."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final, cast

from ..core.values import named_value
from ..mcp.config import ServerConfig
from ..permissions.rules import Rule
from ..settings.definition_files import DefinitionFiles
from ..settings.layers import Layered
from ..settings.levels import Level, SettingsPath, surroundings
from ..settings.reload import EVERY_LEVEL, LiveSettings
from ..settings.settings_files import SettingsKind
from ..settings.settings_loading import Loaded, load, load_text
from .reading_door import ReadingDoor
from .session_settings import Settings
from .settings_interpretation import ReloadedPolicy, SettingsError, interpret_settings, open_layers, require_guards

FLAG: Final = "--mcp-config"
CLAUDE_FILE: Final = ".claude.json"
LARGEST: Final = 32 << 20
"""Bytes; the other program's file contains much more than servers."""


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
            raise SettingsError(f"{FLAG}: {source} cannot be read: the file does not exist.")
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


TRUST_VARIABLE: Final = "FERRULE_TRUST"


def is_trusted_by(environ: Mapping[str, str]) -> bool:
    """Whether the environment trusts the folder for this run, as `--trust` does.

    >>> is_trusted_by({"FERRULE_TRUST": "1"}), is_trusted_by({"FERRULE_TRUST": "0"}), is_trusted_by({})
    (True, False, False)
    """
    return environ.get(TRUST_VARIABLE, "").strip().lower() in ("1", "true", "yes", "on")


@named_value
class Gathered:
    settings: Settings
    given_rules: tuple[Rule, ...] = ()
    """Those that came with `flags` and not from a file."""
    warnings: tuple[str, ...] = ()
    """For a person: what was left out, and why."""


def load_session_settings(
    base: Settings,
    *,
    settings: str | None = None,
    flags: Mapping[str, Mapping[str, Any]] | None = None,
    levels: frozenset[Level] = EVERY_LEVEL,
    trusting: bool = False,
    server_sources: Iterable[str] = (),
    strict_servers: bool = False,
    more: Iterable[Loaded] = (),
    look: Callable[[LiveSettings], None] | None = None,
    project_hooks: bool = True,
    ways_on: str | None = None,
) -> Gathered:
    """`base` with what the settings of its directory say. Raises `SettingsError`.

    `settings` and `server_sources` are files or their JSON; `flags` are
    settings by the name of whatever gave them; `more` was read already.
    `look` may ask a person to trust the folder before its contents apply.
    `ways_on` is what to do where hooks of the folder could refuse something
    and are not trusted; without it the session continues without them.
    """
    own = claude_servers(os.path.expanduser("~"), base.cwd) if Level.USER in levels else ()
    live = open_layers(
        base.cwd,
        base.state_folder,
        settings=settings,
        flags=flags,
        levels=levels,
        trusting=trusting,
        mode=base.mode,
        project_hooks=project_hooks,
        more=(*own, *load_given_servers(server_sources), *more),
    )
    if look is not None:
        look(live)
    if ways_on is not None:
        require_guards(live.current(), ways_on)
    found = interpret_settings(live.current(), base.cwd)
    servers, notes = load_configured_servers(live.current().layered, base.cwd, strict=strict_servers)
    made = replace(
        base,
        added_directories=found.directories,
        rules=found.rules,
        mode=found.mode or base.mode,
        cleanup_days=found.cleanup_days or base.cleanup_days,
        result_limit=found.result_limit,
        result_keep=found.result_keep,
        results_folder=found.results_folder,
        servers=servers,
        hooks=found.hooks,
        environment=found.environment,
        model=found.model,
        pre_approval=replace(base.pre_approval, https=found.approves_https),
        **found.fields,
        reload=ReloadedPolicy(live, base.mode, base.cwd),
        pages=DefinitionFiles(
            surroundings(base.cwd, os.environ),
            lambda item: live.current().standing.counts(item),  # noqa: PLW0108 - of the moment it is asked
            levels=levels,
        ),
    )
    if made.pages is not None:
        made = replace(made, pages=made.pages.behind(ReadingDoor(made)))
    return Gathered(settings=made, given_rules=found.given_rules, warnings=(*found.warnings, *notes))
