"""The settings of all levels, as far as this version understands them.

What only allows and is broken or not understood is dropped with a warning.
What could forbid something is not dropped, because continuing without it would
allow what its author wanted to stop: if this version does not understand it,
that is an error; if a broken file lost it, every call has to be asked about.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import Any, Final

from ..core.tool import Keep
from ..core.values import named_value
from ..core.verdicts import Behavior
from ..hooks.hook import NO_HOOKS, HookBook
from ..host.storage.state_folder import state_folder
from ..permissions.deciding_files import deciding_files_in
from ..permissions.modes import Mode
from ..permissions.rules import Origin, Rule, RuleError, parse_rule
from ..permissions.sandbox_policy import CannotEnforce, SandboxPolicy, allowed_reads, sandbox_of
from ..providers.model_choice import ModelChoice
from ..settings.layers import DIRECTORIES, MODE, Layered
from ..settings.levels import Level, SettingsPath, Source, surroundings
from ..settings.reload import EVERY_LEVEL, Current, LiveSettings
from ..settings.settings_files import SettingsKind
from ..settings.settings_loading import Loaded, Skipped, load, load_text
from ..settings.trust_items import ItemKind, printable, shorten
from ..settings.trust_store import Standing, TrustStore
from .live_rules import NO_MORE_PATHS, MorePaths, Policy, PolicyLost

LEVELS: Final[Mapping[str, Level]] = {"user": Level.USER, "project": Level.PROJECT, "local": Level.LOCAL}
"""The names by which levels can be chosen."""

_KEEPS: Final[Mapping[str, Keep]] = {"keep_start": "head", "keep_end": "tail", "keep_both": "both"}
_USED: Final = frozenset(
    {
        "$schema",
        "permissions",
        "cleanupPeriodDays",
        "oversized_results",
        "readTokens",
        "readReminder",
        "readReminderOffFor",
        "tellChangedFiles",
        "simpleMode",
        "features",
        "shellSnapshot",
        "sandbox",
        "disableAllHooks",
        "allowManagedInputChangesOnly",
        "allowedHttpHookUrls",
        "httpHookAllowedEnvVars",
        "allowedMcpServers",
        "mcpServers",
        "env",
        "model",
        "smallModel",
        "apiKey",
        "customApiUrl",
    }
)
_PLAIN: Final[Mapping[str, str]] = {
    "readTokens": "read_tokens",
    "tellChangedFiles": "tell_changes",
    "simpleMode": "simple",
    "shellSnapshot": "shell_snapshot",
}
"""Keys whose value is that of a field of a session's settings."""
_HTTPS: Final = (("permissions", "auto_approve_https"), ("permissions", "pre_approval", "auto_approve_https"))
_NOT_LOADED: Final = frozenset({ItemKind.AGENT, ItemKind.SKILL, ItemKind.COMMAND})
_MOST_NAMED: Final = 3
_LONGEST: Final = 80


class SettingsError(ValueError):
    """Settings that cannot be honoured. The message names the file and the key, and says what to do."""


@named_value
class Understood:
    rules: tuple[Rule, ...] = ()
    mode: Mode | None = None
    directories: tuple[str, ...] = ()
    cleanup_days: int | None = None
    result_limit: int | None = None
    result_keep: Keep | None = None
    results_folder: Path | None = None
    given_rules: tuple[Rule, ...] = ()
    """Those of the rules that came with the command line."""
    lost: str | None = None
    """What could have forbidden something and was lost, so that nothing is allowed without a question."""
    hooks: HookBook = NO_HOOKS
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    model: ModelChoice = field(default_factory=ModelChoice)
    approves_https: bool = False
    """Whether any page may be fetched over https without a question."""
    sandbox: SandboxPolicy | None = None
    readable: tuple[str, ...] = ()
    """What settings let every command read, sandbox or not."""
    more_paths: MorePaths = NO_MORE_PATHS
    fields: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Further fields of a session's settings, by name."""
    warnings: tuple[str, ...] = ()

    def policy(self, mode: Mode) -> Policy:
        """`mode` is the default if no setting chooses one."""
        return Policy(
            self.rules, self.mode or mode, self.lost, self.hooks, self.sandbox, self.readable, self.more_paths
        )


def open_layers(
    cwd: str,
    state: Path,
    *,
    settings: str | None = None,
    flags: Mapping[str, Mapping[str, Any]] | None = None,
    levels: frozenset[Level] = EVERY_LEVEL,
    trusting: bool = False,
    mode: Mode = Mode.DEFAULT,
    project_hooks: bool = True,
    more: Iterable[Loaded] = (),
) -> LiveSettings:
    """The settings for a working directory. Raises `SettingsError`.

    `settings` is a file, or JSON that begins with a brace. `flags` are
    settings by the name of their flag. `more` are files
    that belong to a level besides its own ones. `mode` is the
    default; without `project_hooks` those of the folder are ignored.
    """
    given = [*more] if settings is None else [*more, _load_given(settings)]
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


def interpret_settings(current: Current, workspace: str | None = None) -> Understood:
    """For a session in `workspace`, this folder if not given. Raises `SettingsError`."""
    layered = current.layered
    workspace = workspace or os.getcwd()
    warnings = list(_warnings_about(layered.skipped))
    hooks = _hooks(layered, workspace, warnings)
    rules = tuple(_rules(layered, warnings))
    return Understood(
        rules=rules,
        mode=_mode(layered, warnings),
        directories=tuple(item.value for item in layered.items(*DIRECTORIES)),
        cleanup_days=_value(layered, "cleanupPeriodDays"),
        result_limit=_value(layered, "oversized_results", "max_chars"),
        result_keep=_KEEPS.get(_value(layered, "oversized_results", "truncation_strategy")),
        results_folder=_folder(layered),
        given_rules=tuple(rule for rule in rules if str(rule.origin) in _origins_of_given(layered)),
        lost=_unreadable_guard(layered),
        hooks=hooks,
        environment={name: one.value for name, one in layered.environment.items()},
        model=_model(layered),
        approves_https=_approves_https(layered),
        sandbox=_sandbox(layered, workspace),
        readable=allowed_reads(layered, workspace),
        more_paths=_more_paths(layered),
        fields=_fields(layered),
        warnings=(*warnings, *_unused_keys(layered), *_describe_untrusted(current.standing)),
    )


