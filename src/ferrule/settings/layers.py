"""The entries of all files merged, where every value knows its file.

Plain values come from the highest level, lists are joined, and a hook that
several files contain is one hook. A few keys have rules of their own, mostly so
that a level cannot undo what another one forbids.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from ..core.values import named_value
from ..core.verdicts import Behavior
from .levels import Level, Source
from .settings_entries import Entry, Key
from .settings_loading import Skipped

ALLOW: Final = ("permissions", "allow")
ASK: Final = ("permissions", "ask")
DENY: Final = ("permissions", "deny")
MODE: Final = ("permissions", "defaultMode")
DIRECTORIES: Final = ("permissions", "additionalDirectories")
MODELS: Final = ("availableModels",)
NO_HOOKS: Final = ("disableAllHooks",)

_MANAGED_HOOKS: Final = ("allowManagedHooksOnly",)
BEHAVIORS: Final[Mapping[Key, Behavior]] = {ALLOW: Behavior.ALLOW, ASK: Behavior.ASK, DENY: Behavior.DENY}
_MANAGED_ONLY: Final[Mapping[Key, Callable[[Key], bool]]] = {
    ("allowManagedPermissionRulesOnly",): lambda key: key == ALLOW,
    _MANAGED_HOOKS: lambda key: key[0] == "hooks",
    ("allowManagedMcpServersOnly",): lambda key: key == ("allowedMcpServers",),
}
"""What applies from managed files only, if one of them says so. Deny and ask rules of other files still apply."""
_STRICTER: Final[Mapping[Key, Any]] = {
    ("allowManagedInputChangesOnly",): True,
    ("disableClaudeAiConnectors",): True,
    ("isolatePeerMachines",): True,
    ("remoteControlAtStartup",): False,
    ("crossSessionInbound",): False,
    ("useAutoModeDuringPlan",): False,
    ("syncClaudeAiSkills",): False,
}
"""Values that take precedence from any level, as they are the stricter ones."""
_DISABLED_BY: Final[Mapping[str, Key]] = {
    "bypassPermissions": ("permissions", "disableBypassPermissionsMode"),
    "auto": ("permissions", "disableAutoMode"),
}


@named_value
class SourcedHook:
    event: str
    matcher: str
    """Empty for all."""
    hook: Mapping[str, Any]
    """As `settings.hook_entries.AnyHook` describes it, whichever way it was written."""
    source: Source


@named_value
class Layered:
    """All settings. Nothing in it is untrusted unless it was made from untrusted entries."""

    values: Mapping[Key, Entry]
    lists: Mapping[Key, tuple[Entry, ...]]
    """Those of the highest level first."""
    skipped: tuple[Skipped, ...] = ()

    def value(self, *key: str) -> Entry | None:
        return self.values.get(key)

    def items(self, *key: str) -> tuple[Entry, ...]:
        return self.lists.get(key, ())

    def limit(self, *key: str) -> tuple[Entry, ...] | None:
        """The items of an exclusive list; `None` if no file has one. It may be empty."""
        return None if key not in self.lists and key not in self.values else self.items(*key)

    @property
    def rules(self) -> tuple[Entry, ...]:
        """Those that allow, then those that ask, then those that deny; `BEHAVIORS` has it by their key."""
        return tuple(item for key in BEHAVIORS for item in self.items(*key))

    @property
    def mode(self) -> Entry | None:
        """`None` if no file chooses one, or if a file forbids the chosen one."""
        mode = self.values.get(MODE)
        return None if mode and mode.value in self.disabled_modes else mode

    @property
    def disabled_modes(self) -> frozenset[str]:
        """Those that a file forbids, whoever chooses one."""
        return frozenset(mode for mode, key in _DISABLED_BY.items() if key in self.values)

    @property
    def hooks(self) -> tuple[SourcedHook, ...]:
        return tuple(
            SourcedHook(event=key[1], matcher=item.value["matcher"], hook=item.value["hook"], source=item.source)
            for key, items in self.lists.items()
            if key[0] == "hooks"
            for item in items
        )

    @property
    def takes_hooks(self) -> bool:
        """Whether hooks outside managed files apply."""
        off, only = self.values.get(NO_HOOKS), self.values.get(_MANAGED_HOOKS)
        return not any(said is not None and said.value is True for said in (off, only))

    @property
    def environment(self) -> Mapping[str, Entry]:
        return {key[1]: value for key, value in self.values.items() if key[0] == "env" and len(key) > 1}

    @property
    def servers(self) -> Mapping[str, Entry]:
        """By name; of two with the same name, the one of the higher level replaces the other."""
        return {key[1]: value for key, value in self.values.items() if key[0] == "mcpServers" and len(key) > 1}


def merge_entries(entries: Iterable[Entry], skipped: Iterable[Skipped] = ()) -> Layered:
    """`entries` in order of precedence, lowest first."""
    notes = list(skipped)
    counting = [entry for entry in entries if not _is_out_of_place(entry, notes)]
    values = _values(counting)
    kept = [entry for entry in counting if _counts(entry, values)]
    return Layered(
        values=values,
        lists=_lists(kept),
        skipped=tuple(notes),
    )


def _is_out_of_place(entry: Entry, notes: list[Skipped]) -> bool:
    """Some keys apply on some levels only."""
    if entry.key in _MANAGED_ONLY and entry.source.level is not Level.MANAGED:
        words = "it applies in managed settings only. Remove it here."
    elif entry.key == MODE and entry.value == "auto" and entry.source.level.in_folder:
        words = "a project cannot choose the mode `auto`. Choose it in your own settings."
    else:
        return False
    notes.append(Skipped(entry.source, entry.key, words, may_forbid=False))
    return True


def _values(entries: Iterable[Entry]) -> dict[Key, Entry]:
    values = dict[Key, Entry]()
    for entry in entries:
        stricter = entry.key in _STRICTER and entry.key in values and values[entry.key].value == _STRICTER[entry.key]
        if not entry.in_list and not stricter:
            values[entry.key] = entry
    return values


def _counts(entry: Entry, values: Mapping[Key, Entry]) -> bool:
    """Whether an item of a list is kept under the rules for its list."""
    if not entry.in_list:
        return False
    managed = entry.source.level is Level.MANAGED
    off = values.get(NO_HOOKS)
    if entry.key[0] == "hooks" and off and off.value is True and not (managed and off.source.level < Level.MANAGED):
        return False
    return managed or not any(
        covers(entry.key) and key in values and values[key].value is True for key, covers in _MANAGED_ONLY.items()
    )


def _lists(entries: Iterable[Entry]) -> dict[Key, tuple[Entry, ...]]:
    lists = dict[Key, list[Entry]]()
    for entry in entries:
        lists.setdefault(entry.key, []).append(entry)
    for key, items in lists.items():
        # stable, so that entries of one level keep the order of their file
        items.sort(key=lambda entry: -entry.source.level)
        if key == MODELS and items[0].source.level is Level.MANAGED:
            lists[key] = [entry for entry in items if entry.source.level is Level.MANAGED]
        elif key[0] == "hooks":
            lists[key] = _each_once(items)
    return {key: tuple(items) for key, items in lists.items()}


def _each_once(items: Iterable[Entry]) -> list[Entry]:
    first = dict[str, Entry]()
    for entry in items:
        first.setdefault(canonical(entry.value), entry)
    return list(first.values())


def canonical(value: Any) -> str:
    """The same text for the same JSON value."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
