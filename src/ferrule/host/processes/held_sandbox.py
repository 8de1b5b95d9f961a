"""The sandbox of a command that nobody approved: it reads what every command may, and changes what it declared.

What is denied or secret below the folders it may read is looked for on disk
right before it starts, and hidden. A file that comes to be there while the
command runs is hidden from the next one.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Final

from ...core.verdicts import Confinement, DeclaredWrite, Grants
from ..git.checkouts import checkout_of
from ..git.git_places import find_repository
from . import spawner
from .covering import HiddenPaths, TooManyEntries
from .held_places import HeldPlaces
from .readable_roots import ReadableRoots, opens_too_much, outermost, python_base
from .sandbox import READ_ONLY, CannotConfine, Keep, Offers, Profile, Sandbox, is_protected, workspace_write

START_UP: Final = (
    ".bashrc", ".bash_profile", ".bash_login", ".bash_aliases", ".bash_logout", ".profile", ".zshrc", ".zprofile",
    ".zshenv", ".zlogin", ".zlogout", ".config/fish", ".bash_history", ".zsh_history", ".python_history",
    ".node_repl_history", ".psql_history", ".mysql_history", ".sqlite_history", ".lesshst", ".viminfo",
    ".local/share/fish", ".local/share/keyrings", ".password-store", ".mozilla", ".config/google-chrome",
    ".config/chromium", ".thunderbird", ".claude.json", ".claude/.credentials.json", ".codex/auth.json",
)  # fmt: skip
"""Hidden where the home itself is the workspace: people keep tokens in them, and programs what was typed."""
TOO_WIDE: Final = ("/", "/home", "/Users", "/mnt", "/media", "/run", "/var")
"""Containers start programs in `/`. As a workspace it is not read as a whole, nor searched."""
ENVIRONMENTS: Final = (".venv", "venv", "env")
"""Where a project keeps its own Python, which is based on one elsewhere."""


class HeldSandboxes:
    """Makes them for one session, and remembers what it found on disk."""

    def __init__(self, places: HeldPlaces, environment: Mapping[str, str]) -> None:
        self._places = places
        self._home = os.path.realpath(environment.get("HOME") or os.path.expanduser("~"))
        self._system = ReadableRoots(environment, (os.path.dirname(spawner.__file__),))
        self._hidden = HiddenPaths(places.secrets)
        self._folders: dict[tuple[str, ...], tuple[str, ...]] = {}
        self.too_many = ""
        """Why nothing can be hidden here, if something was too large to be searched."""

    def roots(self) -> tuple[str, ...]:
        return self._resolve(self._places.roots())

    def writable_folders(self) -> tuple[str, ...]:
        """All folders that some command may write."""
        return self._resolve((*self._places.roots(), *self._places.writable()))

    def _resolve(self, folders: tuple[str, ...]) -> tuple[str, ...]:
        """A folder that is worked in stays where it is as long as the session lasts."""
        known = self._folders.get(folders)
        if known is None:
            known = tuple(dict.fromkeys(os.path.realpath(folder) for folder in folders if folder))
            self._folders[folders] = known
        return known

    def look(self) -> None:
        """Search once for what would be hidden, so that it is known whether it can be."""
        system = self._system.current().readable
        try:
            self._hidden.secret([root for root in _readable_whole(self.roots()) if not _is_in(root, system)])
        except TooManyEntries as reason:
            self.too_many = str(reason)

    def keep_in(self, folders: Iterable[str], offers: Offers, *, lasts: bool) -> Keep:
        """How a command is held to these folders; empty where it cannot be."""
        kept = {offers.keep_for(folder, background=lasts) for folder in folders}
        return "" if "" in kept or not kept else "supervisor" if "supervisor" in kept else "overlay"

    def keep_for(self, writes: Iterable[DeclaredWrite], offers: Offers, *, lasts: bool) -> Keep:
        """How these names can be held to; empty where they cannot, or lie outside of the workspace."""
        roots = self.roots()
        places = [next((root for root in roots if _is_below(one.path, root)), None) for one in writes]
        return "" if None in places else self.keep_in(filter(None, places), offers, lasts=lasts)

    def sandbox(
        self,
        needed: Confinement,
        grants: Grants,
        declared: tuple[DeclaredWrite, ...],
        offers: Offers,
        *,
        git: Collection[str] = (),
    ) -> Sandbox:
        """`declared` are the exact names of the grants; `git` are folders in which git is called.

        Raises `CannotConfine`.
        """
        roots = self.roots()
        readable, hidden = self._reading(needed, grants, roots, git)
        if needed.writable is not None and not needed.read_only:
            keep = self.keep_in(needed.writable, offers, lasts=grants.lasts)
            open_box = workspace_write(*needed.writable, keep=keep)
            protected = (*open_box.protected, *self._find_paths(needed.unwritable, roots))
            return replace(open_box, readable=readable, hidden=hidden, protected=protected)
        box = replace(READ_ONLY, readable=readable, hidden=hidden, network=grants.network)
        if not declared or needed.read_only:
            return box
        keep = self.keep_for(declared, offers, lasts=grants.lasts)
        if not keep:
            raise CannotConfine(f"nothing here holds a command to {declared[0].path} alone.")
        denied = self._find_paths(needed.unwritable, roots)
        return replace(
            box,
            profile=Profile.WORKSPACE_WRITE,
            declared=tuple((one.path, one.tree) for one in declared),
            keep=keep,
            workspace=tuple(root for root in roots if any(_is_below(one.path, root) for one in declared)),
            protected=denied,
            reopened=tuple(_protected_names_declared(declared, roots, denied)),
        )

    def _reading(
        self, needed: Confinement, grants: Grants, roots: tuple[str, ...], git: Collection[str]
    ) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """What may be read, and what is hidden in it."""
        system = self._system.current()
        declared = (path for path in (*grants.reads, *_checkouts(git)) if not opens_too_much(path, self._home))
        asked = (*self._places.readable(), *declared)
        own = outermost((*_readable_whole(roots), *(os.path.realpath(path) for path in asked if os.path.lexists(path))))
        saved = (os.path.realpath(self._places.saved),) if self._places.saved else ()
        readable = (*system.readable, *own, *saved, *_git_folders(roots), *_bases(roots))
        folders = [path for path in own if os.path.isdir(path) and not _is_in(path, system.readable)]
        hidden = [*system.hidden, *self._find_paths(needed.unreadable, (*folders, *saved))]
        named = (*grants.reads, *(one.path for one in grants.writes))
        for secret in self._secrets(folders):
            hidden += all_but(secret, named)
        hidden += self._private(own)
        return outermost(readable), tuple(dict.fromkeys(hidden))

    def _private(self, readable: Iterable[str]) -> Iterator[str]:
        """What is Ferrule's own, or a person's, where the workspace holds it."""
        own = os.path.realpath(self._places.private) if self._places.private else ""
        readable = tuple(readable)
        if own and _is_in(own, readable):
            yield from all_but(own, (self._places.saved,))
        if _is_in(self._home, readable):
            yield from (path for name in START_UP if os.path.lexists(path := os.path.join(self._home, name)))

    def _find_paths(self, patterns: Collection[str], within: Collection[str]) -> tuple[str, ...]:
        if not patterns:
            return ()
        try:
            return self._hidden.matching(patterns, within)
        except TooManyEntries as reason:
            raise CannotConfine(str(reason)) from None

    def _secrets(self, folders: Collection[str]) -> tuple[str, ...]:
        try:
            return self._hidden.secret(folders)
        except TooManyEntries as reason:
            self.too_many = str(reason)
            raise CannotConfine(str(reason)) from None


def _readable_whole(roots: Iterable[str]) -> tuple[str, ...]:
    """What is worked in, without folders that hold everybody's files: there only what is declared is read."""
    return tuple(root for root in roots if root not in TOO_WIDE)


