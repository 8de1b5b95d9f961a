"""The settings of all levels, as far as this version understands them.

What only allows and is broken or not understood is dropped with a warning.
What could forbid something is not dropped, because continuing without it would
allow what its author wanted to stop: if this version does not understand it,
that is an error; if a broken file lost it, every call has to be asked about.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ..agents.agent_kinds import AgentKind
from ..core.tool import Keep
from ..core.verdicts import Behavior
from ..hooks.hook import NO_HOOKS, HookBook
from ..host.storage.state_folder import state_folder
from ..mcp.config import ServerConfig
from ..permissions.deciding_files import deciding_files_in
from ..permissions.domains import PreApproval
from ..permissions.live_rules import MorePaths, PolicyLost
from ..permissions.modes import Mode
from ..permissions.rules import Origin, Rule, RuleError, parse_rule
from ..permissions.sandbox_policy import CannotEnforce, SandboxPolicy, allowed_reads, sandbox_of
from ..providers.model_choice import ModelChoice
from ..settings.definition_files import DefinitionFiles
from ..settings.layers import BEHAVIORS, DIRECTORIES, MODE, Layered, merge_entries
from ..settings.levels import Level, SettingsPath, Source, surroundings
from ..settings.reload import EVERY_LEVEL, Current, LiveSettings
from ..settings.settings_entries import NAMED_DOMAINS, entries_of
from ..settings.settings_files import SettingsKind
from ..settings.settings_loading import Skipped, load_text
from ..settings.settings_sources import (
    LONGEST,
    MOST_NAMED,
    SettingsError,
    claude_servers,
    load_given_servers,
    open_layers,
    require_guards,
)
from ..settings.trust_items import ItemKind, printable, shorten
from ..settings.trust_store import Standing
from .session_settings import SessionPolicy, Settings, reading_door

if TYPE_CHECKING:
    from ..settings.plugins import Plugin
    from ..settings.settings_loading import Loaded

log = logging.getLogger(__name__)

_KEEPS: Final[Mapping[str, Keep]] = {"keep_start": "head", "keep_end": "tail", "keep_both": "both"}
_USED: Final = frozenset(
    {
        "$schema",
        "permissions",
        "cleanupPeriodDays",
        "oversized_results",
        "readReminder",
        "readReminderOffFor",
        "features",
        "sandbox",
        "disableAllHooks",
        "allowManagedInputChangesOnly",
        "allowedHttpHookUrls",
        "httpHookAllowedEnvVars",
        "allowedMcpServers",
        "mcpServers",
        "env",
        "model",
        "models",
        "smallModel",
        "apiKey",
        "apiKeyHelper",
        "customApiUrl",
        "statusLine",
        "outputStyle",
        "enabledPlugins",
        "extraKnownMarketplaces",
    }
)
_PLAIN: Final[Mapping[str, str]] = {
    "readTokens": "read_tokens",
    "tellChangedFiles": "tell_changes",
    "conciseResults": "concise",
    "simpleMode": "simple",
    "shellSnapshot": "shell_snapshot",
}
"""Keys whose value is that of a field of a session's settings."""
_HTTPS: Final = (("permissions", "auto_approve_https"), ("permissions", "pre_approval", "auto_approve_https"))
_NOT_LOADED: Final = frozenset({ItemKind.AGENT, ItemKind.SKILL, ItemKind.COMMAND})


