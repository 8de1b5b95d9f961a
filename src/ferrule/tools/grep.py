"""Search the content of files with a regular expression."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import accumulate, groupby, pairwise, takewhile
from typing import Literal, Self, TypeAlias

from pydantic import Field

from ..core.content import Block, Listing, Table, Text, View
from ..core.context import ToolContext
from ..core.effects import Effects, ReadsPath
from ..core.inputs import PathText, ToolInput
from ..core.tool import Alias, ToolError, load_guide
from ..core.values import plain_value
from ..host.files.ledger import Ledger, Ledgers, Stamp
from ..host.files.workfiles import if_moved
from ..host.search.file_search import End, MatchedLine, Search, SearchFailed
from ..host.search.globs import BadGlob, split_globs
from ..host.search.hits import FileHits, LineHits, Query, SearchPlace
from ..text.lines import on_one_line, shorten_path
from . import BuiltinTool, Services

HEAD_LIMIT = 250
RESULT_LIMIT = 20_000

Mode: TypeAlias = Literal["files_with_matches", "content", "count"]


class GrepInput(ToolInput):
    pattern: str = Field(min_length=1, description="The regular expression to look for, in ripgrep's syntax.")
    path: PathText | None = Field(
        default=None, description="The file or directory to search. Omit for the working directory."
    )
    output_mode: Mode = Field(
        default="files_with_matches",
        description="Paths (files_with_matches), matching lines (content), or how many each file has (count).",
    )
    glob: str | None = Field(
        default=None,
        min_length=1,
        description='Only files whose path matches: "*.py", "*.md,*.ts", "src/**"; not "!*.js".',
    )
    file_type: str | None = Field(
        default=None, alias="type", min_length=1, description='Only files of this type: "py", "js", "rust", "go" …'
    )
    after: int = Field(default=0, alias="-A", ge=0, description="Lines to show after each match, in content mode.")
    before: int = Field(default=0, alias="-B", ge=0, description="Lines to show before each match, in content mode.")
    context: int = Field(
        default=0, alias="-C", ge=0, description="Lines to show before and after each match, in content mode."
    )
    line_numbers: bool = Field(default=True, alias="-n", description="Whether content mode shows line numbers.")
    ignore_case: bool = Field(default=False, alias="-i", description="Whether upper and lower case are the same.")
    only_matching: bool = Field(
        default=False, alias="-o", description="Show, or count, each match by itself and not its whole line."
    )
    multiline: bool = Field(default=False, description="Whether a match may span lines; `.` then matches newlines.")
    head_limit: int = Field(default=HEAD_LIMIT, ge=0, description="How many files or lines to give at most; 0 for all.")
    offset: int = Field(default=0, ge=0, description="How many files or lines to skip first.")
    include_ignored: bool = Field(default=False, description="Whether to search files that git ignores, too.")


@plain_value
class MatchingFiles:
    """Files with matches, newest first, from `offset` on."""

    paths: tuple[str, ...]
    offset: int
    total: int
    notes: tuple[str, ...] = ()
    folder: str = ""
    """The folder from which the model reads the paths; empty for absolute ones."""
    searched: str = ""
    """Where it looked."""


@plain_value
class MatchCounts:
    counts: tuple[tuple[str, int], ...]
    offset: int
    total: int
    matches: int
    notes: tuple[str, ...] = ()
    folder: str = ""
    searched: str = ""
    replaced_by: str | None = None
    """What a step after the call shows instead."""


@plain_value
class MatchingLines:
    """Lines in the order of their paths, from `offset` on."""

    lines: tuple[MatchedLine, ...]
    offset: int
    seen: int
    complete: bool
    """Whether `seen` is all there are; if not, there are at least that many."""
    total: int | None = None
    """How many there are, where that was counted."""
    numbered: bool = True
    grouped: bool = False
    """Whether neighbouring lines were asked for, so that gaps between groups are worth marking."""
    notes: tuple[str, ...] = ()
    folder: str | None = ""
    """As above; `None` where all lines are of the one file that was asked for, whose path is left out."""
    searched: str = ""
    replaced_by: str | None = None


Grepped: TypeAlias = MatchingFiles | MatchCounts | MatchingLines


class Grep(BuiltinTool[GrepInput, Grepped]):
    name = "Grep"
    description = load_guide(__file__)
    hint = "search the content of files"
    input_model = GrepInput
    needs = "search"
    aliases = (Alias("grep_search", rename={"include": "glob"}, fixed={"output_mode": "content"}),)
    result_limit = RESULT_LIMIT
    time_limit = 60.0
    only_reads = True

    def __init__(self, search: Search | None = None, ledgers: Ledgers | None = None, *, concise: bool = True) -> None:
        """`concise` where the model reads paths relative to the working directory, and none of a single file."""
        self._search = search or Search()
        self._ledgers = ledgers or Ledgers()
        self._concise = concise

    @classmethod
    def from_services(cls, services: Services) -> Self:
        return cls(services.search, services.files.ledgers, concise=services.concise)

    def unavailable(self) -> str | None:
        return self._search.unavailable()

    def effects(self, input: GrepInput, ctx: ToolContext) -> Effects:
        globs = split_globs(input.glob or "")
        one = globs[0] if len(globs) == 1 and not globs[0].startswith("!") else ""
        return Effects.of(ReadsPath(input.path or ctx.cwd, names=one.strip("/")))

    async def validate(self, input: GrepInput, ctx: ToolContext) -> None:
        path = input.path or ctx.cwd
        try:
            mode = os.stat(path).st_mode
        except OSError as error:
            said = f"{path} cannot be searched: {error.strerror}. Use Glob to find the file."
            raise ToolError(said + if_moved(ctx)) from None
        if not (stat.S_ISDIR(mode) or stat.S_ISREG(mode)):
            raise ToolError(f"{path} is neither a file nor a directory. Pass one of them as `path`.")

    async def call(self, input: GrepInput, ctx: ToolContext) -> Grepped:
        try:
            found = await self._grep(input, input.path or ctx.cwd, ctx)
        except BadGlob as error:
            raise ToolError(f'`glob` "{input.glob}" is not a pattern that a path can match: {error}.') from None
        except SearchFailed as error:
            raise ToolError(f"{error}\nCorrect `pattern` or `type`, and search again.") from None
        if isinstance(found, MatchingLines) and not input.only_matching:
            remember(found.lines, self._ledgers.of(ctx.facts.agent), ctx.call_id)
        found = replace(found, searched=input.path or ctx.cwd)
        if not self._concise:
            return found
        if isinstance(found, MatchingLines) and input.path and not os.path.isdir(input.path):
            return replace(found, folder=None)
        return replace(found, folder=ctx.cwd)

    async def _grep(self, input: GrepInput, path: str, ctx: ToolContext) -> Grepped:
        place = SearchPlace(
            path=path,
            glob=input.glob,
            file_type=input.file_type,
            include_ignored=input.include_ignored,
            judged=ctx.real(path),
        )
        keep = input.offset + input.head_limit if input.head_limit else None
        match input.output_mode:
            case "files_with_matches":
                return self._files(input, await self._search.files_with_matches(place, _query(input), keep=keep))
            case "count":
                return self._counts(input, await self._search.counts(place, _query(input), keep=keep))
            case "content":
                limit = input.head_limit or None
                found = await self._search.lines(place, _query(input), offset=input.offset, limit=limit)
                return self._lines(input, found)

    def _notes(self, found: FileHits | LineHits) -> tuple[str, ...]:
        return (*found.ending.notes(self._search.seconds), *found.left_out.notes())

    def _files(self, input: GrepInput, found: FileHits) -> MatchingFiles:
        paths = tuple(hit.path for hit in found.hits[input.offset :])
        return MatchingFiles(paths, input.offset, found.total, self._notes(found))

    def _counts(self, input: GrepInput, found: FileHits) -> MatchCounts:
        counts = tuple((hit.path, hit.count) for hit in found.hits[input.offset :])
        notes = self._notes(found)
        return MatchCounts(counts, input.offset, found.total, found.matches, notes)

    def _lines(self, input: GrepInput, found: LineHits) -> MatchingLines:
        return MatchingLines(
            found.lines,
            input.offset,
            found.seen,
            complete=found.ending.end is End.WHOLE,
            total=found.total,
            numbered=input.line_numbers,
            grouped=_reach(input) != (0, 0) and not input.only_matching,
            notes=self._notes(found),
        )

    def to_model(self, output: Grepped) -> tuple[Block, ...]:
        return (Text(render_matches(output)),)

    def describe(self, input: GrepInput) -> str:
        pattern = " ".join(input.pattern.split())
        short = pattern if len(pattern) <= 80 else f"{pattern[:79]}…"
        return f"Grep {short}" + (f" in {input.path}" if input.path else "")

    def show_result(self, input: GrepInput, output: Grepped) -> View:
        match output:
            case MatchingFiles():
                return Listing(tuple(map(on_one_line, output.paths)), output.total)
            case MatchCounts():
                rows = tuple((on_one_line(path), str(count)) for path, count in output.counts)
                return Table(("file", "matches"), rows)
            case MatchingLines():
                return Listing(tuple(_line(line, numbered=output.numbered) for line in output.lines), output.seen)


def render_matches(output: Grepped) -> str:
    """What the model reads; what hooks and programs read, where `folder` is empty."""
    match output:
        case MatchingFiles(folder=folder):
            lines = [shorten_path(path, folder) for path in output.paths]
            lines += _page(len(output.paths), output.offset, output.total)
        case MatchCounts(replaced_by=str(text)) | MatchingLines(replaced_by=str(text)):
            return text
        case MatchCounts(folder=folder):
            lines = [f"{shorten_path(path, folder)}:{count}" for path, count in output.counts]
            lines += _page(len(lines), output.offset, output.total)
            if output.counts:
                lines.append(f"[{output.matches:,} in all, in {_number(output.total, 'file')}.]")
        case MatchingLines():
            lines = [*_render(output), *_more(output)]
    return "\n".join(
        (*(lines or [f"No match in {on_one_line(output.searched)}."]), *(f"[{note}]" for note in output.notes))
    )


def remember(lines: Sequence[MatchedLine], ledger: Ledger, call_id: str) -> None:
    """Lines that were shown in full are recorded as read; a long result loses its middle, so only its beginning is.

    A file of which no line is known exactly is recorded as seen.
    """
    sizes = accumulate(len(_line(line, numbered=True)) + 1 for line in lines)
    count = sum(1 for _ in takewhile(lambda size: size <= RESULT_LIMIT // 2, sizes))
    numbered = (line for line in lines[:count] if line.number)
    for path, found in groupby(numbered, lambda line: line.path):
        with suppress(OSError):  # gone since it was found
            real_path, stamp = os.path.realpath(path), Stamp.of(os.stat(path))
            ledger.note_shown(call_id, real_path)
            exact = [line for line in found if line.is_exact]
            for first, texts in _runs(exact):
                ledger.saw_lines(real_path, stamp, first=first, lines=texts)
            if not exact and ledger.seen(real_path) is None:  # otherwise it would be taken for seen as it is now
                ledger.saw_lines(real_path, stamp, first=1, lines=[])


def _runs(lines: Sequence[MatchedLine]) -> Iterator[tuple[int, list[str]]]:
    """Lines of one file that follow each other, with the number of the first."""
    for _, run in groupby(enumerate(lines), lambda pair: pair[1].number - pair[0]):
        followers = [line for _, line in run]
        yield followers[0].number, [line.text for line in followers]


def _query(input: GrepInput) -> Query:
    before, after = _reach(input)
    return Query(
        pattern=input.pattern,
        ignore_case=input.ignore_case,
        multiline=input.multiline,
        only_matching=input.only_matching,
        before=before,
        after=after,
    )


def _reach(input: GrepInput) -> tuple[int, int]:
    """Lines before and after; a value for one side takes precedence over one for both."""
    return input.before or input.context, input.after or input.context


def _page(shown: int, offset: int, total: int) -> Iterator[str]:
    if not shown and total:
        yield f"[There are only {_number(total, 'file')}, and `offset` is {offset}.]"
    elif shown < total:
        last = offset + shown
        on = f" Continue with offset {last}." if last < total else ""
        yield f"[Files {offset + 1:,} to {last:,} of {total:,}, newest first.{on}]"


def _more(output: MatchingLines) -> Iterator[str]:
    """Never a total that is not known."""
    last = output.offset + len(output.lines)
    if not output.lines and output.seen:
        there = "There are" if output.complete else "Until then there were"
        yield f"[{there} only {_number(output.seen, 'line')}, and `offset` is {output.offset}.]"
    elif output.complete and output.offset:
        yield f"[Lines {output.offset + 1:,} to {last:,} of {output.seen:,}.]"
    elif not output.complete and output.seen > last:
        known = output.total is not None and output.total >= output.seen
        there = f"there are {output.total:,}" if known else f"there are at least {output.seen:,}"
        yield (f"[Stopped after {_number(last, 'line')}; {there}. Narrow the search, or continue with offset {last}.]")


def _render(output: MatchingLines) -> Iterator[str]:
    if not output.lines:
        return
    yield _line(output.lines[0], output.folder, numbered=output.numbered)
    for before, line in pairwise(output.lines):
        if output.grouped and (before.path, before.number + 1) != (line.path, line.number):
            yield "--"
        yield _line(line, output.folder, numbered=output.numbered)


def _line(line: MatchedLine, folder: str | None = "", *, numbered: bool) -> str:
    mark = ":" if line.is_match else "-"
    path = "" if folder is None else f"{shorten_path(line.path, folder)}{mark}"
    number = f"{line.number}{mark}" if numbered and line.number else ""
    return f"{path}{number}{line.text}"


def _number(count: int, what: str) -> str:
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"
