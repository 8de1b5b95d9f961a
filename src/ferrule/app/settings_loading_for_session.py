"""The settings of a session from all that says something about it: files, and what a program or a person gave."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from ..core.values import named_value
from ..permissions.rules import Rule
from ..settings.definition_files import DefinitionFiles
from ..settings.levels import Level, surroundings
from ..settings.reload import EVERY_LEVEL, LiveSettings
from ..settings.settings_loading import Loaded
from .reading_door import ReadingDoor
from .server_loading import claude_servers, load_configured_servers, load_given_servers
from .session_settings import Settings
from .settings_interpretation import ReloadedPolicy, interpret_settings, open_layers, require_guards

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
    `look` may have a person agree to what the folder brings before it counts.
    `ways_on` is what to do where hooks of the folder could refuse something
    and nobody trusts them; without it the session goes on without them.
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
