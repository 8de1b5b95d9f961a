"""The flags that every command with a session shares, and the settings they make."""

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING, Any

from .exits import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from ..app.build import Settings
    from ..permissions.rules import Rule
    from ..settings.levels import Level

MODES = ("default", "acceptEdits", "plan", "auto", "dontAsk", "bypassPermissions")
EVERY_TOOL = "default"
"""The value of `--tools` that means all of them."""


WAYS_ON = (
    "To continue, review them with `ferrule trust --show`; then give --trust or set FERRULE_TRUST=1 to trust the "
    "folder for this run, trust it permanently with `ferrule trust`, or leave them out with --without-project-hooks."
)


def add_command(commands: Any, name: str, help: str, description: str = "") -> argparse.ArgumentParser:
    """`commands` are the subparsers of a parser. A flag is written out in full: a shorter one might mean another."""
    return commands.add_parser(name, allow_abbrev=False, help=help, description=description or None)


def add_session_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("session")
    group.add_argument("--cwd", metavar="DIR", help="the working directory (default: this one)")
    group.add_argument("--add-dir", metavar="DIR", action="append", default=[], help="an additional working directory")
    group.add_argument("--permission-mode", metavar="MODE", choices=MODES, help=", ".join(MODES))
    group.add_argument(
        "--dangerously-skip-permissions",
        action="store_true",
        help="the mode bypassPermissions: everything that no rule denies is allowed",
    )
    _add_rules(group.add_argument, ("--allow", "--allowedTools", "--allowed-tools"), "allow")
    _add_rules(group.add_argument, ("--deny", "--disallowedTools", "--disallowed-tools"), "deny")
    group.add_argument("--tools", metavar="NAMES", help='only these tools, comma-separated; "" for none')
    group.add_argument("--settings", metavar="FILE", help="a settings file, or its JSON")
    group.add_argument(
        "--setting-sources", metavar="LEVELS", help="user, project and local, or some of them, comma-separated"
    )
    group.add_argument(
        "--mcp-config",
        metavar="FILE",
        action="append",
        default=[],
        help="MCP servers: a file like .mcp.json, or its JSON",
    )
    group.add_argument("--strict-mcp-config", action="store_true", help="only the MCP servers of --mcp-config")
    group.add_argument("--trust", action="store_true", help="for this run, trust the folder as it is now")
    group.add_argument("--without-project-hooks", action="store_true", help="ignore the folder's hooks, trusted or not")


def _add_rules(add: Callable[..., Any], names: tuple[str, ...], verb: str) -> None:
    more = "comma-separated rules; may be repeated"
    add(*names, metavar="RULES", action="append", default=[], help=f"{verb} tools, or some of their calls: {more}")


def settings_from(chosen: argparse.Namespace, *, interactive: bool = False, runs: bool = False) -> Settings:
    """At an `interactive` start a person is asked whether they trust the folder.

    Where something `runs` without one, hooks that could refuse it must not be
    missing for lack of trust. Raises `Usage` for anything that cannot be
    honoured: a rule that is not understood must not be dropped.
    """
    from ..app.session_settings import Settings
    from ..app.settings_interpretation import load_session_settings
    from ..permissions.modes import Mode
    from ..settings.settings_sources import SettingsError, is_trusted_by
    from .trusting import ask_for_trust

    chosen.trust = chosen.trust or is_trusted_by(os.environ)
    base = Settings(cwd=working_directory(chosen.cwd), only_tools=_only_tools(chosen.tools))
    try:
        settings, found = load_session_settings(
            base,
            settings=chosen.settings,
            flags=_as_settings(chosen, base.cwd),
            levels=parse_levels(chosen.setting_sources),
            trusting=chosen.trust,
            server_sources=chosen.mcp_config,
            strict_servers=chosen.strict_mcp_config,
            look=ask_for_trust if interactive and not chosen.trust else None,
            project_hooks=not chosen.without_project_hooks,
            ways_on=WAYS_ON if runs and not interactive else None,
        )
    except SettingsError as error:
        raise UsageError(str(error)) from None
    for warning in (*found.warnings, *_rules_for_no_tool(found.given_rules)):
        print(f"ferrule: {warning}", file=sys.stderr)
    if settings.mode is Mode.BYPASS and hasattr(os, "geteuid") and os.geteuid() == 0:
        print("ferrule: bypassPermissions as root: any call may change anything on this machine.", file=sys.stderr)
    return settings


def _as_settings(chosen: argparse.Namespace, cwd: str) -> dict[str, dict[str, Any]]:
    """The flags in the form of a settings file, so that one set of rules decides what applies."""
    mode = chosen.permission_mode
    if chosen.dangerously_skip_permissions:
        if mode not in (None, "bypassPermissions"):
            raise UsageError(f"--dangerously-skip-permissions and --permission-mode {mode} contradict each other.")
        mode = "bypassPermissions"
    flags = {
        "--allow": {"allow": [rule for text in chosen.allow for rule in split_rules(text)]},
        "--deny": {"deny": [rule for text in chosen.deny for rule in split_rules(text)]},
        "--permission-mode": {"defaultMode": mode},
        "--add-dir": {"additionalDirectories": list(_directories(chosen.add_dir, cwd))},
    }
    return {flag: {"permissions": said} for flag, said in flags.items() if any(said.values())}


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


def _directories(given: Iterable[str], cwd: str) -> Iterator[str]:
    for directory in given:
        path = os.path.abspath(os.path.join(cwd, os.path.expanduser(directory)))
        if not directory or not os.path.isdir(path):
            raise UsageError(f"--add-dir: {directory or 'an empty name'} is not a directory.")
        yield path


def _only_tools(names: str | None) -> frozenset[str] | None:
    if names is None or names.strip() == EVERY_TOOL:
        return None
    chosen = [name.strip() for name in names.split(",") if name.strip()]
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
            raise UsageError(f"--setting-sources: {name} is not one of {', '.join(LEVELS)}.")
    return frozenset(LEVELS[name] for name in chosen)


def working_directory(given: str | None) -> str:
    try:
        cwd = os.path.abspath(os.getcwd() if given is None else given)
    except FileNotFoundError:
        raise UsageError("the working directory no longer exists. Change to another, or give --cwd.") from None
    if given == "" or not os.path.isdir(cwd):
        raise UsageError(f"--cwd: {given or 'an empty name'} is not a directory.")
    return cwd


def _rules_for_no_tool(rules: tuple[Rule, ...]) -> Iterator[str]:
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
