"""What git keeps of paths that must not be read, and what holds a command to that.

A rule that denies a path hides the file. Its versions lie in the repository
under other names, so a command that may read those is held as well: by a guard
that leaves the paths out, where all that it asks of git is understood, and
otherwise by hiding the objects. Neither is done unless the paths are in the history.
"""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from ...bash_analysis.git_use import NO_GIT, GitUse
from ...core.values import named_value
from ..processes.covering import INSTALLED, plain_folder
from ..processes.sandbox import Sandbox
from .git_environment import neutralise
from .git_guard import write_guard
from .git_pathspecs import WholeRepository, paths_inside, pathspecs
from .git_places import Repository, find_repository, is_git_folder, submodules_of
from .git_programs import git_output, starts_programs

LOOKING_SECONDS = 1.0
"""Seconds for one look into a history; whatever was not seen by then is assumed to be there."""
MOST_FOLDERS: Final = 20_000
_EMPTY: Final = frozenset(
    {"e69de29bb2d1d6434b8b29ae775ad8c2e48c5391", "473a0f4c3be8a93681a267e3b1e9a7dcda1185436fe141f7749120a303721813"}
)
"""The ids of a file with nothing in it."""


@named_value
class Kept:
    """What a history holds of some paths."""

    paths: frozenset[str] = frozenset()
    renamed: frozenset[str] = frozenset()
    """Other paths of the index, which is a file that anybody can write, that lead to the same contents."""
    blobs: frozenset[str] = frozenset()
    complete: bool = True
    """Whether all of it was seen."""

    def __bool__(self) -> bool:
        return bool(self.paths) or not self.complete

    def with_more(self, more: Kept) -> Kept:
        """What was once there may still be: an object outlives the branch that led to it."""
        return Kept(
            paths=self.paths | more.paths,
            renamed=more.renamed,
            blobs=self.blobs | more.blobs,
            complete=more.complete,
        )


@named_value
class Concerned:
    """A repository with something in its history that must not be read."""

    repository: Repository
    denied: tuple[str, ...] | None
    """Patterns from its top; `None` for all of it."""
    kept: Kept


@named_value
class Hold:
    """What a command is held to because of what git keeps."""

    hidden: tuple[str, ...] = ()
    protected: tuple[str, ...] = ()
    guard: str = ""
    """The folder that holds the `git` to be found first, if one is."""
    uncovered: bool = False
    """Whether the files themselves are left in sight, for a command that would otherwise take them for deleted."""
    notes: tuple[str, ...] = ()

    def environment(self, given: Mapping[str, str]) -> dict[str, str]:
        if not self.guard:
            return dict(given)
        return {**given, "PATH": f"{self.guard}:{given.get('PATH', os.defpath)}", "GIT_NO_REPLACE_OBJECTS": "1"}

    def inside(self, sandbox: Sandbox) -> Sandbox:
        """The sandbox, with what git keeps hidden and the guard in sight."""
        readable = sandbox.readable
        if readable is not None and self.guard:
            readable = (*readable, self.guard)
        return replace(sandbox, readable=readable, hidden=(*sandbox.hidden, *self.hidden))


FREE: Final = Hold()


