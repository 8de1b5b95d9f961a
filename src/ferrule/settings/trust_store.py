"""Which folders a person trusts, and with which content.

Trust is stored for a checkout as the items that were agreed to. Newer items do
not apply until somebody agrees to them. If a hook, or a rule that denies or asks,
was removed, nothing that needs trust applies: it may have been what made the rest
acceptable.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, TypeAlias

from ..core.values import named_value
from ..host.files.atomic_writes import write_file
from ..host.files.held_folders import ChangedMeanwhile
from ..host.files.open_files import FileIdentity, read_document
from ..host.files.text_files import NotText
from ..host.storage.session_folder import make_private
from .folder_items import items_of_folder
from .layers import MODE
from .levels import SettingsContext
from .settings_entries import Entry, Key
from .settings_files import PROJECT_SERVERS
from .trust_items import Item, ItemKind, ProjectFolder, item_of_entry, modes_before
from .untrusted_keys import is_stricter

STORE_NAME: Final = "trust.json"
VERSION: Final = 1
MOST_TRIES: Final = 100

_EVERY_SERVER: Final[Key] = ("enableAllProjectMcpServers",)
_ENABLED_SERVERS: Final[Key] = ("enabledMcpjsonServers",)

Agreed: TypeAlias = Mapping[str, tuple[Item, ...]]
"""Items by the file that contains them."""


Weighed: TypeAlias = tuple[Entry, Item | None]


class NotStored(Exception):
    """Trust could not be saved or withdrawn. The message says why."""


@named_value
class Standing:
    """The trust in a folder at one moment."""

    trusted: bool
    """Whether anybody has agreed to anything here."""
    items: tuple[Item, ...]
    """Everything that can run code or widen permissions, or that guards."""
    counting: frozenset[str]
    """The digests of those that apply."""
    gone: tuple[Item, ...] = ()
    """Guards that were agreed to and have been removed; if there are any, nothing that needs trust applies."""

    @property
    def new(self) -> tuple[Item, ...]:
        """What is waiting for a person's approval."""
        return tuple(item for item in self.items if item.kind.waits and item.digest not in self.counting)

    @property
    def question(self) -> str:
        """What a person would be asked about, as a digest; empty if there is nothing to ask."""
        asked = sorted(item.digest for item in (*self.new, *self.gone))
        return sha256("\n".join(asked).encode()).hexdigest() if asked else ""

    def counts(self, item: Item) -> bool:
        return not item.kind.waits or item.digest in self.counting


def ground_of(around: SettingsContext) -> ProjectFolder:
    return ProjectFolder.of(around.cwd, around.checkout, around.home)


def weigh_entries(
    entries: Sequence[Entry], ground: ProjectFolder, default_mode: str = "default"
) -> tuple[Weighed, ...]:
    """Each entry with its item. Computed once, so that all later steps use the same items."""
    digests = dict[str, str | None]()
    is_enabled = _servers_enabled_by_user(entries)

    def needs_none(entry: Entry) -> bool:
        return is_enabled(entry) or _is_stricter_mode(entry, entries, default_mode)

    return tuple((entry, None if needs_none(entry) else item_of_entry(entry, ground, digests)) for entry in entries)


def _servers_enabled_by_user(entries: Iterable[Entry]) -> Callable[[Entry], bool]:
    """Whether an entry is a server of `.mcp.json` that the settings outside of the folder enable."""
    every, names = False, set[str]()
    for entry in entries:
        if entry.source.level.in_folder:
            continue
        if entry.key == _EVERY_SERVER:
            every = entry.value is True
        elif entry.key == _ENABLED_SERVERS:
            names.add(entry.value)

    def is_enabled(entry: Entry) -> bool:
        is_server = entry.key[0] == "mcpServers" and os.path.basename(entry.source.path) == PROJECT_SERVERS
        return is_server and (every or entry.key[-1] in names)

    return is_enabled


def _is_stricter_mode(entry: Entry, entries: Sequence[Entry], default: str) -> bool:
    return entry.key == MODE and is_stricter(entry.value, modes_before(entries, entry, default))


def items_in(pairs: Iterable[Weighed], ground: ProjectFolder) -> tuple[Item, ...]:
    """From the settings files of the folder, and from its agents, skills and commands."""
    return (*(item for _, item in pairs if item is not None), *items_of_folder(ground))


def standing_of(
    items: tuple[Item, ...], agreed: Agreed | None, files: frozenset[str], *, also: Agreed | None = None
) -> Standing:
    """`files` are those that apply in the start folder: a guard missing from another file means nothing here.

    What was agreed to in `also` applies too, without checking for its guards.
    """
    before, more = _all_of(agreed), _all_of(also)
    there = {item.digest for item in items}
    gone = tuple(item for item in before if item.kind.guards and item.file in files and item.digest not in there)
    counting = frozenset(item.digest for item in (*before, *more) if not gone)
    return Standing(trusted=agreed is not None, items=items, counting=counting, gone=gone)


def _all_of(agreed: Agreed | None) -> tuple[Item, ...]:
    return tuple(item for items in (agreed or {}).values() for item in items)