def require_guards(current: Current, ways_on: str) -> None:
    """Raises `SettingsError` if the folder's hooks could refuse what is about to run and are not trusted."""
    missing = current.missing_guards
    if not missing:
        return
    named = "; ".join(f"{shorten(item.words, _LONGEST)} ({printable(item.file)})" for item in missing[:_MOST_NAMED])
    more = f"; and {len(missing) - _MOST_NAMED} more" if len(missing) > _MOST_NAMED else ""
    raise SettingsError(
        f"this folder is not trusted, and it has hooks that could refuse what is to run: {named}{more}. "
        f"Nobody can be asked about them, so nothing was run. {ways_on}"
    )


class ReloadedPolicy:
    """The current settings, read again when a file has changed."""

    def __init__(self, live: LiveSettings, mode: Mode, workspace: str | None = None) -> None:
        """`mode` is the default if no setting chooses one."""
        self._live = live
        self._workspace = workspace
        self._mode = mode
        self._seen: Current | None = None
        self._policy: Policy | SettingsError | None = None

    def __call__(self) -> Policy:
        current = self._live.current()
        if current is not self._seen or self._policy is None:
            self._seen = current
            try:
                self._policy = interpret_settings(current, self._workspace).policy(self._mode)
            except SettingsError as error:
                self._policy = error
        if isinstance(self._policy, SettingsError):
            raise PolicyLost(f"the settings changed and cannot be honoured: {self._policy}")
        return self._policy


def _load_given(source: str) -> Loaded:
    if source.lstrip().startswith("{"):
        loaded = load_text(SettingsPath(Level.COMMAND_LINE, "--settings", SettingsKind.SETTINGS), source)
    elif not os.path.exists(source):
        raise SettingsError(f"{source} cannot be read: the file does not exist.")
    else:
        loaded = load(SettingsPath(Level.COMMAND_LINE, source, SettingsKind.SETTINGS))
    for note in (note for note in loaded.skipped if not note.is_harmless):
        raise SettingsError(note.fault)
    return loaded


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


def _rules(layered: Layered, warnings: list[str]) -> Iterator[Rule]:
    for rule in layered.rules:
        try:
            yield parse_rule(rule.text, rule.behavior, _origin(rule.source))
        except RuleError as error:
            if rule.behavior is not Behavior.ALLOW or rule.source.level is Level.COMMAND_LINE:
                raise SettingsError(str(error)) from None
            warnings.append(f"{error} It allows nothing.")


def _origin(source: Source) -> Origin:
    """With the folder that a path with one leading slash is relative to: the workspace, or the file's own."""
    own = source.level in (Level.USER, Level.MANAGED) or (source.level is Level.COMMAND_LINE and source.path[0] != "-")
    return Origin(source.path, source.line, base=os.path.dirname(os.path.abspath(source.path)) if own else None)


def _mode(layered: Layered, warnings: list[str]) -> Mode | None:
    chosen, mode = layered.values.get(MODE), layered.mode
    if mode is None:
        if chosen:
            warnings.append(f"{chosen.source}: the mode `{chosen.value}` is switched off by a settings file.")
        return None
    return Mode(mode.value)


def _folder(layered: Layered) -> Path | None:
    """A relative one is taken from the home, so that it is the same for every project."""
    text = _value(layered, "oversized_results", "persist_dir")
    return None if text is None else Path.home() / Path(text).expanduser()


def _approves_https(layered: Layered) -> bool:
    """The switch exists in two places. If both are used, both must agree."""
    said = [found.value for key in _HTTPS if (found := layered.value(*key))]
    return bool(said) and all(said)


def _model(layered: Layered) -> ModelChoice:
    name, small, key, url = (_value(layered, key) or "" for key in ("model", "smallModel", "apiKey", "customApiUrl"))
    return ModelChoice(name=name, small=small, api_key=key, api_url=url)


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


def _origins_of_given(layered: Layered) -> frozenset[str]:
    return frozenset(str(rule.source) for rule in layered.rules if rule.source.level is Level.COMMAND_LINE)


def _unused_keys(layered: Layered) -> Iterator[str]:
    """For what was given for this run only. Other files may contain what other programs use."""
    for key, value in layered.values.items():
        if value.source.level is Level.COMMAND_LINE and key[0] not in _USED:
            yield f"{value.source}: `{'.'.join(key)}` is not used by this version."


def _describe_untrusted(standing: Standing) -> Iterator[str]:
    if standing.gone:
        yield (
            f"{printable(standing.gone[0].file)} has lost a {standing.gone[0].kind} since this folder was trusted, "
            "so nothing that the folder allows or runs applies. See `ferrule trust --show`."
        )
    elif new := [item for item in standing.new if item.kind not in _NOT_LOADED]:
        named = ", ".join(f"{item.kind} `{shorten(item.words, _LONGEST)}`" for item in new[:_MOST_NAMED])
        more = f" and {len(new) - _MOST_NAMED} more" if len(new) > _MOST_NAMED else ""
        yield (
            f"not trusted, and so ignored: {named}{more}. "
            "See `ferrule trust --show`; `ferrule trust` trusts it permanently, --trust for one run."
        )