def load_session_settings(
    base: Settings,
    *,
    settings: str | None = None,
    flags: Mapping[str, Mapping[str, Any]] | None = None,
    levels: frozenset[Level] = EVERY_LEVEL,
    trusting: bool = False,
    server_sources: Iterable[str] = (),
    strict_servers: bool = False,
    plugin_folders: Iterable[str | os.PathLike[str]] = (),
    folders_without_servers: Iterable[str | os.PathLike[str]] = (),
    more: Iterable[Loaded] = (),
    look: Callable[[LiveSettings], None] | None = None,
    project_hooks: bool = True,
    ways_on: str | None = None,
) -> tuple[Settings, SessionPolicy]:
    """`base` with what the settings of its directory say, and that itself. Raises `SettingsError`.

    `settings` and `server_sources` are files or their JSON; `flags` are
    settings by the name of whatever gave them; `plugin_folders` and
    `folders_without_servers` are those of plugins besides the enabled ones;
    `more` was read already.
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
    plugins, plugin_notes = _add_plugins(live, base.cwd, tuple(plugin_folders), tuple(folders_without_servers))
    current = live.current()
    if ways_on is not None:
        require_guards(current, ways_on)
    reload = ReloadedPolicy(live, base.mode, base.cwd)
    found = reload.read()
    servers, notes = load_configured_servers(current, base.cwd, strict=strict_servers)

    def servers_of_agent(kind: AgentKind) -> tuple[ServerConfig, ...]:
        return load_servers_of_agent(kind, live.current(), base.cwd)

    made = replace(
        base,
        added_directories=found.directories,
        rules=found.rules,
        mode=found.mode,
        cleanup_days=found.cleanup_days or base.cleanup_days,
        result_limit=found.result_limit,
        result_keep=found.result_keep,
        results_folder=found.results_folder,
        servers=servers,
        hooks=found.hooks,
        environment=found.environment,
        model=found.model.keeping_facts_in(base.state_folder),
        output_style=found.output_style or base.output_style,
        plugins=plugins,
        pre_approval=_pre_approval(base.pre_approval, found),
        servers_of_agent=None if strict_servers else servers_of_agent,
        reload=reload,
        **found.fields,
    )
    pages = DefinitionFiles(
        surroundings(base.cwd, os.environ),
        lambda item: live.current().standing.counts(item),  # noqa: PLW0108 - of the moment it is asked
        levels=levels,
        at_one_moment=live.at_one_moment,
    ).join(shelf for plugin in plugins for shelf in plugin.shelves)
    made = replace(made, pages=pages.behind(reading_door(made)))
    return made, replace(found, warnings=(*found.warnings, *plugin_notes, *notes))


def _add_plugins(
    live: LiveSettings,
    cwd: str,
    folders: tuple[str | os.PathLike[str], ...],
    without_servers: tuple[str | os.PathLike[str], ...],
) -> tuple[tuple[Plugin, ...], tuple[str, ...]]:
    """What the settings enable and what was given, with their hooks and servers among the settings."""
    layered = live.current()
    if not (folders or without_servers) and not any(
        key[0] == "enabledPlugins" for key in (*layered.values, *layered.lists)
    ):
        return (), ()
    from ..settings.plugins import PluginError, load_all_plugins

    try:
        plugins, entries, warnings = load_all_plugins(layered, cwd, folders, without_servers)
    except PluginError as error:
        raise SettingsError(str(error)) from None
    live.add(entries)
    return plugins, warnings


def _pre_approval(base: PreApproval, found: SessionPolicy) -> PreApproval:
    """Domains that settings name stand for the built-in ones, which would allow more than is written."""
    allowed = () if found.names_domains else base.allowed
    return replace(base, allowed=allowed, https=found.approves_https)


def load_configured_servers(
    layered: Layered, cwd: str, *, strict: bool = False
) -> tuple[tuple[ServerConfig, ...], tuple[str, ...]]:
    """The servers that settings name and that may be started, and warnings. Without any, nothing is loaded for them."""
    if not layered.servers:
        return (), ()
    from ..mcp.configured_servers import read_configured

    found = read_configured(layered, cwd=cwd, environment=os.environ, strict=strict)
    return found.servers, found.warnings


def load_servers_of_agent(kind: AgentKind, layered: Layered, cwd: str) -> tuple[ServerConfig, ...]:
    """Those that its file defines, within the same limits as all others. What is wrong with one is logged."""
    only_managed = layered.value("allowManagedMcpServersOnly")
    if not kind.own_servers or (only_managed is not None and only_managed.value is True):
        return ()
    from ..mcp.configured_servers import read_configured

    text = json.dumps({"mcpServers": kind.own_servers})
    loaded = load_text(SettingsPath(Level.USER, kind.path, SettingsKind.MCP), text)
    others = {key: found for key, found in layered.values.items() if key[0] != "mcpServers"}
    own = merge_entries(entries_of(loaded), loaded.skipped)
    found = read_configured(
        Layered(values={**others, **own.values}, lists=layered.lists), cwd=cwd, environment=os.environ
    )
    for warning in (*map(str, own.skipped), *found.warnings):
        log.warning("%s", warning)
    return found.servers


def interpret_settings(layered: Current, workspace: str | None = None, mode: Mode = Mode.DEFAULT) -> SessionPolicy:
    """For a session in `workspace`, this folder if not given. Raises `SettingsError`.

    `mode` is the default if no setting chooses one.
    """
    workspace = workspace or os.getcwd()
    warnings = list(_warnings_about(layered.skipped))
    hooks = _hooks(layered, workspace, warnings)
    ignored: list[str] = []
    rules = tuple(_rules(layered, ignored))
    return SessionPolicy(
        rules=tuple(rule for rule, _ in rules),
        mode=_mode(layered, warnings) or (Mode.DEFAULT if mode in layered.disabled_modes else mode),
        disabled_modes=layered.disabled_modes,
        lost=_unreadable_guard(layered),
        sandbox=_sandbox(layered, workspace),
        readable=allowed_reads(layered, workspace),
        more_paths=_more_paths(layered),
        hooks=hooks,
        directories=tuple(item.value for item in layered.items(*DIRECTORIES)),
        cleanup_days=_value(layered, "cleanupPeriodDays"),
        result_limit=_value(layered, "oversized_results", "max_chars"),
        result_keep=_KEEPS.get(_value(layered, "oversized_results", "truncation_strategy")),
        results_folder=_folder(layered),
        environment={name: one.value for name, one in layered.environment.items()},
        model=ModelChoice.from_settings({key: one.value for key, one in layered.values.items()}),
        output_style=_value(layered, "outputStyle") or "",
        approves_https=_approves_https(layered),
        names_domains=any(_value(layered, *key) for key in NAMED_DOMAINS),
        fields=_fields(layered),
        given_rules=tuple(rule for rule, level in rules if level is Level.COMMAND_LINE),
        ignored_rules=tuple(ignored),
        warnings=(*warnings, *ignored, *_unused_keys(layered), *_describe_untrusted(layered.standing)),
    )


class ReloadedPolicy:
    """The current settings, interpreted again when a file has changed."""

    def __init__(self, live: LiveSettings, mode: Mode, workspace: str | None = None) -> None:
        """`mode` is the default if no setting chooses one."""
        self._live = live
        self._workspace = workspace
        self._mode = mode
        self._seen: Current | None = None
        self._policy: SessionPolicy | SettingsError | None = None

    def read(self) -> SessionPolicy:
        """Raises `SettingsError`."""
        current = self._live.current()
        if current is not self._seen or self._policy is None:
            self._seen = current
            try:
                self._policy = interpret_settings(current, self._workspace, self._mode)
            except SettingsError as error:
                self._policy = error
        if isinstance(self._policy, SettingsError):
            raise self._policy
        return self._policy

    def __call__(self) -> SessionPolicy:
        try:
            return self.read()
        except SettingsError as error:
            raise PolicyLost(f"the settings changed and cannot be honoured: {error}") from None


def _warnings_about(skipped: Iterable[Skipped]) -> Iterator[str]:
    """One line for all the unknown keys of a file that take nothing away, and one for everything else."""
    harmless = dict[str, list[Skipped]]()
    for note in skipped:
        if note.is_harmless:
            harmless.setdefault(note.source.path, []).append(note)
        else:
            yield str(note)
    for first, *others in harmless.values():
        more = f" The same applies to {len(others)} more unknown keys of this file." if others else ""
        yield f"{first}{more}"


def _unreadable_guard(layered: Layered) -> str | None:
    """Raises `SettingsError` for managed settings: nobody here may decide to continue without them."""
    lost = [note for note in layered.skipped if note.may_forbid]
    for note in lost:
        if note.source.level is Level.MANAGED:
            raise SettingsError(f"{note.fault} These are managed settings; their administrator has to correct this.")
    if not lost:
        return None
    return (
        f"{lost[0].fault} What is skipped there could forbid this. "
        "Correct it, or leave its level out with --setting-sources"
    )


def _more_paths(layered: Layered) -> MorePaths:
    def named(key: str) -> tuple[str, ...]:
        return tuple(item.value for item in layered.items("permissions", key))

    return MorePaths(
        protected=named("protectedPaths"),
        unprotected=named("unprotectedPaths"),
        secrets=named("secretPaths"),
        not_secrets=named("notSecretPaths"),
    )


def _sandbox(layered: Layered, workspace: str) -> SandboxPolicy | None:
    try:
        policy = sandbox_of(layered, workspace)
    except CannotEnforce as error:
        raise SettingsError(f"{error} Leave its level out with --setting-sources.") from None
    if policy is None:
        return None
    deciding = deciding_files_in(workspace, str(state_folder()), os.environ)
    return replace(policy, unwritable=(*policy.unwritable, *deciding))


def _hooks(layered: Layered, workspace: str, warnings: list[str]) -> HookBook:
    if not layered.hooks:
        return NO_HOOKS
    from ..hooks.hook_loading import HookError
    from ..hooks.hook_settings import hooks_of

    try:
        loaded = hooks_of(layered, workspace)
    except HookError as error:
        raise SettingsError(f"{error} Leave its level out with --setting-sources.") from None
    warnings += loaded.warnings
    return loaded.book


def _rules(layered: Layered, ignored: list[str]) -> Iterator[tuple[Rule, Level]]:
    for entry in layered.rules:
        behavior, level = BEHAVIORS[entry.key], entry.source.level
        try:
            yield parse_rule(entry.value, behavior, _origin(entry.source)), level
        except RuleError as error:
            if behavior is not Behavior.ALLOW or level is Level.COMMAND_LINE:
                raise SettingsError(str(error)) from None
            ignored.append(f"{error} It allows nothing.")


def _origin(source: Source) -> Origin:
    """With the folder that a path with one leading slash is relative to: the workspace, or the file's own."""
    own = source.level in (Level.USER, Level.MANAGED) or (source.level is Level.COMMAND_LINE and source.path[0] != "-")
    return Origin(source.path, source.line, base=os.path.dirname(os.path.abspath(source.path)) if own else None)


