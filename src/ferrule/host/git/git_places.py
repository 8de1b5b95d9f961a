"""Where git would look from a folder: its repository, the files that are checked out, the objects. Nothing is run.

A `.git` file, `commondir`, `core.worktree` and `info/alternates` can each lead
anywhere, and come with a folder as any other file does.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from typing import Final

from ...core.effects import ReadsPath, RunsCommand, Touch
from ...core.values import named_value
from .checkouts import first_line, read_small

_DEEPEST: Final = 5
"""How far alternates of alternates are followed; git goes as far."""
_WORKTREE: Final = re.compile(r"(?im)worktree[ \t]*=[ \t]*(.*?)[ \t\r]*$")
"""Wherever it is written: what only looks like the setting must not hide the one that git reads."""
CONTENTS: Final = ("rr-cache", "lfs", "annex", "lost-found", "rebase-apply", "rebase-merge")
"""What holds contents of files in a repository, besides its objects."""


@named_value
class Repository:
    folder: str
    """The git folder of this checkout."""
    common: str
    """The one that all checkouts of the repository share."""
    root: str
    """The folder that git was found in, or for."""
    worktrees: tuple[str, ...] = ()
    """What `core.worktree` says, where it does."""
    is_bare: bool = False
    knows: bool = True
    """Whether the repository lies in `root`, or knows of it: anybody can write a file that points at a repository."""

    @property
    def objects(self) -> str:
        return os.path.join(self.common, "objects")

    def roots(self) -> tuple[str, ...]:
        """The folders that the paths it keeps may be in."""
        linked = (os.path.dirname(back) for back in _linked_worktrees(self.common))
        above = (os.path.dirname(self.common),) if os.path.basename(self.common) == ".git" else ()
        return tuple(dict.fromkeys((self.root, *self.worktrees, *above, *linked)))

    def elsewhere(self) -> Iterator[str]:
        """What git reads outside the places where one would look for it."""
        if not self.knows:
            yield from dict.fromkeys((self.folder, self.common))
        yield from (objects for objects in object_folders(self.objects) if objects != os.path.realpath(self.objects))
        yield from (worktree for worktree in self.worktrees if worktree != self.root)

    def contents(self) -> Iterator[str]:
        """The folders that hold contents of files, those of other repositories that it borrows from included."""
        yield from object_folders(self.objects)
        for place in dict.fromkeys((self.common, self.folder)):
            yield from (path for name in CONTENTS if os.path.isdir(path := os.path.join(place, name)))


def find_repository(folder: str) -> Repository | None:
    """The one that git would use in the folder; `None` outside of any."""
    place = os.path.realpath(folder)
    while True:
        found = _repository_at(place)
        if found is not None:
            return found
        above = os.path.dirname(place)
        if above == place:
            return None
        place = above


def with_repositories(touches: Sequence[Touch]) -> Iterator[Touch]:
    """The touches of commands and, after those of each git command, what it reads elsewhere."""
    runs_git = False
    elsewhere: dict[Touch, None] = {}
    for touch in touches:
        if isinstance(touch, RunsCommand):
            yield from elsewhere
            elsewhere.clear()
            runs_git = bool(touch.argv) and os.path.basename(touch.argv[0]) == "git"
        elif runs_git and isinstance(touch, ReadsPath):
            folder = touch.real or touch.path
            repository = find_repository(folder) if os.path.isdir(folder) else None
            elsewhere |= {ReadsPath(path): None for path in (repository.elsewhere() if repository else ())}
        yield touch
    yield from elsewhere


def submodules_of(repository: Repository) -> Iterator[Repository]:
    """Those whose git folders lie in that of the repository."""
    for place, folders, _ in os.walk(os.path.join(repository.common, "modules")):
        if is_git_folder(place):
            folders[:] = [name for name in folders if name == "modules"]
            worktrees = _worktrees_of(place, place)
            yield Repository(folder=place, common=place, root=(*worktrees, place)[0], worktrees=worktrees)


def is_git_folder(path: str) -> bool:
    return os.path.isfile(os.path.join(path, "HEAD")) and (
        os.path.isfile(os.path.join(path, "commondir"))
        or (os.path.isdir(os.path.join(path, "objects")) and os.path.isdir(os.path.join(path, "refs")))
    )


def object_folders(objects: str) -> tuple[str, ...]:
    """The folder of objects, and those it borrows from."""
    found: dict[str, None] = {}
    _borrow(os.path.realpath(objects), found, _DEEPEST)
    return tuple(found)


def _borrow(objects: str, found: dict[str, None], deepest: int) -> None:
    if objects in found or deepest == 0 or not os.path.isdir(objects):
        return
    found[objects] = None
    for line in (read_small(os.path.join(objects, "info", "alternates")) or "").split("\n"):
        if line and not line.startswith("#"):
            _borrow(os.path.realpath(os.path.join(objects, line.strip('"'))), found, deepest - 1)


def _repository_at(place: str) -> Repository | None:
    entry = os.path.join(place, ".git")
    real = os.path.realpath(entry)
    if os.path.isdir(entry) and is_git_folder(real):
        return _repository(real, place, knows=real == entry)
    pointer = first_line(entry)
    if pointer is not None and pointer.startswith("gitdir: "):
        folder = os.path.realpath(os.path.join(place, pointer.removeprefix("gitdir: ")))
        return _repository(folder, place, knows=False) if is_git_folder(folder) else None
    if is_git_folder(place):
        if os.path.basename(place) == ".git":
            return _repository(place, os.path.dirname(place), knows=True)
        return _repository(place, place, knows=True, is_bare=True)
    return None


def _repository(folder: str, root: str, *, knows: bool, is_bare: bool = False) -> Repository:
    shared = first_line(os.path.join(folder, "commondir"))
    common = os.path.realpath(os.path.join(folder, shared)) if shared else folder
    worktrees = _worktrees_of(folder, common)
    back = first_line(os.path.join(folder, "gitdir"))
    if not knows:
        linked = back is not None and os.path.dirname(os.path.realpath(os.path.join(folder, back))) == root
        knows = worktrees == (root,) or (linked and not worktrees)
    elif shared is not None and is_bare:
        # From inside the git folder of a linked worktree
        knows = os.path.commonpath([common, folder]) == common
    elif shared is not None:
        knows = False
    return Repository(folder=folder, common=common, root=root, worktrees=worktrees, is_bare=is_bare, knows=knows)


def _worktrees_of(folder: str, common: str) -> tuple[str, ...]:
    paths = dict.fromkeys((os.path.join(folder, "config.worktree"), os.path.join(common, "config")))
    said = [value for path in paths for value in _WORKTREE.findall(read_small(path) or "")]
    return tuple(dict.fromkeys(os.path.realpath(os.path.join(folder, value.strip('"'))) for value in said))


def _linked_worktrees(common: str) -> Iterator[str]:
    """The `.git` files of linked worktrees."""
    try:
        names = sorted(os.listdir(os.path.join(common, "worktrees")))
    except OSError:
        return
    for name in names:
        back = first_line(os.path.join(common, "worktrees", name, "gitdir"))
        if back:
            yield os.path.realpath(os.path.join(common, "worktrees", name, back))
