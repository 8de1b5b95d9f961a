"""The lines of `rg --json`, taken from its stream until there are enough.

JSON, because nothing else can tell a file's name from a line's text whatever
bytes are in them. A line is clipped as it comes, so what is kept stays small.
"""

from __future__ import annotations

import json
import os
import re
from base64 import b64decode
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, TypeAlias

from ...core.values import plain_value

LINE_CHARS: Final = 500
MOST_RECORD: Final = 16 << 20
"""Bytes of one record; a longer one is a line that nobody could read anyway."""
MOST_TEXT: Final = 16 << 20
"""Characters that are kept, whatever was asked for."""

Shown: TypeAlias = Callable[[str], bool]
"""Whether a path, relative to the searched folder, may be in a result."""
Holds: TypeAlias = Callable[[str, int, bytes], bool]
"""Whether the file at a path, relative to the searched folder, has these bytes at this position."""


@plain_value
class MatchedLine:
    path: str
    number: int
    """Counted from 1; 0 where it is not known."""
    text: str
    is_match: bool = True
    is_exact: bool = True
    """Whether `text` surely is the whole line, as whoever decodes the file reads it."""


class LineCollector:
    """Skips `offset` lines, keeps `limit` of them, and has enough when it has seen one more."""

    def __init__(
        self,
        *,
        folder: str,
        offset: int,
        limit: int | None,
        only_matching: bool,
        shown: Shown | None,
        holds: Holds | None = None,
    ) -> None:
        """Without `holds` all that ripgrep says it found is believed."""
        self.lines: list[MatchedLine] = []
        self.seen = 0
        self.changed = False
        """Whether something was left out that is not in the file any more, or never was."""
        self._holds = holds
        self._folder = folder
        self._offset = offset
        self._limit = limit
        self._only_matching = only_matching
        self._shown = shown
        self._room = MOST_TEXT
        self._rest = bytearray()
        self._skipping = b""
        self._binary = ""
        self._last: tuple[object, str] = (None, "")
        self._relative = ""
        """The path of the file whose lines come now."""

    def take(self, chunk: bytes) -> bool:
        first, *others = chunk.split(b"\n")
        self._rest += first
        if others:
            last = others.pop()
            records = [bytes(self._rest), *others]
            self._rest = bytearray(last)
            if any(self._keep(self._lines_of(record)) for record in records):
                return True
        if len(self._rest) > MOST_RECORD:
            self._skipping = self._skipping or bytes(self._rest[:CLUE])
            del self._rest[:-CLUE]
        return False

    def _keep(self, lines: Iterable[MatchedLine]) -> bool:
        for line in lines:
            self.seen += 1
            if self.seen <= self._offset:
                continue
            self._room -= len(line.text)
            if self._room < 0 or (self._limit is not None and len(self.lines) >= self._limit):
                return True
            self.lines.append(line)
        return False

    def _lines_of(self, record: bytes) -> Iterable[MatchedLine]:
        if self._skipping:
            head, self._skipping = self._skipping, b""
            return self._lines_of_oversized(head, record)
        if not record.startswith((b'{"type":"match"', b'{"type":"context"')):
            return ()
        parsed = json.loads(record)
        data = parsed["data"]
        path = self._path_to_show(data["path"])
        if not path:
            return ()
        if self._holds and not self._holds(self._relative, data["absolute_offset"], _raw(data["lines"])):
            self.changed = True
            return ()
        if self._binary or "\0" in data["lines"].get("text", ""):
            return self._of_binary(path)
        if self._only_matching:
            return _submatches(path, data)
        return _whole_lines(path, data, is_match=parsed["type"] == "match")

    def _path_to_show(self, path: dict[str, str]) -> str:
        """Absolute; empty for one that is to be in no result. The lines of a file come one after the other."""
        if path != self._last[0]:
            relative = os.fsdecode(_raw(path)).removeprefix("./")
            self._relative = relative
            is_shown = self._shown is None or self._shown(relative)
            self._last = (path, os.path.join(self._folder, relative) if is_shown else "")
        return self._last[1]

    def _lines_of_oversized(self, head: bytes, tail: bytes) -> Iterator[MatchedLine]:
        found = _HEAD.match(head)
        path = self._path_to_show(json.loads(found[2])) if found else ""
        if found and path:
            numbers = _NUMBER.findall(tail)
            text = f"[This line has more than {MOST_RECORD >> 20} million characters and is not shown.]"
            number = int(numbers[-1]) if numbers else 0
            yield MatchedLine(path, number, text, found[1] == b"match", is_exact=False)

    def _of_binary(self, path: str) -> Iterator[MatchedLine]:
        """Only a file that was named is searched although it is binary; that it matches is all there is to say."""
        if not self._binary:
            self._binary = path
            yield MatchedLine(path, 0, "[This file is binary, and matches.]", is_exact=False)