class GitHistory:
    """Looks into repositories, and remembers what it saw there."""

    def __init__(self, place: Path, *, seconds: float = LOOKING_SECONDS) -> None:
        """`place` is a folder for guards; a look into a history takes no longer than `seconds`."""
        self._place = place
        self._seconds = seconds
        self._seen: dict[tuple[str, tuple[str, ...]], tuple[object, Kept]] = {}
        self._nested: dict[str, tuple[str, ...]] = {}

    async def hold(
        self, patterns: Collection[str], cwd: str, environment: Mapping[str, str], use: GitUse = NO_GIT
    ) -> Hold:
        """What keeps a command from what the absolute patterns mean in any repository it may look into."""
        git = shutil.which("git", path=environment.get("PATH", os.defpath))
        if not patterns:
            return FREE
        quiet = neutralise(environment, ())
        concerned = [
            found
            for repository in await asyncio.to_thread(self._repositories, patterns, cwd, use)
            if (found := await self._find_concerned(repository, patterns, cwd, git, quiet)) is not None
        ]
        if not concerned:
            return FREE
        guarded = await self._guardable(concerned, use, git, environment)
        return await asyncio.to_thread(self._hold, concerned, guarded, use, git or "git")

    def _repositories(self, patterns: Collection[str], cwd: str, use: GitUse) -> tuple[Repository, ...]:
        heads = (plain_folder(pattern)[0] for pattern in patterns)
        found = [find_repository(folder) for folder in dict.fromkeys((cwd, *use.folders, *heads))]
        known = {repository.common: repository for repository in found if repository is not None}
        for root in dict.fromkeys((os.path.realpath(cwd), *(each.root for each in known.values()))):
            for folder in self._find_nested(root):
                inner = find_repository(folder)
                if inner is not None:
                    known.setdefault(inner.common, inner)
        for repository in list(known.values()):
            known |= {each.common: each for each in submodules_of(repository) if each.common not in known}
        return tuple(known.values())

    def _find_nested(self, root: str) -> tuple[str, ...]:
        """Repositories below a folder, looked for once: a command that is held makes none with the same history."""
        if root not in self._nested:
            self._nested[root] = tuple(_walk_repositories(root)) if root != "/" else ()
        return self._nested[root]

    async def _find_concerned(
        self, repository: Repository, patterns: Collection[str], cwd: str, git: str | None, quiet: Mapping[str, str]
    ) -> Concerned | None:
        roots = repository.roots()
        if repository.is_bare:
            # It has no files of its own, so its paths are looked at as if they were those of the folders around it.
            roots = (*roots, os.path.dirname(repository.root), os.path.realpath(cwd))
        try:
            denied = tuple(dict.fromkeys(path for root in roots for path in paths_inside(patterns, root)))
        except WholeRepository:
            return Concerned(repository=repository, denied=None, kept=Kept(complete=False))
        if not denied:
            return None
        kept = await self._find_kept(repository, denied, git, quiet)
        return Concerned(repository=repository, denied=denied, kept=kept) if kept else None

    async def _find_kept(
        self, repository: Repository, denied: tuple[str, ...], git: str | None, quiet: Mapping[str, str]
    ) -> Kept:
        """Looked up once for each state of HEAD, the index and the references."""
        key, stamp = (repository.folder, denied), _stamp(repository)
        last, before = self._seen.get(key, (None, Kept()))
        if last == stamp:
            return before
        found = before.with_more(await self._look(repository, denied, git, quiet))
        self._seen[key] = (stamp, found)
        return found

    async def _look(
        self, repository: Repository, denied: tuple[str, ...], git: str | None, quiet: Mapping[str, str]
    ) -> Kept:
        if git is None:
            return Kept(complete=False)
        try:
            async with asyncio.timeout(self._seconds):
                return await _look(repository, denied, git, quiet)
        except TimeoutError:
            return Kept(complete=False)

    async def _guardable(
        self, concerned: Iterable[Concerned], use: GitUse, git: str | None, environment: Mapping[str, str]
    ) -> frozenset[str]:
        """The repositories, by their common folders, that may stay in sight behind a guard."""
        if not use.guarded or git is None:
            return frozenset()
        used = {found.common for folder in use.folders if (found := find_repository(folder)) is not None}
        guarded: set[str] = set()
        for each in concerned:
            repository = each.repository
            if repository.common not in used or each.denied is None or _is_read(repository, use.reads):
                continue
            # Hidden files look deleted to git, and files in sight are for nobody but git.
            if use.changes and (use.reads or not await _changes_safely(each, git, environment)):
                continue
            guarded.add(repository.common)
        return frozenset(guarded)

    def _hold(self, concerned: Collection[Concerned], guarded: frozenset[str], use: GitUse, git: str) -> Hold:
        sealed = [each for each in concerned if each.repository.common not in guarded]
        kept_open = {each.repository.objects for each in concerned if each.repository.common in guarded}
        hidden = [path for each in sealed for path in each.repository.contents() if path not in kept_open]
        protected = [path for each in sealed for path in (each.repository.common, each.repository.folder)]
        behind = [each for each in concerned if each.repository.common in guarded]
        guard = ""
        if behind and (use.shows or use.changes):
            denied = dict.fromkeys(path for each in behind for path in (*(each.denied or ()), *each.kept.renamed))
            guard = write_guard(
                self._place,
                real=git,
                excluded=pathspecs(denied, exclude=True),
                blobs={blob for each in behind for blob in each.kept.blobs},
                complete=all(each.kept.complete for each in behind),
            )
        return Hold(
            hidden=tuple(dict.fromkeys(hidden)),
            protected=tuple(dict.fromkeys((*protected, *([str(self._place)] if guard else ())))),
            guard=guard,
            uncovered=bool(behind) and use.changes,
            notes=tuple(_notes(behind, sealed, use)),
        )


