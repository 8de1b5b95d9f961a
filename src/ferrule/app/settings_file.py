"""The few settings this version understands, from a file or from JSON on the command line.

A key that could forbid something and is not understood yet is an error, not a
warning: dropping it would allow what its author wanted stopped.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

from ..core.verdicts import Behavior
from ..permissions.modes import Mode
from ..permissions.rules import Rule, parse_rules

_RULE_KEYS: Final = {"allow": Behavior.ALLOW, "ask": Behavior.ASK, "deny": Behavior.DENY}
_MAY_FORBID: Final = frozenset({"hooks", "sandbox", "disabled_tools", "allowManagedPermissionRulesOnly"})


class SettingsError(ValueError):
    """A settings file that cannot be used. The message names it and the key."""


@dataclass(frozen=True, slots=True)
class SettingsFile:
    rules: tuple[Rule, ...] = ()
    mode: Mode | None = None
    cleanup_days: int | None = None
    warnings: tuple[str, ...] = ()


def load_settings_file(source: str) -> SettingsFile:
    """From a path, or from the JSON itself where it begins with a brace."""
    inline = source.lstrip().startswith("{")
    origin = "--settings" if inline else source
    try:
        text = source if inline else Path(source).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"{origin} cannot be read: {error}.") from None
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise SettingsError(f"{origin} is not valid JSON: {error}.") from None
    return _understood(_object(content, origin, "it"), origin)


def _understood(content: Mapping[str, Any], origin: str) -> SettingsFile:
    for key in content:
        if key in _MAY_FORBID:
            raise SettingsError(
                f"{origin}: `{key}` is not supported by this version, and dropping it could allow more."
            )
    permissions = _object(content.get("permissions", {}), origin, "`permissions`")
    ignored = [key for key in content if key not in ("permissions", "cleanupPeriodDays", "$schema")]
    return SettingsFile(
        rules=tuple(
            rule
            for key, behavior in _RULE_KEYS.items()
            for rule in parse_rules(_texts(permissions.get(key, []), origin, f"permissions.{key}"), behavior, origin)
        ),
        mode=_mode(permissions, origin),
        cleanup_days=_days(content.get("cleanupPeriodDays"), origin),
        warnings=tuple(f"{origin}: `{key}` is not used by this version." for key in ignored),
    )


def _mode(permissions: Mapping[str, Any], origin: str) -> Mode | None:
    for key in permissions:
        if key not in (*_RULE_KEYS, "defaultMode"):
            raise SettingsError(f"{origin}: `permissions.{key}` is not supported by this version.")
    name = permissions.get("defaultMode")
    if name is None:
        return None
    try:
        return Mode(name)
    except ValueError:
        known = " or ".join(Mode)
        raise SettingsError(f"{origin}: `permissions.defaultMode` must be {known} in this version.") from None


def _days(value: Any, origin: str) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise SettingsError(f"{origin}: `cleanupPeriodDays` must be a whole number of at least 1.")
    return value


def _object(value: Any, origin: str, what: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise SettingsError(f"{origin}: {what} must be a JSON object.")
    return cast(Mapping[str, Any], value)


def _texts(value: Any, origin: str, key: str) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in cast(list[Any], value)):
        raise SettingsError(f"{origin}: `{key}` must be a list of strings.")
    return cast(list[str], value)
