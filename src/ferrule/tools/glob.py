"""Find files by name pattern, newest first."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from pydantic import Field

from ..core.content import Block, Listing, Text, View
from ..core.context import ToolContext
from ..core.effects import Effects
from ..core.inputs import PathText, ToolInput
from ..core.tool import Alias, Tool, ToolError, load_guide

LIMIT = 100


class GlobInput(ToolInput):
    pattern: str = Field(min_length=1, description='What the path must match, such as "src/**/*.py".')
    path: PathText | None = Field(default=None, description="The directory to search. Omit for the working directory.")


@dataclass(frozen=True, slots=True)
class Found:
    paths: tuple[str, ...]
    """The newest ones."""
    total: int


class Glob(Tool[GlobInput, Found]):
    name = "Glob"
    description = load_guide(__file__)
    hint = "find files by name pattern"
    input_model = GlobInput
    aliases = (Alias("list_files"),)
    time_limit = 60.0

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
        return await asyncio.to_thread(_search, Path(input.path or ctx.cwd), input.pattern, ctx)

    def to_model(self, output: Found) -> tuple[Block, ...]:
        if not output.paths:
            return (Text("No file matches."),)
        lines = list(output.paths)
        if output.total > len(output.paths):
            lines.append(f"[The newest {len(lines)} of {output.total:,} files. Narrow the pattern to see others.]")
        return (Text("\n".join(lines)),)

    def describe(self, input: GlobInput) -> str:
        return f"Glob {input.pattern}" + (f" in {input.path}" if input.path else "")

    def show_result(self, input: GlobInput, output: Found) -> View:
        return Listing(output.paths, output.total)


def _search(root: Path, pattern: str, ctx: ToolContext) -> Found:
    found: list[tuple[int, str]] = []
    below = _below(os.path.realpath(root))
    for path in _matching(root, pattern):
        if ctx.cancelled:
            break
        try:
            if ".git" not in path.relative_to(root).parts and below(path.parent) and path.is_file():
                found.append((-path.stat().st_mtime_ns, str(path)))
        except OSError:
            continue  # it went away while we looked
    found.sort()
    return Found(tuple(path for _, path in found[:LIMIT]), len(found))


def _matching(root: Path, pattern: str) -> Iterator[Path]:
    try:
        yield from root.glob(pattern)
    except (ValueError, IndexError, OSError) as error:
        raise ToolError(f'"{pattern}" is not a pattern that a path can match: {error}.') from None


def _below(top: str) -> Callable[[Path], bool]:
    """Whether a folder really is below `top`; a link on the way may lead out of what the call said it reads."""

    @lru_cache(maxsize=1024)
    def below(folder: Path) -> bool:
        real = os.path.realpath(folder)
        return real == top or real.startswith(top if top.endswith("/") else f"{top}/")

    return below
