"""Which part of a settings file could have forbidden something, so that without it more might be allowed.

An unknown key usually forbids nothing: it belongs to another program or a newer
version. It could have forbidden something if it is a misspelling of a key that
does, so misspellings are recognized here: a different case, or a letter or two
that are wrong. A key that begins with a sign, such as `_deny`, is how people
write a comment.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, cast

from .json_places import Place
from .settings_files import SettingsKind

REFUSING_EVENTS: Final = frozenset({"PreToolUse", "PermissionRequest", "UserPromptSubmit"})
"""Events whose hooks exist to refuse."""

_ONLY_GRANT: Final = frozenset(
    {"$schema", "allow", "allowed_tools", "additionalDirectories", "allowed_domains", "auto_approve_https"}
)
"""Members of `permissions` that only ever allow; without them less is allowed."""
_MAY_FORBID: Final = frozenset(
    {
        "permissions",
        "hooks",
        "sandbox",
        "allowManagedPermissionRulesOnly",
        "allowManagedHooksOnly",
        "allowManagedInputChangesOnly",
        "allowManagedMcpServersOnly",
        "allowedMcpServers",
        "deniedMcpServers",
        "disabledMcpjsonServers",
        "allowedHttpHookUrls",
        "httpHookAllowedEnvVars",
        "disableSkillShellExecution",
        "skillOverrides",
    }
)
_ELSEWHERE: Final[Mapping[str, str]] = {
    **{event: f"hooks.{event}" for event in sorted(REFUSING_EVENTS)},
    "deny": "permissions.deny",
    "ask": "permissions.ask",
    "denied": "permissions.deny",
    "denyRules": "permissions.deny",
    "deniedTools": "permissions.deny",
    "denied_tools": "permissions.deny",
    "disabledTools": "permissions.deny",
    "disabled_tools": "permissions.deny",
    "disallowedTools": "permissions.deny",
    "disallowed_tools": "permissions.deny",
    "blockedTools": "permissions.deny",
    "blocked_tools": "permissions.deny",
}
"""What some write at the top of a file, and where it belongs."""
_DENYING: Final = re.compile(
    r"den(y|ies|ied|ying)|disallow|block|forbid|prohibit|exclude|restrict|blacklist", re.IGNORECASE
)
_ASKING: Final = re.compile(r"(^|[^a-z])ask(s|ed|ing)?([^a-z]|$)|confirm")
_WORDS: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def nearest(key: str, names: Iterable[str]) -> str:
    """The name that the key is a misspelling of, or an empty string.

    >>> nearest("permisions", ["permissions", "hooks"]), nearest("DENY", ["deny"]), nearest("comment", ["command"])
    ('permissions', 'deny', '')
    """
    if _is_comment(key):
        return ""
    found = [(_distance(key.casefold(), name.casefold()), name not in REFUSING_EVENTS, name) for name in names]
    distance, _, name = min(found, default=(99, True, ""))
    return name if distance <= _most_slips(name) else ""


def misspelt_guard(key: str) -> str:
    """Where a key at the top of a settings file belongs, if it is a misspelling of one that could forbid something."""
    name = nearest(key, (*_MAY_FORBID, *_ELSEWHERE))
    return _ELSEWHERE.get(name, name)


def guard_meant(place: Place, names: Iterable[str]) -> str:
    """The known key that an unknown one inside `permissions` or `sandbox` was meant to be, if that could forbid."""
    key = str(place[-1])
    known = tuple(names)
    near = nearest(key, known)
    if near or _is_comment(key):
        return "" if _only_grants(place[0], near) else near
    if place[0] not in ("permissions", "sandbox"):
        return ""
    if _DENYING.search(key):
        return "deny" if "deny" in known else next((name for name in known if name.startswith("deny")), key)
    return "ask" if _ASKING.search(_WORDS.sub("_", key).lower()) and "ask" in known else ""


def could_refuse(event: object) -> bool:
    """Whether a hook for this event, as far as it is known, could refuse."""
    return not isinstance(event, str) or event in REFUSING_EVENTS or nearest(event, REFUSING_EVENTS) != ""


def could_forbid(place: Place, value: Any) -> bool:
    """For an unreadable value at a known place; `place` is one in a settings file, `value` the whole file.

    >>> could_forbid(("permissions", "deny", 1), {}), could_forbid(("env", "A"), {})
    (True, False)
    """
    if place[:1] == ("hooks",) and len(place) > 1:
        return could_refuse(_event(place, value))
    if place[:1] == ("permissions",) and len(place) > 1:
        return not _ONLY_GRANT & set(place)
    return not place or place[0] in _MAY_FORBID


def as_in_settings(kind: SettingsKind, place: Place, value: Any) -> tuple[Place, Any]:
    """A place and a file of another kind, as they would be in a settings file."""
    if kind is SettingsKind.PERMISSIONS:
        return ("permissions", *place), {"permissions": value}
    if kind is SettingsKind.HOOKS and isinstance(value, list):
        return ("hooks", *place), {"hooks": cast(list[Any], value)}
    return place, value


def _event(place: Place, value: Any) -> object:
    """The event of the hook at this place; `None` if it is unknown."""
    if isinstance(place[1], str):
        return place[1]
    try:
        return cast(dict[str, Any], value["hooks"][place[1]]).get("event")
    except (AttributeError, IndexError, KeyError, TypeError):
        return None


def _only_grants(top: str | int, near: str) -> bool:
    if top == "permissions":
        return near in _ONLY_GRANT
    return near.startswith("allow") and "Managed" not in near and near != "allowUnsandboxedCommands"


def _is_comment(key: str) -> bool:
    return not key[:1].isalnum()


def _most_slips(name: str) -> int:
    """Only a different case in a short name, as `id` is not a misspelling of `if`."""
    return 0 if len(name) < 4 else 1 if len(name) < 8 else 2


def _distance(one: str, other: str) -> int:
    """How many letters have to be added, left out, changed, or swapped with the next."""
    if abs(len(one) - len(other)) > 2:
        return 99
    before: list[int] = []
    row = list(range(len(other) + 1))
    for at, left in enumerate(one, 1):
        above, before, row = before, row, [at]
        for to, right in enumerate(other, 1):
            cost = min(before[to] + 1, row[to - 1] + 1, before[to - 1] + (left != right))
            if at > 1 and to > 1 and left == other[to - 2] and one[at - 2] == right:
                cost = min(cost, above[to - 2] + 1)
            row.append(cost)
    return row[-1]
