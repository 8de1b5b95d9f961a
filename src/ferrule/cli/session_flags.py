"""The flags that every command with a session shares, and the settings they make."""

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING, Any

from .exits import UsageError
from .flag_parser import FlagParser, Several, guess, one_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ..app.build import Settings
    from ..permissions.rules import Rule
    from ..settings.levels import Level
    from ..settings.settings_loading import Loaded

MODES = ("default", "acceptEdits", "plan", "auto", "dontAsk", "bypassPermissions")
EVERY_TOOL = "default"
"""The value of `--tools` that means all of them."""
_WITHOUT_PATHS = frozenset({"Write", "NotebookEdit", "MultiEdit", "Glob"})
"""Tools whose paths are those of Edit and Read."""
_OF_ADMINISTRATORS = frozenset(
    {"allowManagedPermissionRulesOnly", "allowManagedHooksOnly", "allowManagedMcpServersOnly"}
)


WAYS_ON = (
    "To continue, review them with `ferrule trust --show`; then give --trust or set FERRULE_TRUST=1 to trust the "
    "folder for this run, trust it permanently with `ferrule trust`, or leave them out with --without-project-hooks."
)


def add_session_options(parser: FlagParser, *, lists: bool = True) -> None:
    """Without `lists`, which would take the words of the command itself, each flag takes one value at a time."""
    several: Any = Several if lists else "append"
    add = parser.add_argument_group("session").add_argument
    rules = "tools, or some of their calls: rules, separated by commas or spaces"
    add("--cwd", metavar="DIR", help="the working directory (default: this one)")
    add("--add-dir", metavar="DIR", action=several, default=[], help="additional working directories")
    add("--permission-mode", metavar="MODE", type=one_of(*MODES), help=", ".join(MODES))
    add(
        "--dangerously-skip-permissions",
        action="store_true",
        help="the mode bypassPermissions: everything that no rule denies is allowed",
    )
    add("--allow-dangerously-skip-permissions", action="store_true", help="let a program choose that mode later")
    add(
        "--allow",
        "--allowedTools",
        "--allowed-tools",
        metavar="RULE",
        action=several,
        default=[],
        help=f"allow {rules}",
    )
    add(
        "--deny",
        "--disallowedTools",
        "--disallowed-tools",
        metavar="RULE",
        action=several,
        default=[],
        help=f"deny {rules}",
    )
    add("--tools", metavar="NAME", action=several, help='only these tools; "" for none, "default" for all')
    add("--settings", metavar="FILE", help="a settings file, or its JSON")
    add("--managed-settings", metavar="JSON", help=argparse.SUPPRESS)
    add("--setting-sources", metavar="LEVELS", help="user, project and local, or some of them, comma-separated")
    add("--mcp-config", metavar="FILE", action=several, default=[], help="MCP servers: files like .mcp.json, or JSON")
    add("--strict-mcp-config", action="store_true", help="only the MCP servers of --mcp-config")
    add("--trust", action="store_true", help="for this run, trust the folder as it is now")
    add("--without-project-hooks", action="store_true", help="ignore the folder's hooks, trusted or not")


def settings_from(chosen: argparse.Namespace, *, interactive: bool = False, runs: bool = False) -> Settings:
    """At an `interactive` start a person is asked whether they trust the folder.

    Where something `runs` without one, hooks that could refuse it must not be
    missing for lack of trust. Raises `UsageError` for anything that cannot be
    honoured: a rule that is not understood must not be dropped.
    """
    from ..app.session_settings import Settings
    from ..app.settings_interpretation import load_session_settings
    from ..permissions.modes import Mode
    from ..settings.settings_sources import SettingsError, is_trusted_by
    from .trusting import ask_for_trust

    chosen.trust = chosen.trust or is_trusted_by(os.environ)
    base = Settings(cwd=working_directory(chosen.cwd), only_tools=chosen_tools(chosen.tools))
    try:
        settings, found = load_session_settings(
            base,
            settings=chosen.settings,
            flags=_as_settings(chosen, base.cwd),
            levels=parse_levels(chosen.setting_sources),
            trusting=chosen.trust,
            server_sources=chosen.mcp_config,
            strict_servers=chosen.strict_mcp_config,
            plugin_folders=getattr(chosen, "plugin_dir", None) or (),
            look=ask_for_trust if interactive and not chosen.trust else None,
            project_hooks=not chosen.without_project_hooks,
            ways_on=WAYS_ON if runs and not interactive else None,
            more=load_managed(chosen.managed_settings),
        )
    except SettingsError as error:
        raise UsageError(str(error)) from None
    for warning in (*found.warnings, *rules_for_no_tool(found.given_rules)):
        print(f"ferrule: {warning}", file=sys.stderr)
    if settings.mode is Mode.BYPASS:
        warn_of_root()
    return settings


def warn_of_root() -> None:
    """Where everything is allowed."""
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        print("ferrule: bypassPermissions as root: any call may change anything on this machine.", file=sys.stderr)


