"""Read a text file, with line numbers."""

from __future__ import annotations

import asyncio
import difflib
import os
from dataclasses import dataclass

from pydantic import Field

from ..core.content import Block, Code, Text, View
from ..core.context import ToolContext
from ..core.effects import Effects
from ..core.inputs import PathText, ToolInput
from ..core.tool import Alias, Tool, ToolError, load_guide
from ..host.files import read_text
from ..host.text import NotText

PAGE_CHARS = 90_000
LINE_CHARS = 2_000
NUMBER_WIDTH = 6
IN_A_THREAD = 1 << 20
"""Bytes above which a file is read beside the event loop and not on it."""


class ReadInput(ToolInput):
    file_path: PathText = Field(description="The file to read.")
    offset: int = Field(default=1, ge=1, description="The first line to read; lines count from 1.")
    limit: int | None = Field(default=None, ge=1, description="How many lines to read. Omit for as many as fit.")


@dataclass(frozen=True, slots=True)
class Page:
    """Some of a file's lines, as they stand in it."""

    path: str
    lines: tuple[str, ...]
    first: int
    total: int

    @property
    def last(self) -> int:
        return self.first + len(self.lines) - 1


class Read(Tool[ReadInput, Page]):
    name = "Read"
    description = load_guide(__file__)
    hint = "show the content of a file"
    input_model = ReadInput
    aliases = (Alias("read_file"), Alias("FileRead"))
    result_limit = 100_000

    def effects(self, input: ReadInput, ctx: ToolContext) -> Effects:
        return Effects.reading(input.file_path)

    async def call(self, input: ReadInput, ctx: ToolContext) -> Page:
        if _is_large(input.file_path):
            return await asyncio.to_thread(_page, input)
        return _page(input)

    def to_model(self, output: Page) -> tuple[Block, ...]:
        if not output.total:
            return (Text(f"{output.path} is empty."),)
        numbered = [f"{number:>{NUMBER_WIDTH}}\t{_cut(line)}" for number, line in enumerate(output.lines, output.first)]
        if output.last < output.total:
            numbered.append(
                f"\n[Lines {output.first} to {output.last} of {output.total}. Read on with offset {output.last + 1}.]"
            )
        return (Text("\n".join(numbered)),)

    def describe(self, input: ReadInput) -> str:
        return f"Read {input.file_path}"

    def show_result(self, input: ReadInput, output: Page) -> View:
        return Code("\n".join(output.lines), output.path, output.first)


def _is_large(path: str) -> bool:
    """Whether reading it would keep everybody else waiting."""
    try:
        return os.stat(path).st_size > IN_A_THREAD
    except (OSError, ValueError):
        return False


def _page(input: ReadInput) -> Page:
    lines = _lines(_text(input.file_path))
    if lines and input.offset > len(lines):
        raise ToolError(f"{input.file_path} has {len(lines)} lines; there is no line {input.offset} to start from.")
    wanted = lines[input.offset - 1 :] if input.limit is None else lines[input.offset - 1 :][: input.limit]
    return Page(input.file_path, _fitting(wanted, len(lines)), input.offset, len(lines))


def _text(path: str) -> str:
    try:
        return read_text(path).text
    except FileNotFoundError:
        raise ToolError(_missing(path)) from None
    except NotText as reason:
        raise ToolError(_unreadable(path, str(reason))) from None
    except OSError as error:
        raise ToolError(f"{path} cannot be read: {error.strerror}.") from None
    except ValueError:
        raise ToolError(f"{path!r} holds a character that no path can. Use Glob to find the file.") from None


def _unreadable(path: str, reason: str) -> str:
    advice = "Use Glob to list what is in it" if reason == "it is a directory" else "Only text can be read"
    return f"{path} cannot be read: {reason}. {advice}."


def _missing(path: str) -> str:
    """Say what is there instead: a near name in the same folder, or the part of the path that does exist."""
    folder, name = os.path.split(path)
    try:
        near = difflib.get_close_matches(name, os.listdir(folder), n=3, cutoff=0.6)
    except OSError:
        return f"{path} does not exist, and neither does {folder}. Use Glob to find the file."
    if near:
        return f"{path} does not exist. In that folder there is {', '.join(near)}."
    return f"{path} does not exist. Use Glob to find the file."


def _lines(text: str) -> list[str]:
    """Lines without their endings; the newline that ends the file starts no line of its own."""
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    return [line.removesuffix("\r") for line in lines]


def _fitting(lines: list[str], highest: int) -> tuple[str, ...]:
    room = PAGE_CHARS
    around = max(NUMBER_WIDTH, len(str(highest))) + len("\t\n")
    for index, line in enumerate(lines):
        room -= min(len(line), LINE_CHARS) + around
        if room < 0 and index:
            return tuple(lines[:index])
    return tuple(lines)


def _cut(line: str) -> str:
    if len(line) <= LINE_CHARS:
        return line
    return f"{line[:LINE_CHARS]} [{len(line) - LINE_CHARS:,} more characters in this line]"
