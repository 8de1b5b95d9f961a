"""Hooks from the settings of all levels."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from ..core.effects import Opaque
from ..core.ports import Proposal
from ..core.verdicts import Behavior
from ..permissions.judge import RuleJudge
from ..permissions.modes import Mode
from ..permissions.path_patterns import Places
from ..permissions.rules import parse_rule
from ..settings.layers import Layered
from .hook import Condition, Service
from .hook_loading import LoadedHooks, Loading, MakeService, load_hooks


def hooks_of(layered: Layered, workspace: str) -> LoadedHooks:
    """Raises `HookError` for a hook that could forbid something and cannot be run."""
    only_managed = layered.value("allowManagedInputChangesOnly")
    using = Loading(
        workspace=workspace,
        condition=lambda text: condition(text, workspace),
        services={"http": _posting(layered)},
        only_managed_change_input=bool(only_managed and only_managed.value),
    )
    return load_hooks(layered.hooks, using)


def condition(text: str, workspace: str) -> Condition:
    """An `if` applies to the calls that a deny rule of the same text would match. Raises `RuleError`.

    If a call cannot be parsed, only the tool has to match, so that nothing unclear skips a guard.
    """
    folder, home = _forms(workspace), _forms(os.path.expanduser("~"))
    places = Places(cwd=folder, home=home, roots=folder)
    rule = parse_rule(text, Behavior.DENY, "if")
    judge = RuleJudge((rule,), Mode.DEFAULT, places)
    of_tool = RuleJudge((parse_rule(rule.tool, Behavior.DENY, "if"),), Mode.DEFAULT, places)

    def holds(proposal: Proposal) -> bool:
        is_riddle = any(isinstance(touch, Opaque) for touch in proposal.effects.touches)
        verdict = (of_tool if is_riddle else judge).judge(proposal)
        return verdict is not None and verdict.rule == (rule.tool if is_riddle else rule.text)

    return holds


def _forms(folder: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys((folder, os.path.realpath(folder))))


def _posting(layered: Layered) -> MakeService:
    def make(said: Mapping[str, Any]) -> Service:
        from .http_hooks import Addresses, posting

        allowed, variables = _texts_of(layered, "allowedHttpHookUrls"), _texts_of(layered, "httpHookAllowedEnvVars")
        known = None if variables is None else frozenset(variables)
        return posting(said, Addresses(allowed=allowed, variables=known))

    return make


def _texts_of(layered: Layered, key: str) -> tuple[str, ...] | None:
    """The strings of a list; `None` if no file has one."""
    found = layered.limit(key)
    return None if found is None else tuple(item.value for item in found)