def _as_settings(chosen: argparse.Namespace, cwd: str) -> dict[str, dict[str, Any]]:
    """The flags in the form of a settings file, so that one set of rules decides what applies."""
    flags = {
        "--allow": {"allow": list(usable_allows(rule for text in chosen.allow for rule in split_rules(text)))},
        "--deny": {"deny": [rule for text in chosen.deny for rule in split_rules(text)]},
        "--permission-mode": {"defaultMode": chosen_mode(chosen)},
        "--add-dir": {"additionalDirectories": list(existing_directories(chosen.add_dir, cwd))},
    }
    given: dict[str, dict[str, Any]] = {
        flag: {"permissions": said} for flag, said in flags.items() if any(said.values())
    }
    if getattr(chosen, "bare", False):
        given["--bare"] = {"disableAllHooks": True}
    return given


def usable_allows(rules: Iterable[str]) -> Iterator[str]:
    """Without those that name no tool in full or a path of the wrong one: Claude Code warns of them and goes on.

    They allow nothing, so leaving one out allows no more.
    """
    from ..core.verdicts import Behavior
    from ..permissions.rules import RuleError, parse_rule

    for rule in rules:
        name, _, path = rule.partition("(")
        if "*" in name or (path and name in _WITHOUT_PATHS):
            try:
                parse_rule(rule, Behavior.ALLOW, "--allow")
            except RuleError as error:
                print(f"ferrule: {error} It allows nothing.", file=sys.stderr)
                continue
        yield rule


def load_managed(text: str | None) -> Iterator[Loaded]:
    """Settings of the program that started this one, on the level of the command line, below an administrator's."""
    if text is None:
        return
    from ..settings.levels import Level, SettingsPath
    from ..settings.settings_files import SettingsKind
    from ..settings.settings_loading import load_text

    loaded = load_text(SettingsPath(Level.COMMAND_LINE, "--managed-settings", SettingsKind.SETTINGS), text)
    for note in (note for note in loaded.skipped if not note.is_harmless):
        raise UsageError(note.fault)
    for key in _OF_ADMINISTRATORS.intersection(loaded.value or ()):
        raise UsageError(f"--managed-settings: `{key}` works in a file of an administrator only.")
    yield loaded


def chosen_mode(chosen: argparse.Namespace) -> str | None:
    """`None` for what the settings say."""
    mode = chosen.permission_mode
    if not chosen.dangerously_skip_permissions:
        return mode
    if mode not in (None, "bypassPermissions"):
        raise UsageError(f"--dangerously-skip-permissions and --permission-mode {mode} contradict each other.")
    return "bypassPermissions"


def split_rules(text: str) -> list[str]:
    """Splits rules at commas and spaces; text in parentheses is part of its rule.

    >>> split_rules("Bash(git log *, now),Edit  Read")
    ['Bash(git log *, now)', 'Edit', 'Read']
    """
    rules, depth = [""], 0
    for char in text:
        depth += (char == "(") - (char == ")" and depth > 0)
        if depth == 0 and (char == "," or char.isspace()):
            rules.append("")
        else:
            rules[-1] += char
    return [rule for rule in rules if rule]


def existing_directories(given: Iterable[str], cwd: str) -> Iterator[str]:
    for directory in given:
        path = os.path.abspath(os.path.join(cwd, os.path.expanduser(directory)))
        if directory and os.path.isdir(path):
            yield path
        else:
            name = directory or "an empty name"
            print(f"ferrule: --add-dir: {name} is not a directory, so it was left out.", file=sys.stderr)


def chosen_tools(given: list[str] | None) -> frozenset[str] | None:
    chosen = split_rules(" ".join(given or ()))
    if given is None or chosen == [EVERY_TOOL]:
        return None
    for warning in _unknown(chosen):
        raise UsageError(f"--tools: {warning}")
    return frozenset(chosen)


def parse_levels(names: str | None) -> frozenset[Level]:
    from ..settings.reload import EVERY_LEVEL
    from ..settings.settings_sources import LEVELS

    if names is None:
        return EVERY_LEVEL
    chosen = [name.strip() for name in names.split(",") if name.strip()]
    for name in chosen:
        if name not in LEVELS:
            raise UsageError(f"--setting-sources: {name} is not one of {', '.join(LEVELS)}.{guess(name, LEVELS)}")
    return frozenset(LEVELS[name] for name in chosen)


def working_directory(given: str | None) -> str:
    try:
        cwd = os.path.abspath(os.getcwd() if given is None else given)
    except FileNotFoundError:
        raise UsageError("the working directory no longer exists. Change to another, or give --cwd.") from None
    if given == "" or not os.path.isdir(cwd):
        raise UsageError(f"--cwd: {given or 'an empty name'} is not a directory.")
    return cwd


def rules_for_no_tool(rules: tuple[Rule, ...]) -> Iterator[str]:
    """A rule for an unknown tool is most likely a typo, and a typo in a deny rule allows."""
    for rule in rules:
        for warning in _unknown([rule.tool]):
            first, _, guess = warning.partition(".")
            yield f"{rule.origin}: {first}, so the rule does nothing.{guess}"


def _unknown(names: list[str]) -> Iterator[str]:
    """A sentence for each unknown tool name, with the name that may have been meant."""
    from ..app import build
    from ..engine.pool import assemble, select

    wanted = [name for name in names if not name.startswith("mcp__") and not set("*?") & set(name)]
    pool = assemble(select(build.tools_on_demand())) if wanted else None
    for name in wanted:
        if pool is not None and not pool.knows(name):
            near = pool.nearest(name)
            yield f"no tool is named {name}." + (f" Did you mean {near[0]}?" if near else "")
