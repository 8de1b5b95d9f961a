"""The flags that every command with a session shares, and the settings they make."""

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING

from .exits import Usage

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..app.build import Settings
    from ..permissions.rules import Rule

MODES = ("default", "bypassPermissions")


def add_session_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("session")
    group.add_argument("--cwd", metavar="DIR", help="the working directory (default: this one)")
    group.add_argument("--permission-mode", metavar="MODE", choices=MODES, help=" or ".join(MODES))
    group.add_argument("--allow", "--allowedTools", metavar="RULE", action="append", default=[], help="allow a tool")
    group.add_argument("--deny", "--disallowedTools", metavar="RULE", action="append", default=[], help="deny a tool")
    group.add_argument("--settings", metavar="FILE", help="a settings file, or its JSON")


def settings_from(chosen: argparse.Namespace) -> Settings:
    """Raises `Usage` for anything that cannot be honoured: a rule that is not understood must not be dropped."""
    from ..app.build import Settings
    from ..app.settings_file import SettingsError, load_settings_file
    from ..core.verdicts import Behavior
    from ..permissions.modes import Mode
    from ..permissions.rules import RuleError, parse_rules

    cwd = _working_directory(chosen.cwd)
    try:
        file = load_settings_file(chosen.settings) if chosen.settings else None
        rules = (
            *parse_rules(chosen.allow, Behavior.ALLOW, "--allow"),
            *parse_rules(chosen.deny, Behavior.DENY, "--deny"),
            *(file.rules if file else ()),
        )
    except (RuleError, SettingsError) as error:
        raise Usage(str(error)) from None
    for warning in (*(file.warnings if file else ()), *_rules_for_no_tool(rules)):
        print(f"ferrule: {warning}", file=sys.stderr)
    mode = Mode(chosen.permission_mode) if chosen.permission_mode else (file.mode if file else None)
    if mode is Mode.BYPASS and hasattr(os, "geteuid") and os.geteuid() == 0:
        print("ferrule: bypassPermissions as root: any call may change anything on this machine.", file=sys.stderr)
    base = Settings(cwd=cwd)
    return Settings(
        cwd=cwd,
        rules=rules,
        mode=mode or base.mode,
        cleanup_days=file.cleanup_days if file and file.cleanup_days else base.cleanup_days,
    )


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
        if pool.get(rule.tool) is None and not rule.tool.startswith("mcp__"):
            near = pool.nearest(rule.tool)
            guess = f" Did you mean {near[0]}?" if near else ""
            yield f"{rule.origin}: there is no tool named {rule.tool}, so the rule does nothing.{guess}"
