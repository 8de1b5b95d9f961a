"""Settings that are checked on request, not watched.

Whoever is about to decide asks for the current settings. As long as no file's
directory entry has changed since the last check, the answer is the previous one.
Otherwise all files are loaded again: deny and ask rules apply at once, the rest
only with trust. A deny or ask rule that was removed from a file of the folder
still applies until a person agrees.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Final, TypeAlias

from ..core.values import named_value
from .forbidding import could_refuse
from .layers import Layered, canonical, merge_entries
from .levels import Level, SettingsContext, SettingsPath, settings_paths
from .settings_entries import Entry, entries_of
from .settings_files import HOOKS_NAME, MANAGED_PARTS
from .settings_loading import Loaded, Skipped, load
from .trust_items import Item, ItemKind, kind_of_entry, paths_to_watch
from .trust_store import (
    Agreed,
    Standing,
    TrustStore,
    Weighed,
    ground_of,
    items_in,
    make_agreement,
    standing_of,
    weigh_entries,
    within_trust,
)

EVERY_LEVEL: Final = frozenset(Level)
AT_START: Final = frozenset({("model",), ("effortLevel",), ("outputStyle",)})
"""Keys whose values do not change during a conversation."""
TICK: Final = 0.02
"""Seconds in which two changes of a file can leave the same entry."""

_Stamp: TypeAlias = tuple[int, int, int, int, int] | None
_Guard: TypeAlias = tuple[str, str, str]


@named_value
class Current(Layered):
    """The settings at one moment. The same object is returned as long as nothing has changed."""

    standing: Standing
    missing_guards: tuple[Item, ...] = ()
    """Hooks of the folder that could refuse, and do not apply because nobody has agreed to them."""


class LiveSettings:
    """The settings of one session, and what has to be remembered about them while it lasts."""

    def __init__(
        self,
        around: SettingsContext,
        store: TrustStore,
        *,
        levels: frozenset[Level] = EVERY_LEVEL,
        given: tuple[Loaded, ...] = (),
        trusting: bool = False,
        default_mode: str = "default",
        project_hooks: bool = True,
    ) -> None:
        """`given` holds what came with the command line. `trusting` agrees to all that is there now, for this session.

        Managed settings apply whatever the `levels`. `default_mode` is the
        mode if no file chooses one. Without `project_hooks` those of the
        folder do not apply, trusted or not.
        """
        self._around = around
        self._store = store
        self._levels = levels | {Level.MANAGED}
        self._given = given
        self._default_mode = default_mode
        self._project_hooks = project_hooks
        self._ground = ground_of(around)
        self._loaded: dict[str, Loaded] = {}
        self._guards: dict[_Guard, Entry] = {}
        self._at_start: tuple[Entry, ...] | None = None
        self._round: int | None = None
        self._sworn: Agreed | None = None
        self._stamps: Mapping[str, _Stamp] = {}
        self._looked_at = 0.0
        self._current = self._load(trusting=trusting)

    def current(self) -> Current:
        if self.may_have_changed():
            new = self._load()
            if new != self._current:
                self._current = new
        return self._current

    def may_have_changed(self) -> bool:
        """Whether a file may have changed. Costs about thirty `stat` calls, and reads nothing."""
        if any(_stamp(path) != stamp for path, stamp in self._stamps.items()):
            return True
        youngest = max((stamp[3] for stamp in self._stamps.values() if stamp), default=0)
        return youngest / 1e9 > self._looked_at - TICK

    def trust(self, shown: Iterable[Item]) -> None:
        """A person agrees to these, and not to what may have come since they were shown. Raises `NotStored`."""
        self._store.agree(self._ground, shown, self._files())

    @property
    def is_declined(self) -> bool:
        """Whether a person has refused what is waiting for approval now."""
        question = self.current().standing.question
        return question != "" and self._store.last_declined(self._ground.key) == question

    def decline(self, shown: Standing) -> None:
        """A person refuses what they were shown. Raises `NotStored`."""
        self._store.decline(self._ground.key, shown.question)

    def revoke(self) -> bool:
        """Whether there was an agreement to withdraw. Raises `NotStored`."""
        return self._store.revoke(self._ground.key)

    @property
    def folder(self) -> str:
        """What trust is stored for."""
        return self._ground.key

    def _load(self, *, trusting: bool = False) -> Current:
        self._looked_at = time.time()
        places = self._places()
        folders = (os.path.join(folder, MANAGED_PARTS) for folder in self._around.managed_folders)
        stamps = {path: _stamp(path) for path in (*(place.path for place in places), *folders)}
        loaded = [self._keep_last_good(load(place)) for place in places]
        loaded = sorted((*loaded, *self._given), key=lambda one: one.at.level)
        entries = self._as_at_start(tuple(entry for one in loaded for entry in entries_of(one)))
        skipped = tuple(note for one in loaded for note in one.skipped)
        pairs = weigh_entries(entries, self._ground, self._default_mode)
        standing = self._standing(pairs, trusting=trusting)
        kept = within_trust((*weigh_entries(self._guards_before(entries), self._ground), *pairs), standing)
        if not self._project_hooks:
            kept = tuple(entry for entry in kept if not _is_folder_hook(entry))
            skipped = tuple(
                replace(note, may_forbid=False) if _is_about_folder_hook(note) else note for note in skipped
            )
        stamps |= {path: _stamp(path) for path in paths_to_watch(kept, self._ground)}
        self._stamps = stamps | {str(self._store.path): _stamp(str(self._store.path))}
        layered = merge_entries(kept, skipped)
        wanted = self._project_hooks and layered.takes_hooks
        return Current(
            values=layered.values,
            lists=layered.lists,
            skipped=layered.skipped,
            standing=standing,
            missing_guards=tuple(_missing_guards(pairs, standing)) if wanted else (),
        )

    def _places(self) -> list[SettingsPath]:
        return [place for place in settings_paths(self._around) if place.level in self._levels]

    def _files(self) -> frozenset[str]:
        """The settings files of the folder, existing or not, by the names that items use for them."""
        return frozenset(self._ground.name_of(place.path) for place in self._places() if place.level.in_folder)

    def _keep_last_good(self, loaded: Loaded) -> Loaded:
        """A file that becomes invalid while in use keeps its last valid content; the note says so."""
        before = self._loaded.get(loaded.at.path)
        if loaded.value is None and loaded.skipped and before is not None and before.value is not None:
            notes = (_still_counts(note) for note in loaded.skipped)
            return replace(before, skipped=(*before.skipped, *notes))
        self._loaded[loaded.at.path] = loaded
        return loaded

    def _as_at_start(self, entries: tuple[Entry, ...]) -> tuple[Entry, ...]:
        if self._at_start is None:
            self._at_start = tuple(entry for entry in entries if entry.key in AT_START)
        return (*self._at_start, *(entry for entry in entries if entry.key not in AT_START))

    def _standing(self, pairs: tuple[Weighed, ...], *, trusting: bool) -> Standing:
        items = items_in(pairs, self._ground)
        if trusting:
            self._sworn = make_agreement(items)
        agreed = self._store.find_agreement(self._ground.key)
        now = self._store.round(self._ground.key)
        if now != self._round:  # a person has agreed to everything present, so what was removed stays removed
            self._guards.clear()
        self._round = now
        if self._sworn is None:
            return standing_of(items, agreed, self._files())
        return standing_of(items, self._sworn, self._files(), also=agreed)

    def _guards_before(self, entries: Iterable[Entry]) -> tuple[Entry, ...]:
        """Deny and ask rules of the folder that have been removed."""
        now = {_guard(entry): entry for entry in entries if _is_guard(entry)}
        missing = tuple(entry for guard, entry in self._guards.items() if guard not in now)
        self._guards |= now
        return missing


def _is_guard(entry: Entry) -> bool:
    return entry.source.level.in_folder and kind_of_entry(entry) in (ItemKind.DENY, ItemKind.ASK)


def _is_folder_hook(entry: Entry) -> bool:
    return entry.key[0] == "hooks" and entry.source.level.in_folder


def _is_about_folder_hook(note: Skipped) -> bool:
    in_hooks = note.place[:1] == ("hooks",) or os.path.basename(note.source.path) == HOOKS_NAME
    return in_hooks and note.source.level.in_folder


def _missing_guards(pairs: Iterable[Weighed], standing: Standing) -> Iterator[Item]:
    for entry, item in pairs:
        if item is not None and _is_folder_hook(entry) and could_refuse(entry.key[1]) and not standing.counts(item):
            yield item


def _guard(entry: Entry) -> _Guard:
    return entry.source.path, entry.key[-1], canonical(entry.value)


def _still_counts(note: Skipped) -> Skipped:
    return replace(note, words=f"{note.words} Its last valid content still applies.", may_forbid=False)


def _stamp(path: str) -> _Stamp:
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return None
    return status.st_dev, status.st_ino, status.st_size, status.st_ctime_ns, status.st_mtime_ns
