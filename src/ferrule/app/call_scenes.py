"""Where a call would be made: in this folder on this machine, or in a scene that is only told of."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from ..core.ports import Paths
from ..core.state import SessionState
from ..core.values import named_value
from ..core.verdicts import Behavior
from ..permissions.domains import PreApproval
from ..permissions.modes import Mode
from ..permissions.path_patterns import Places
from ..permissions.rules import Origin, read_rules
from .explain_stand_ins import AbleBox, PathsAsWritten
from .late_shell import LateShell
from .live_rules import LiveRules, Policy
from .session_services import build_policy, sessions_folder
from .session_settings import Settings

KINDS: Final = {"allow": Behavior.ALLOW, "ask": Behavior.ASK, "deny": Behavior.DENY}


@named_value
class CallScene:
    """Where a call would be made, and who decides about it."""

    cwd: str
    home: str
    workspace: str
    paths: Paths
    rules: LiveRules
    directories: tuple[str, ...] = ()
    shell: LateShell | None = None
    """This machine's; `None` in a scene that is only told of, for which no file is looked at."""

    async def close(self) -> None:
        if self.shell:
            await self.shell.close()


def open_scene(settings: Settings, *, mode: str = "") -> CallScene:
    """This folder on this machine, as a session would find them. Whoever opens it closes it."""
    parts = build_policy(settings, sessions_folder(settings) / f"explain-{os.urandom(4).hex()}")
    parts.state.mode = mode
    return CallScene(
        cwd=parts.cwd,
        home=os.path.expanduser("~"),
        workspace=parts.cwd,
        paths=parts.paths,
        rules=parts.rules,
        directories=parts.state.added_directories,
        shell=parts.shell,
    )


def tell_scene(
    settings: Settings,
    *,
    cwd: str,
    home: str,
    project_root: str | None = None,
    symlinks: Mapping[str, str] | None = None,
    sandbox: bool = False,
) -> CallScene:
    """A scene that is only told of, under the policy of the settings.

    It has no machine: a command that is understood counts as held to what it declared, and one that only a sandbox
    could make safe is asked about, unless `sandbox` says that there is one.
    """
    root, paths = project_root or cwd, PathsAsWritten(home, symlinks or {})

    def forms(*folders: str) -> tuple[str, ...]:
        return tuple(dict.fromkeys(form for one in folders for form in (one, paths.resolve(one)[0])))

    policy = settings.reload() if settings.reload else Policy(settings.rules, settings.mode, hooks=settings.hooks)
    policy = policy if policy.mode is settings.mode else replace(policy, mode=settings.mode)
    added = settings.added_directories
    rules = LiveRules(
        lambda: policy,
        Places(cwd=forms(cwd), home=forms(home), roots=forms(root, *added)),
        SessionState(cwd, added_directories=added),
        lists=settings.path_lists,
        domains=settings.pre_approval,
    )
    rules.box = AbleBox() if sandbox else None
    return CallScene(cwd=cwd, home=home, workspace=root, paths=paths, rules=rules, directories=added)


def described(
    *,
    cwd: str,
    home: str,
    project_root: str | None = None,
    rules: Mapping[str, list[str] | None],
    mode: str = Mode.DEFAULT,
    symlinks: Mapping[str, str] | None = None,
    sandbox: bool = False,
) -> CallScene:
    """A scene that is only told of, with its rules. Only these count, and what is no rule is skipped."""
    origin = Origin("rules", base=project_root or cwd)
    parsed = (
        read_rules([(text, origin) for text in rules.get(kind) or ()], behavior).rules
        for kind, behavior in KINDS.items()
    )
    settings = Settings(
        cwd=cwd,
        rules=tuple(rule for some in parsed for rule in some),
        mode=Mode(mode),
        pre_approval=PreApproval(allowed=()),
    )
    return tell_scene(settings, cwd=cwd, home=home, project_root=project_root, symlinks=symlinks, sandbox=sandbox)