def all_but(path: str, kept: Iterable[str]) -> Iterator[str]:
    """The path, or what is in it beside those that are kept: they were named and allowed."""
    inside = [os.path.realpath(one) for one in kept if one and _is_below(os.path.realpath(one), path)]
    if not inside:
        yield path
    elif path not in inside:
        try:
            names = os.listdir(path)
        except OSError:
            return
        for name in names:
            yield from all_but(os.path.join(path, name), inside)


def _protected_names_declared(
    declared: Iterable[DeclaredWrite], roots: Iterable[str], denied: Collection[str]
) -> Iterator[str]:
    """Declared names that are protected: without an approval only a rule that spells such a name allows it."""
    roots = tuple(roots)
    for one in declared:
        protected = any(_is_below(one.path, root) and is_protected(one.path, root) for root in roots)
        if protected and not any(_is_below(path, one.path) or _is_below(one.path, path) for path in denied):
            yield one.path


def _checkouts(folders: Collection[str]) -> Iterator[str]:
    """The checkouts around folders in which git is called: it shows all of a checkout, from wherever in it."""
    for folder in folders:
        checkout = checkout_of(folder)
        if checkout is not None:
            yield checkout.root


def _git_folders(roots: Iterable[str]) -> Iterator[str]:
    """What git keeps of a workspace elsewhere, where that knows of the workspace too."""
    for root in roots:
        repository = find_repository(root)
        if repository is not None and repository.knows:
            yield from dict.fromkeys((repository.folder, repository.common))


def _bases(roots: Iterable[str]) -> Iterator[str]:
    for root in roots:
        for name in ENVIRONMENTS:
            if base := python_base(os.path.join(root, name)):
                yield base


def _is_in(path: str, folders: Iterable[str]) -> bool:
    return any(_is_below(path, folder) for folder in folders)


def _is_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(f"{folder.rstrip('/')}/")