def _mode(layered: Layered, warnings: list[str]) -> Mode | None:
    chosen, mode = layered.values.get(MODE), layered.mode
    if chosen and mode is None:
        warnings.append(f"{chosen.source}: the mode `{chosen.value}` is switched off by a settings file.")
    return Mode(mode.value) if mode else None


def _folder(layered: Layered) -> Path | None:
    """A relative one is taken from the home, so that it is the same for every project."""
    text = _value(layered, "oversized_results", "persist_dir")
    return None if text is None else Path.home() / Path(text).expanduser()


def _approves_https(layered: Layered) -> bool:
    """The switch exists in two places. If both are used, both must agree."""
    said = [found.value for key in _HTTPS if (found := layered.value(*key))]
    return bool(said) and all(said)


def _fields(layered: Layered) -> dict[str, Any]:
    found: dict[str, Any] = {name: value for key, name in _PLAIN.items() if (value := _value(layered, key)) is not None}
    if (reminder := _value(layered, "readReminder")) is not None:
        found["reminder"] = reminder or None
    for key, name, kind in (("readReminderOffFor", "reminder_off_for", tuple), ("features", "features", frozenset)):
        if items := layered.items(key):
            found[name] = kind(item.value for item in items)
    return found


def _value(layered: Layered, *key: str) -> Any:
    found = layered.value(*key)
    return found.value if found else None


def _unused_keys(layered: Layered) -> Iterator[str]:
    """For what was given for this run only. Other files may contain what other programs use."""
    for key, value in layered.values.items():
        if value.source.level is Level.COMMAND_LINE and key[0] not in _USED and key[0] not in _PLAIN:
            yield f"{value.source}: `{'.'.join(key)}` is not used by this version."


def _describe_untrusted(standing: Standing) -> Iterator[str]:
    if standing.gone:
        yield (
            f"{printable(standing.gone[0].file)} has lost a {standing.gone[0].kind} since this folder was trusted, "
            "so nothing that the folder allows or runs applies. See `ferrule trust --show`."
        )
    elif new := [item for item in standing.new if item.kind not in _NOT_LOADED]:
        named = ", ".join(f"{item.kind} `{shorten(item.words, LONGEST)}`" for item in new[:MOST_NAMED])
        more = f" and {len(new) - MOST_NAMED} more" if len(new) > MOST_NAMED else ""
        yield (
            f"not trusted, and so ignored: {named}{more}. "
            "See `ferrule trust --show`; `ferrule trust` trusts it permanently, --trust or FERRULE_TRUST=1 for one run."
        )
