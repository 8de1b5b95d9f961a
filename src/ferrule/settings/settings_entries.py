"""The entries of a settings file, each with its place.

An entry is the smallest unit that applies or does not apply: a rule, a hook, a
server, a variable, one plain value. Older spellings are converted to the current
one, so later code knows only one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeAlias, cast

from ..core.values import named_value
from .json_places import Place
from .levels import Source
from .rule_entries import why_no_rule
from .settings_files import SettingsKind
from .settings_loading import Loaded

Key: TypeAlias = tuple[str, ...]

_WALKED: Final = frozenset(
    {
        ("enabledPlugins",),
        ("env",),
        ("extraKnownMarketplaces",),
        ("mcpServers",),
        ("models",),
        ("oversized_results",),
        ("permissions",),
        ("permissions", "pre_approval"),
        ("sandbox",),
        ("sandbox", "credentials"),
        ("sandbox", "filesystem"),
        ("sandbox", "ignoreViolations"),
        ("sandbox", "network"),
        ("skillOverrides",),
        ("worktree",),
    }
)
"""Objects whose members are separate entries. Any other object is one value."""
_WHOLE: Final = frozenset({("fallbackModel",)})
"""Lists that are one value."""
_LIMITS: Final = frozenset({("allowedHttpHookUrls",), ("httpHookAllowedEnvVars",), ("allowedMcpServers",)})
"""Exclusive lists: only what they name remains. An empty one is a value, and nothing remains."""
_OLDER: Final[Mapping[Key, Key]] = {
    ("permissions", "allowed_tools"): ("permissions", "allow"),
    ("permissions", "disabled_tools"): ("permissions", "deny"),
}
_DOMAINS: Final[Mapping[str, str]] = {"allowed_domains": "allow", "blocked_domains": "ask"}
"""A blocked domain is one that is never approved without asking."""

NAMED_DOMAINS: Final = (("permissions", "allowed_domains"), ("permissions", "pre_approval", "allowed_domains"))
"""Lists of domains that may be fetched from without a question."""


@named_value
class Entry:
    key: Key
    """Where it belongs, without indexes: `("permissions", "allow")`, `("hooks", "Stop")`, `("env", "PATH")`."""
    value: Any
    source: Source
    in_list: bool = False
    """It is added to the entries of other files, and replaces none."""


def entries_of(loaded: Loaded) -> Iterator[Entry]:
    """In file order."""
    value: Any = loaded.value
    above: Key = ()
    if loaded.at.kind is SettingsKind.PERMISSIONS:
        above = ("permissions",)
    elif isinstance(value, list):
        above = ("hooks",)
    if above and value is not None:
        value = {above[0]: cast(Any, value)}
    elif loaded.at.kind is SettingsKind.MCP and isinstance(value, dict):
        # Other keys belong to other programs there, and their values are not checked.
        value = {name: inner for name, inner in cast(dict[str, Any], value).items() if name == "mcpServers"}
    if isinstance(value, dict):
        yield from _Walk(loaded, len(above)).members((), cast(dict[str, Any], value))


class _Walk:
    """Walks one file, whose content belongs below the first `above` parts of its keys."""

    def __init__(self, loaded: Loaded, above: int) -> None:
        self._loaded = loaded
        self._above = above

    def members(self, key: Key, value: Mapping[str, Any]) -> Iterator[Entry]:
        for name, inner in value.items():
            yield from self._member((*key, name), inner)

    def _member(self, key: Key, value: Any) -> Iterator[Entry]:
        if key == ("hooks",):
            by_event = isinstance(value, dict)
            yield from self._hooks(cast(dict[str, Any], value)) if by_event else self._flat_hooks(value)
        elif key[-1] in _DOMAINS and key[0] == "permissions":
            yield from self._domains(key, value)
        elif isinstance(value, dict) and key in _WALKED:
            yield from self.members(key, cast(dict[str, Any], value))
        elif isinstance(value, list) and key not in _WHOLE and (value or key not in _LIMITS):
            for at, item in enumerate(cast(list[Any], value)):
                yield self._entry(_OLDER.get(key, key), item, (*key, at), in_list=True)
        else:
            yield self._entry(key, value, key)

    def _hooks(self, value: Mapping[str, Any]) -> Iterator[Entry]:
        for event, groups in value.items():
            for at, group in enumerate(groups):
                for inner, hook in enumerate(group["hooks"]):
                    place = ("hooks", event, at, "hooks", inner)
                    one = {"matcher": group.get("matcher", ""), "hook": hook}
                    yield self._entry(("hooks", event), one, place, in_list=True)

    def _flat_hooks(self, value: list[Mapping[str, Any]]) -> Iterator[Entry]:
        for at, flat in enumerate(value):
            if not flat.get("command"):
                continue  # an event without a command is valid, and runs nothing
            hook: dict[str, Any] = {"type": "command", "command": flat["command"]}
            if "timeout_sec" in flat:
                hook["timeout"] = flat["timeout_sec"]
            one = {"matcher": flat.get("tool_matcher", ""), "hook": hook}
            yield self._entry(("hooks", flat["event"]), one, ("hooks", at), in_list=True)

    def _domains(self, key: Key, value: list[str]) -> Iterator[Entry]:
        """As rules: for the domain itself and for all below it. That there is a list of allowed ones is a value too."""
        if key in NAMED_DOMAINS:
            yield self._entry(key, True, key)
        rule_key = ("permissions", _DOMAINS[key[-1]])
        for at, domain in enumerate(value):
            for host in (domain, f"*.{domain}"):
                rule = f"WebFetch(domain:{host})"
                if why_no_rule(rule) is None:
                    yield self._entry(rule_key, rule, (*key, at), in_list=True)

    def _entry(self, key: Key, value: Any, place: Place, *, in_list: bool = False) -> Entry:
        return Entry(key=key, value=value, source=self._loaded.source(place[self._above :]), in_list=in_list)
