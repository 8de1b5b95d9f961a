"""Find files by name pattern, newest first."""

from __future__ import annotations

import os
from typing import Self

from pydantic import Field

from ..core.content import Block, Listing, Text, View
from ..core.context import ToolContext
from ..core.effects import Effects
from ..core.inputs import PathText, ToolInput
from ..core.tool import Alias, ToolError, load_guide
from ..core.values import plain_value
from ..host.search.file_search import Search, SearchFailed
from ..host.search.globs import BadGlob
from ..host.search.hits import SearchPlace
from ..text.lines import on_one_line, shorten_path
from . import BuiltinTool, Services

LIMIT = 100


class GlobInput(ToolInput):
    pattern: str = Field(min_length=1, description='What the path must match, such as "src/**/*.py".')
    path: PathText | None = Field(default=None, description="The directory to search. Omit for the working directory.")
    include_ignored: bool = Field(default=False, description="Whether to find files that git ignores, too.")


@plain_value
class Found:
    paths: tuple[str, ...]
    """The newest ones."""
    total: int
    notes: tuple[str, ...] = ()
    """Why there may be more."""
    folder: str = ""
    """The folder from which the model reads the paths; empty for absolute ones."""
    searched: str = ""
    """Where it looked, for whoever finds nothing."""


class Glob(BuiltinTool[GlobInput, Found]):
    name = "Glob"
    description = load_guide(__file__)
    hint = "find files by name pattern"
    input_model = GlobInput
    needs = "search"
    aliases = (Alias("list_files"),)
    time_limit = 60.0
    only_reads = True

    def __init__(self, search: Search | None = None, *, concise: bool = True) -> None:
        """`concise` where the model reads paths relative to the working directory."""
        self._search = search or Search()
        self._concise = concise

    @classmethod
    def from_services(cls, services: Services) -> Self:
        return cls(services.search, concise=services.concise)

    def unavailable(self) -> str | None:
        return self._search.unavailable()

    def effects(self, input: GlobInput, ctx: ToolContext) -> Effects:
        return Effects.reading(input.path or ctx.cwd)

    def check(self, input: GlobInput, ctx: ToolContext) -> None:
        if input.pattern.startswith(("/", "~")) or ".." in input.pattern.split("/"):
            raise ToolError(
                f'`pattern` must stay below `path`, and "{input.pattern}" does not. Give the directory as `path`.'
            )

    async def validate(self, input: GlobInput, ctx: ToolContext) -> None:
        root = input.path or ctx.cwd
        if not os.path.isdir(root):
            raise ToolError(f"{root} is not a directory. Pass a directory, or omit `path` to search {ctx.cwd}.")

    async def call(self, input: GlobInput, ctx: ToolContext) -> Found:
        path = input.path or ctx.cwd
        place = SearchPlace(path=path, glob=input.pattern, include_ignored=input.include_ignored, judged=ctx.real(path))
        try:
            found = await self._search.files(place, keep=LIMIT)
        except BadGlob as error:
            raise ToolError(f'"{input.pattern}" is not a pattern that a path can match: {error}.') from None
        except SearchFailed as error:
            raise ToolError(f"{error}. Check `pattern` and `path`.") from None
        notes = (*found.ending.notes(self._search.seconds), *found.left_out.notes())
        folder = ctx.cwd if self._concise else ""
        return Found(tuple(hit.path for hit in found.hits), found.total, notes, folder, "" if found.hits else path)

    def to_model(self, output: Found) -> tuple[Block, ...]:
        lines = [shorten_path(path, output.folder) for path in output.paths] or [
            f"No file matches in {on_one_line(output.searched)}."
        ]
        if output.total > len(output.paths):
            lines.append(
                f"[The newest {len(output.paths)} of {output.total:,} files. Narrow the pattern to see others.]"
            )
        return (Text("\n".join((*lines, *(f"[{note}]" for note in output.notes)))),)

    def describe(self, input: GlobInput) -> str:
        return f"Glob {input.pattern}" + (f" in {input.path}" if input.path else "")

    def show_result(self, input: GlobInput, output: Found) -> View:
        return Listing(tuple(map(on_one_line, output.paths)), output.total)