def make_agreement(items: Iterable[Item]) -> Agreed:
    """What is stored when a person agrees to these."""
    found = dict[str, tuple[Item, ...]]()
    for item in items:
        found[item.file] = (*found.get(item.file, ()), item)
    return found


def within_trust(pairs: Iterable[Weighed], standing: Standing) -> tuple[Entry, ...]:
    """Without what needs trust and does not have it. Deny and ask rules stay."""
    return tuple(entry for entry, item in pairs if item is None or standing.counts(item))


@dataclass(slots=True)
class _Content:
    """The content of the file while it is being changed."""

    folders: dict[str, Agreed]
    rounds: dict[str, int]
    declined: dict[str, str]
    """The last question that a person has answered with no, for each folder."""


class TrustStore:
    """A file that only its owner may read or write. If anybody else could have written it, it is treated as empty."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / STORE_NAME

    def find_agreement(self, key: str) -> Agreed | None:
        """`None` if nobody has agreed to anything."""
        return self._content().folders.get(key)

    def round(self, key: str) -> int:
        """How often somebody has agreed to a whole folder, as opposed to one rule."""
        return self._content().rounds.get(key, 0)

    def agree(self, ground: ProjectFolder, items: Iterable[Item], files: frozenset[str]) -> None:
        """Trusts these items, which are all that these files contain; trust in other files is kept."""
        new = make_agreement(items)

        def change(content: _Content) -> None:
            old = content.folders.get(ground.key, {})
            kept = {file: found for file, found in old.items() if file not in files}
            content.folders[ground.key] = {**kept, **new}
            content.rounds[ground.key] = content.rounds.get(ground.key, 0) + 1
            content.declined.pop(ground.key, None)

        self._change(change)

    def last_declined(self, key: str) -> str:
        """The question that was last answered with no; empty if none was."""
        return self._content().declined.get(key, "")

    def decline(self, key: str, question: str) -> None:
        """Not to be asked again until the question changes."""
        self._change(lambda content: content.declined.update({key: question}))

    def revoke(self, key: str) -> bool:
        """Whether there was anything to withdraw."""
        if key not in self._content().folders:
            return False
        self._change(lambda content: content.folders.pop(key, None))
        return True

    def agree_to_one(self, ground: ProjectFolder, item: Item) -> None:
        """Trusts an item that a person has just added, and nothing else."""

        def change(content: _Content) -> None:
            old = content.folders.get(ground.key, {})
            others = (one for one in old.get(item.file, ()) if one.digest != item.digest)
            content.folders[ground.key] = {**old, item.file: (*others, item)}

        self._change(change)

    def _content(self) -> _Content:
        """Empty if it cannot be read or relied on: then nothing is trusted."""
        try:
            return self._read()[0]
        except (NotStored, OSError):
            return _Content({}, {}, {})

    def _read(self) -> tuple[_Content, FileIdentity]:
        try:
            snapshot = read_document(str(self.path))
            status = os.stat(self.path)
        except (NotText, ChangedMeanwhile) as error:
            raise NotStored(f"{self.path} cannot be read: {error}.") from None
        if status.st_uid != os.geteuid() or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise NotStored(f"{self.path} could have been written by others. Remove it, then trust anew.")
        try:
            text = snapshot.document.text or "{}"  # another process has just made it
            return _parse_store(json.loads(text)), snapshot.identity
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise NotStored(f"{self.path} is damaged. Remove it, then trust anew.") from None

    def _change(self, change: Callable[[_Content], object]) -> None:
        try:
            self._make()
            for _ in range(MOST_TRIES):
                content, identity = self._read()
                change(content)
                with suppress(ChangedMeanwhile):  # another process was quicker
                    write_file(str(self.path), _encode_store(content), expected=identity)
                    return
        except OSError as error:
            raise NotStored(f"{self.path} cannot be written: {error.strerror or error}.") from None
        raise NotStored(f"{self.path} is being changed all the time. Try again later.")

    def _make(self) -> None:
        make_private(self.path.parent)
        with suppress(FileExistsError):
            os.close(os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))


def _parse_store(content: Any) -> _Content:
    """Raises one of the errors for malformed data."""
    if content == {}:
        return _Content({}, {}, {})
    if content["version"] != VERSION:
        raise ValueError("of another version")
    folders: dict[str, Agreed] = {
        folder: {file: tuple(_item(file, one) for one in items) for file, items in files.items()}
        for folder, files in content["folders"].items()
    }
    rounds = {folder: int(count) for folder, count in content["rounds"].items()}
    declined = {folder: str(question) for folder, question in content.get("declined", {}).items()}
    return _Content(folders, rounds, declined)


def _item(file: str, one: Mapping[str, str]) -> Item:
    return Item(kind=ItemKind(one["kind"]), file=file, words=one["words"], digest=one["digest"])


def _encode_store(content: _Content) -> bytes:
    folders = {
        folder: {
            file: [{"kind": item.kind, "words": item.words, "digest": item.digest} for item in items]
            for file, items in files.items()
        }
        for folder, files in content.folders.items()
    }
    plain = {"version": VERSION, "folders": folders, "rounds": content.rounds, "declined": content.declined}
    return (json.dumps(plain, indent=1, sort_keys=True) + "\n").encode()
