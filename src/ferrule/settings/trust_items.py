"""What a folder defines that can run code or widen permissions, as items that a person can trust.

An item is one entry of a settings file of the folder, or one file of an agent,
a skill or a command. Its digest covers what it says and the files of the
folder that its command names, so a script that changes is a change too. Rules
that deny or ask need no agreement. They are items as well, and so are hooks,
because removing one of them may widen what the others allow.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any, Final

from ..core.values import named_value
from ..host.files.open_files import digest_of, open_for_reading
from ..host.files.text_files import NotText
from ..host.git.checkouts import Checkout
from .command_files import paths_named, uncovered_parts
from .layers import ALLOW, ASK, DENY, DIRECTORIES, MODE, canonical
from .marketplaces import MARKETPLACES, files_of_marketplace, texts_in
from .settings_entries import Entry, Key
from .settings_loading import content_of
from .untrusted_keys import narrows

LARGEST_SCRIPT: Final = 256 << 10
"""Bytes of a file that is identified by its content; a larger one is identified by its directory entry."""
LONGEST_WORDS: Final = 2000
"""Length of a command that a person is asked to trust; they must see all of it, so a longer one is marked."""
LONGEST_PART: Final = 80
_HELPERS: Final = frozenset({"apiKeyHelper", "otelHeadersHelper", "statusLine", "fileSuggestion"})


class ItemKind(StrEnum):
    """In the order in which they are shown to a person."""

    HOOK = "hook"
    SERVER = "server"
    HELPER = "helper command"
    VARIABLE = "environment variable"
    ALLOW = "allow rule"
    DIRECTORY = "added directory"
    MODE = "permission mode"
    SETTING = "setting"
    AGENT = "agent"
    SKILL = "skill"
    COMMAND = "command"
    STYLE = "output style"
    """A file that only has words: never an item."""
    DENY = "deny rule"
    ASK = "ask rule"

    @property
    def guards(self) -> bool:
        """Whether it may restrict the rest."""
        return self in (ItemKind.HOOK, ItemKind.DENY, ItemKind.ASK)

    @property
    def waits(self) -> bool:
        """Whether it applies only in a trusted folder."""
        return self not in (ItemKind.DENY, ItemKind.ASK)


@named_value
class Item:
    kind: ItemKind
    file: str
    """Relative to the root of the checkout, so that it is the same in all worktrees."""
    words: str
    """For a person. Values of variables are not in it."""
    digest: str
    uncovered: tuple[str, ...] = ()
    """What it runs whose content is not part of the digest. Not stored, but shown to whoever agrees."""


@named_value
class ProjectFolder:
    """The folder that is trusted or not: the start folder, and the checkout around it."""

    cwd: str
    real_cwd: str
    key: str
    """The key that trust is stored under: the main checkout, or the folder itself outside of one and in the home."""
    roots: tuple[str, ...]
    """This checkout before the main one, which may contain it."""

    @classmethod
    def of(cls, cwd: str, checkout: Checkout | None, home: str) -> ProjectFolder:
        real_cwd = os.path.realpath(cwd)
        if checkout is None or checkout.main == os.path.realpath(home):
            return cls(cwd=cwd, real_cwd=real_cwd, key=real_cwd, roots=(real_cwd,))
        roots = tuple(dict.fromkeys((checkout.root, checkout.main)))
        return cls(cwd=cwd, real_cwd=real_cwd, key=checkout.main, roots=roots)

    def holds(self, path: str) -> bool:
        return any(is_below(path, root) for root in (*self.roots, self.cwd))

    def name_of(self, path: str) -> str:
        """The name of the file relative to the root it belongs to."""
        if is_below(path, self.cwd):
            path = self.real_cwd + path[len(self.cwd.rstrip("/")) :]
        root = next((root for root in self.roots if is_below(path, root)), None)
        return path if root is None else path[len(root.rstrip("/")) + 1 :]


def is_below(path: str, folder: str) -> bool:
    """
    >>> is_below("/srv/a", "/srv"), is_below("/srv", "/srv"), is_below("/srv", "/"), is_below("/", "/")
    (True, False, True, False)
    """
    return path != folder and path.startswith(f"{folder.rstrip('/')}/")


def kind_of_entry(entry: Entry) -> ItemKind | None:
    """`None` for what always applies and guards nothing."""
    key = entry.key
    if entry.key in _RULES:
        return _RULES[key]
    if key == MODE:
        return ItemKind.MODE
    if narrows(key, entry.value):
        return None
    return _TOP.get(key[0], ItemKind.HELPER if key[0] in _HELPERS else ItemKind.SETTING)


_RULES: Final[Mapping[Key, ItemKind]] = {
    ALLOW: ItemKind.ALLOW,
    ASK: ItemKind.ASK,
    DENY: ItemKind.DENY,
    DIRECTORIES: ItemKind.DIRECTORY,
}
_TOP: Final[Mapping[str, ItemKind]] = {"hooks": ItemKind.HOOK, "mcpServers": ItemKind.SERVER, "env": ItemKind.VARIABLE}


def modes_before(entries: Sequence[Entry], entry: Entry, default: str) -> tuple[str, ...]:
    """The modes that an entry could replace, whichever of the files before it apply."""
    before = entries[: next(at for at, one in enumerate(entries) if one is entry)]
    return (default, *(one.value for one in before if one.key == MODE))


def item_of_entry(entry: Entry, ground: ProjectFolder, digests: dict[str, str | None] | None = None) -> Item | None:
    """`None` for what does not need trust: entries from elsewhere, and harmless ones.

    With `digests`, files that many entries name are read once.
    """
    kind = kind_of_entry(entry) if entry.source.level.in_folder else None
    if kind is None:
        return None
    file = ground.name_of(entry.source.path)
    named: Any = digest_named_files(_commands_of(entry, kind), (ground.cwd,), ground, digests)
    if entry.key[0] == MARKETPLACES:
        named = _digests_of_marketplace(entry.value, ground)
    digest = digest_for(kind, file, [list(entry.key), entry.value, named])
    uncovered = uncovered_by(_command_lines(entry, kind), ground)
    return Item(kind=kind, file=file, words=_words(kind, entry), digest=digest, uncovered=uncovered)


def paths_to_watch(entries: Iterable[Entry], ground: ProjectFolder) -> Iterator[str]:
    """Files whose change makes it a different item."""
    for entry in entries:
        kind = kind_of_entry(entry) if entry.source.level.in_folder else None
        if kind is not None:
            yield from paths_in_commands(_commands_of(entry, kind), (ground.cwd,), ground)


def digest_for(kind: ItemKind, file: str, value: Any) -> str:
    return digest_of(canonical([kind, file, value]).encode())


def digest_named_files(
    commands: Iterable[str], bases: tuple[str, ...], ground: ProjectFolder, digests: dict[str, str | None] | None = None
) -> Mapping[str, str]:
    """The files of the folder that these commands name, each with the digest of its content."""
    known = {} if digests is None else digests
    found = dict[str, str]()
    for path in paths_in_commands(commands, bases, ground):
        if path not in known:
            known[path] = _digest_at(path)
        digest = known[path]
        if digest is not None:
            found[ground.name_of(path)] = digest
    return found


def paths_in_commands(commands: Iterable[str], bases: tuple[str, ...], ground: ProjectFolder) -> Iterator[str]:
    """The paths below the folder that these commands could name, existing or not."""
    for command in commands:
        yield from paths_named(command, bases, ground.cwd, ground.holds)


def uncovered_by(commands: Iterable[str], ground: ProjectFolder) -> tuple[str, ...]:
    """What these commands run that no digest covers, as text for a person."""
    parts = (part for command in commands for part in uncovered_parts(command, ground.cwd))
    return tuple(dict.fromkeys(shorten(part, LONGEST_PART) for part in parts))


def _digest_at(path: str) -> str | None:
    """`None` for anything but a regular file."""
    try:
        if not os.path.isfile(path):
            return None
        with open_for_reading(path) as descriptor:
            status = os.fstat(descriptor)
            if status.st_size > LARGEST_SCRIPT:
                return f"{status.st_ino} {status.st_size} {status.st_mtime_ns} {status.st_ctime_ns}"
        return digest_of(content_of(path))
    except (OSError, NotText, ValueError):
        return None


def _digests_of_marketplace(value: Any, ground: ProjectFolder) -> Mapping[str, str]:
    files = files_of_marketplace(value, ground.cwd)
    if files is None:
        return {"": os.urandom(8).hex()}  # never the same, so never trusted
    digests = ((ground.name_of(path), _digest_at(path)) for path in sorted(files))
    return {name: digest for name, digest in digests if digest is not None}


def _commands_of(entry: Entry, kind: ItemKind) -> Iterable[str]:
    """Every text in the value: only the code that runs them knows which of its keys are run."""
    return texts_in(entry.value) if kind in (ItemKind.HOOK, ItemKind.SERVER, ItemKind.HELPER) else ()


def _command_lines(entry: Entry, kind: ItemKind) -> Iterator[str]:
    """What is run, as one text for each command."""
    if kind not in (ItemKind.HOOK, ItemKind.SERVER, ItemKind.HELPER):
        return
    value = entry.value["hook"] if kind is ItemKind.HOOK else entry.value
    if isinstance(value, str):
        yield value
    elif command := value.get("command"):
        arguments = value.get("args", ())
        yield shlex.join((command, *arguments)) if arguments or kind is ItemKind.SERVER else command


def _words(kind: ItemKind, entry: Entry) -> str:
    match kind:
        case ItemKind.HOOK:
            hook = entry.value["hook"]
            what = next((hook[key] for key in ("command", "function", "url", "tool", "prompt") if key in hook), "")
            given = [canonical(hook["input"])] if "input" in hook else hook.get("args", [])
            what = " ".join([*([hook["server"]] if "server" in hook else []), what, *given])
            matcher = entry.value["matcher"]
            words = f"{entry.key[1]}{f' ({matcher})' if matcher else ''}: {what}"
        case ItemKind.SERVER:
            what = entry.value.get("url") or " ".join([entry.value.get("command", ""), *entry.value.get("args", [])])
            words = f"{entry.key[1]}: {what}"
        case ItemKind.VARIABLE:
            words = entry.key[1]
        case ItemKind.ALLOW | ItemKind.ASK | ItemKind.DENY | ItemKind.DIRECTORY | ItemKind.MODE:
            words = str(entry.value)
        case _:
            value = entry.value if isinstance(entry.value, str) else canonical(entry.value)
            words = ".".join(entry.key) if entry.key[0] == "apiKey" else f"{'.'.join(entry.key)}: {value}"
    return shorten(words)


def printable(words: str) -> str:
    """On one line, and without terminal control characters."""
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in words)


def shorten(words: str, longest: int = LONGEST_WORDS) -> str:
    """Printable, and with a note if something is left out.

    >>> shorten("abcdef", 3)
    'abc... (3 more characters)'
    """
    plain = printable(words)
    return plain if len(plain) <= longest else f"{plain[:longest]}... ({len(plain) - longest:,} more characters)"
