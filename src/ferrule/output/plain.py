"""Views as lines of plain text, and colour where there is a terminal to show it."""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Mapping
from typing import TextIO, assert_never

from ..core.content import Code, Diff, Line, Listing, Markdown, Picture, Table, Terminal, Todo, View
from ..core.values import plain_value

_CODES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "blue": "34", "cyan": "36"}
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
_CODE = "|".join(_CODES.values())
_STYLED = re.compile(rf"(\x1b\[(?:0|(?:{_CODE})(?:;(?:{_CODE}))*)m)")
"""What `Style.paint` writes, and nothing else."""


@plain_value
class Style:
    """How much a stream can show: colours, and more than ASCII."""

    colour: bool
    unicode: bool

    @classmethod
    def of(cls, stream: TextIO, environment: Mapping[str, str]) -> Style:
        """Colour on a terminal unless NO_COLOR is set or the terminal is dumb; FORCE_COLOR overrides both."""
        terminal = stream.isatty() and environment.get("TERM") != "dumb" and not environment.get("NO_COLOR")
        wide = (stream.encoding or "").lower().replace("-", "") in ("utf8", "utf16")
        return cls(colour=bool(environment.get("FORCE_COLOR")) or terminal, unicode=wide)

    @property
    def ellipsis(self) -> str:
        return "…" if self.unicode else "..."

    def paint(self, text: str, *styles: str) -> str:
        if not (self.colour and text and styles):
            return text
        return f"\x1b[{';'.join(_CODES[style] for style in styles)}m{text}\x1b[0m"


def width_of(stream: TextIO, environment: Mapping[str, str], default: int = 100) -> int:
    """The columns that COLUMNS says, or the terminal behind the stream has; `default` where there is neither."""
    told = environment.get("COLUMNS", "")
    if told.isascii() and told.isdecimal() and int(told):
        return max(20, int(told))
    try:
        return max(20, os.get_terminal_size(stream.fileno()).columns)
    except (OSError, ValueError):
        return default


def summary(view: View) -> str:
    """The view in one line."""
    match view:
        case Line(text) | Markdown(text):
            return clean(text.split("\n", 1)[0])
        case Code(text):
            return _count(text.count("\n") + 1 if text else 0, "line")
        case Diff(path, patch):
            return f"{path} {_count_changes(patch)}"
        case Listing(items, total):
            return f"{len(items)} of {total:,}" if len(items) < total else _count(total, "item")
        case Terminal(command, _, exit_code):
            return clean(f"{command} (exit {exit_code})" if exit_code is not None else command)
        case Todo(items):
            done = sum(item.state == "completed" for item in items)
            return f"{done} of {len(items)} done"
        case Table(_, rows):
            return _count(len(rows), "row")
        case Picture():
            return _picture(view)
        case _:
            assert_never(view)


def lines(view: View) -> list[str]:
    """The view in full, without control characters a terminal would obey."""
    match view:
        case Line(text) | Markdown(text):
            shown = text.split("\n")
        case Code(text, _, first_line):
            shown = [f"{number:>6}  {line}" for number, line in enumerate(text.split("\n"), first_line)]
        case Diff(_, patch):
            shown = patch.removesuffix("\n").split("\n")
        case Listing(items, total):
            shown = [*items, *([f"... and {total - len(items):,} more"] if total > len(items) else [])]
        case Terminal(command, output, exit_code):
            shown = [f"$ {command}", *output.split("\n"), *([f"(exit {exit_code})"] if exit_code else [])]
        case Todo(items):
            marks = {"pending": "[ ]", "in_progress": "[>]", "completed": "[x]"}
            shown = [f"{marks[item.state]} {item.text}" for item in items]
        case Table(header, rows):
            shown = _columns((header, *rows))
        case Picture():
            shown = [_picture(view)]
        case _:
            assert_never(view)
    return [clean(line) for line in shown]


def clean(text: str) -> str:
    """Without the control characters that could move a cursor, colour a line or turn its direction.

    >>> clean("a\\x1b[31mb")
    'a?[31mb'
    """
    return _CONTROL.sub("?", text.replace("\t", "    "))


def harmless(text: str) -> str:
    """For a terminal: of all control characters only newlines, tabs and the sequences that `Style` writes are left.

    >>> harmless("\\x1b[1mbold\\x1b[0m \\x1b]0;title\\x07\\ta\\x9b2J")
    '\\x1b[1mbold\\x1b[0m ?]0;title?\\ta?2J'
    """
    if _CONTROL.search(text) is None:
        return text
    return "".join(part if at % 2 else _CONTROL.sub("?", part) for at, part in enumerate(_STYLED.split(text)))


def columns(text: str) -> int:
    """How many cells of a terminal the text takes.

    >>> columns("äß"), columns("漢字"), columns("e\\u0301")
    (2, 4, 1)
    """
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text
    )


def fit(text: str, width: int, *, ellipsis: str = "…") -> str:
    """Cut or padded to exactly `width` cells.

    >>> fit("abcdef", 4), fit("ab", 4)
    ('abc…', 'ab  ')
    """
    if columns(text) > width:
        room = max(0, width - columns(ellipsis))
        while columns(text) > room:
            text = text[: min(len(text) - 1, room)]
        text += ellipsis if width >= columns(ellipsis) else ""
    return text + " " * (width - columns(text))


def _columns(rows: tuple[tuple[str, ...], ...]) -> list[str]:
    widths = [max(columns(cell) for cell in column) for column in zip(*rows, strict=True)]
    return ["  ".join(fit(cell, width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def _count_changes(patch: str) -> str:
    marks = [line[:1] for line in patch.split("\n")[2:]]  # after the two lines that name the file
    return f"+{marks.count('+')} -{marks.count('-')}"


def _picture(picture: Picture) -> str:
    return f"{clean(picture.media_type)}, {picture.width:,} by {picture.height:,} pixels"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
