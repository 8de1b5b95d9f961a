"""The flags that every command with a session shares, and the settings they make."""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from .exits import Usage

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..app.build import Settings
    from ..permissions.rules import Rule
    from ..settings.levels import Level

MODES = ("default", "acceptEdits", "plan", "dontAsk", "bypassPermissions")


def add_session_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("session")
    group.add_argument("--cwd", metavar="DIR", help="the working directory (default: this one)")
    group.add_argument("--permission-mode", metavar="MODE", choices=MODES, help=", ".join(MODES))
    group.add_argument(
        "--allow",
        "--allowedTools",
        metavar="RULE",
        action="append",
        default=[],
        help="allow a tool, or some of its calls",
    )
    group.add_argument(
        "--deny",
        "--disallowedTools",
        metavar="RULE",
        action="append",
        default=[],
        help="deny a tool, or some of its calls",
    )
    group.add_argument("--settings", metavar="FILE", help="a settings file, or its JSON")
    group.add_argument(
        "--setting-sources", metavar="LEVELS", help="user, project and local, or some of them with commas between"
    )
    group.add_argument("--trust", action="store_true", help="for this run, trust the folder as it is now")


def settings_from(chosen: argparse.Namespace) -> Settings:
    """Raises `Usage` for anything that cannot be honoured: a rule that is not understood must not be dropped."""
    from ..app.build import Settings
    from ..app.layers import ReloadedPolicy, SettingsError, open_layers, understood
    from ..permissions.modes import Mode

    base = Settings(cwd=_working_directory(chosen.cwd))
    try:
        live = open_layers(
            base.cwd,
            base.state_folder,
            settings=chosen.settings,
            flags=_as_settings(chosen),
            levels=_levels(chosen.setting_sources),
            trusting=chosen.trust,
        )
        found = understood(live.current(), base.cwd)
    except SettingsError as error:
        raise Usage(str(error)) from None
    for warning in (*found.warnings, *_rules_for_no_tool(found.given_rules)):
        print(f"ferrule: {warning}", file=sys.stderr)
    if found.mode is Mode.BYPASS and hasattr(os, "geteuid") and os.geteuid() == 0:
        print("ferrule: bypassPermissions as root: any call may change anything on this machine.", file=sys.stderr)
    return replace(
        base,
        added_directories=found.directories,
        rules=found.rules,
        mode=found.mode or base.mode,
        cleanup_days=found.cleanup_days or base.cleanup_days,
        result_limit=found.result_limit,
        result_keep=found.result_keep,
        results_folder=found.results_folder,
        hooks=found.hooks,
        reload=ReloadedPolicy(live, base.mode, base.cwd),
    )


def _as_settings(chosen: argparse.Namespace) -> dict[str, dict[str, Any]]:
    """The flags as what a settings file would say, so that one set of rules decides what counts."""
    flags = {
        "--allow": {"allow": chosen.allow},
        "--deny": {"deny": chosen.deny},
        "--permission-mode": {"defaultMode": chosen.permission_mode},
    }
    return {flag: {"permissions": said} for flag, said in flags.items() if any(said.values())}


def _levels(names: str | None) -> frozenset[Level]:
    from ..app.layers import LEVELS
    from ..settings.reload import EVERY_LEVEL

    if names is None:
        return EVERY_LEVEL
    chosen = [name.strip() for name in names.split(",") if name.strip()]
    for name in chosen:
        if name not in LEVELS:
            raise Usage(f"--setting-sources: {name} is none of {', '.join(LEVELS)}.")
    return frozenset(LEVELS[name] for name in chosen)


def _working_directory(given: str | None) -> str:
    try:
        cwd = os.path.abspath(os.getcwd() if given is None else given)
    except FileNotFoundError:
        raise Usage("the working directory no longer exists. Change to another, or give --cwd.") from None
    if given == "" or not os.path.isdir(cwd):
        raise Usage(f"--cwd: {given or 'an empty name'} is not a directory.")
    return cwd


def _rules_for_no_tool(rules: tuple[Rule, ...]) -> Iterator[str]:
    """A rule for a name that no tool has is most likely a slip, and a slip in a deny allows."""
    from ..app import build
    from ..engine.pool import assemble, select

    pool = assemble(select(build.builtin_tools()))
    for rule in rules:
        if pool.get(rule.tool) is None and not rule.tool.startswith("mcp__") and not set("*?") & set(rule.tool):
            near = pool.nearest(rule.tool)
            guess = f" Did you mean {near[0]}?" if near else ""
            yield f"{rule.origin}: there is no tool named {rule.tool}, so the rule does nothing.{guess}"
