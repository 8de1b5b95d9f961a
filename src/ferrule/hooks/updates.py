"""Parses the `updatedPermissions` of a PermissionRequest hook's answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeAlias, cast

from ..core.values import plain_value
from ..core.verdicts import Behavior
from .hook_approver import NotKept

SESSION: Final = "session"
DESTINATIONS: Final = (SESSION, "localSettings", "projectSettings", "userSettings")
_BEHAVIORS: Final[Mapping[str, Behavior]] = {
    "allow": Behavior.ALLOW,
    "ask": Behavior.ASK,
    "deny": Behavior.DENY,
}


@plain_value
class RuleAdded:
    rule: str
    behavior: Behavior
    destination: str
    """One of `DESTINATIONS`."""


@plain_value
class ModeSet:
    mode: str


Update: TypeAlias = RuleAdded | ModeSet


def updates_of(wanted: object) -> tuple[Update, ...]:
    """Raises `NotKept` for an invalid entry, so that nothing is applied in part.

    >>> updates_of([{"type": "setMode", "mode": "acceptEdits", "destination": "session"}])
    (ModeSet(mode='acceptEdits'),)
    """
    if not isinstance(wanted, list):
        raise NotKept("`updatedPermissions` must be a list")
    return tuple(update for one in cast(list[object], wanted) for update in _read(one))


def _read(one: object) -> tuple[Update, ...]:
    if not isinstance(one, Mapping):
        raise NotKept("each of `updatedPermissions` must be an object")
    said = cast(Mapping[str, Any], one)
    destination = said.get("destination", SESSION)
    if destination not in DESTINATIONS:
        raise NotKept(f"`destination` must be one of {', '.join(DESTINATIONS)}")
    match said.get("type"):
        case "addRules":
            return tuple(RuleAdded(_rule(rule), _behavior(said), destination) for rule in _rules(said))
        case "setMode" if isinstance(said.get("mode"), str) and destination == SESSION:
            return (ModeSet(said["mode"]),)
        case kind:
            raise NotKept(f"`{str(kind)[:40]}` to {destination} is not supported for a hook")


def _behavior(said: Mapping[str, Any]) -> Behavior:
    behavior = said.get("behavior")
    if not isinstance(behavior, str) or behavior not in _BEHAVIORS:
        raise NotKept(f"`behavior` must be one of {', '.join(_BEHAVIORS)}")
    return _BEHAVIORS[behavior]


def _rules(said: Mapping[str, Any]) -> list[object]:
    rules = said.get("rules")
    if not isinstance(rules, list):
        raise NotKept("`rules` must be a list")
    return cast(list[object], rules)


def _rule(rule: object) -> str:
    said = cast(Mapping[str, Any], rule if isinstance(rule, Mapping) else {})
    tool, content = said.get("toolName"), said.get("ruleContent")
    if not isinstance(tool, str) or not isinstance(content, str | None):
        raise NotKept("a rule must have a `toolName`, and its `ruleContent` must be text")
    return f"{tool}({content})" if content else tool