CLUE: Final = 1 << 16
_HEAD = re.compile(rb'\{"type":"(match|context)","data":\{"path":(\{"(?:text|bytes)":"(?:[^"\\]|\\.)*"\})')
_NUMBER = re.compile(rb'"line_number":(\d+),"absolute_offset":')


def _whole_lines(path: str, data: dict[str, Any], *, is_match: bool) -> Iterator[MatchedLine]:
    """A match over several lines is one record."""
    first = data["line_number"]
    text = _text(data["lines"])
    if "\n" not in text[:-1] and len(text) <= LINE_CHARS:
        line = _without_ending(text)
        yield MatchedLine(path, first, line, is_match, _is_exact(line))
        return
    starts = [_characters(data["lines"], match["start"]) for match in data["submatches"][:1]] or [0]
    for number, ended in enumerate(text.removesuffix("\n").split("\n"), first):
        line = _without_ending(ended)
        shown = clip_line(line, starts[0] if number == first else 0)
        yield MatchedLine(path, number, shown, is_match, shown == line and _is_exact(line))


def _is_exact(line: str) -> bool:
    """Not with a byte that is not UTF-8, nor with an escape that may change what the bytes after it mean.

    Nor with a CR inside, which may be what ends the lines of this file.
    """
    return "\ufffd" not in line and "\r" not in line and "\x1b" not in line


def _submatches(path: str, data: dict[str, Any]) -> Iterator[MatchedLine]:
    first = data["line_number"]
    raw = _raw(data["lines"])
    for match in data["submatches"]:
        line = first + raw.count(b"\n", 0, match["start"])
        for number, text in enumerate(_text(match["match"]).split("\n"), line):
            yield MatchedLine(path, number, clip_line(_without_ending(text), 0), is_exact=False)


def _raw(value: dict[str, str]) -> bytes:
    return value["text"].encode() if "text" in value else b64decode(value["bytes"])


def _text(value: dict[str, str]) -> str:
    return value["text"] if "text" in value else b64decode(value["bytes"]).decode("utf-8", "replace")


def _characters(value: dict[str, str], offset: int) -> int:
    """The position in the text of the byte at `offset`."""
    return len(_raw(value)[:offset].decode("utf-8", "replace"))


def _without_ending(line: str) -> str:
    return line.removesuffix("\n").removesuffix("\r")


def clip_line(line: str, start: int) -> str:
    """The line, or of a long one the part around `start`, with the count of what is left out.

    >>> clip_line("short", 0)
    'short'
    """
    if len(line) <= LINE_CHARS:
        return line
    first = max(0, min(start - LINE_CHARS // 4, len(line) - LINE_CHARS))
    after = len(line) - first - LINE_CHARS
    before_words = f"[{first:,} characters] " if first else ""
    after_words = f" [{after:,} characters]" if after else ""
    return f"{before_words}{line[first : first + LINE_CHARS]}{after_words}"