def _notes(behind: Collection[Concerned], sealed: Collection[Concerned], use: GitUse) -> Iterator[str]:
    if behind and use.shows:
        yield f"left out: {_join_names(behind)}"
    if sealed and use.folders:
        yield (
            f"left out: all that git keeps: {_join_names(sealed)} is in the history and a rule denies reading it. "
            "git status, log, diff, show, grep, blame, add and commit work in a command of their own."
        )


def _join_names(concerned: Iterable[Concerned]) -> str:
    names = list(dict.fromkeys(name for each in concerned for name in _names(each)))
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return ", ".join(names[:5]) + more


def _names(concerned: Concerned) -> Iterator[str]:
    """What is left out, by the names of folders where a rule names those."""
    if concerned.denied is None:
        yield f"{concerned.repository.root}/"
        return
    plain = [pattern.removeprefix("**/") for pattern in concerned.denied]
    yield from () if concerned.kept.complete else plain
    for path in sorted(concerned.kept.paths | concerned.kept.renamed):
        folder = next((f"{name}/" for name in plain if f"/{name}/" in f"/{path}"), None)
        yield folder or path


def _walk_repositories(root: str) -> Iterator[str]:
    left = MOST_FOLDERS
    for place, folders, files in os.walk(root):
        left -= 1
        if left < 0:
            return
        if place != root and (".git" in folders or ".git" in files or is_git_folder(place)):
            yield place
        folders[:] = [name for name in folders if name not in INSTALLED and not is_git_folder(place)]


def _is_read(repository: Repository, paths: Iterable[str]) -> bool:
    """Whether another program may open the objects: what it reads lies in the git folder, or holds it."""
    contents = [*repository.contents(), repository.common, repository.folder]
    for path in map(os.path.realpath, paths):
        if any(f"{place}/".startswith(f"{path.rstrip('/')}/") or path.startswith(f"{place}/") for place in contents):
            return True
    return False


async def _changes_safely(concerned: Concerned, git: str, environment: Mapping[str, str]) -> bool:
    """Whether changing the repository runs no program that could look, and puts nothing where it may be read."""
    repository, kept = concerned.repository, concerned.kept
    if not repository.knows or any(worktree != repository.root for worktree in repository.worktrees):
        return False
    if not kept.complete or kept.renamed:
        return False
    return not await starts_programs(repository, git, environment)


def _stamp(repository: Repository) -> object:
    names = ("HEAD", "index", "logs/HEAD", "packed-refs", "FETCH_HEAD", "refs/stash", "refs/heads", "refs/tags", "refs")
    places = dict.fromkeys((repository.folder, repository.common))
    return tuple(_stamp_of(os.path.join(place, name)) for place in places for name in names)


def _stamp_of(path: str) -> tuple[int, int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


async def _look(repository: Repository, denied: tuple[str, ...], git: str, quiet: Mapping[str, str]) -> Kept:
    here = (git, f"--git-dir={repository.folder}")
    wanted = tuple(pathspecs(denied, exclude=False))
    walk = ("log", "--all", "--reflog", "--raw", "--no-abbrev", "--no-renames", "-m", "--root", "--full-history")
    walked, staged, chosen = await asyncio.gather(
        git_output((*here, *walk, "--format=", "-z", "--", *wanted), quiet, repository.folder),
        git_output((*here, "ls-files", "--stage", "-z"), quiet, repository.folder),
        git_output((*here, "ls-files", "--stage", "-z", "--", *wanted), quiet, repository.folder),
    )
    if walked is None or staged is None or chosen is None:
        return Kept(complete=False)
    found = {*_of_log(walked), *_of_index(chosen)}
    blobs = {blob for blob, _ in found if blob.strip("0")} - _EMPTY
    paths = {path for _, path in found}
    renamed = {path for blob, path in _of_index(staged) if blob in blobs} - paths
    return Kept(paths=frozenset(paths), renamed=frozenset(renamed), blobs=frozenset(blobs))


def _of_log(output: bytes) -> Iterator[tuple[str, str]]:
    """The id and the path of each file before and after each change."""
    parts = os.fsdecode(output).split("\0")
    for at, part in enumerate(parts[:-1]):
        head = part.lstrip("\n")
        if head.startswith(":") and head.count(" ") == 4:
            _, _, before, after, _ = head.split(" ")
            yield before, parts[at + 1]
            yield after, parts[at + 1]


def _of_index(output: bytes) -> Iterator[tuple[str, str]]:
    for entry in os.fsdecode(output).split("\0"):
        head, _, path = entry.partition("\t")
        if path:
            yield head.split(" ")[1], path
