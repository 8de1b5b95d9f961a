"""A page while it is filled with lines.

Room is measured in quarters of a token: an ASCII character is one, a character
of two bytes in UTF-8 three, of three bytes five, of four seven. That is rough,
and too much rather than too little for all but dense code and numbers.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from itertools import accumulate

from ...core.values import plain_value
from ...text.lines import CR, CRLF, LF, content

LINE_CHARS = 2_000
NUMBER_WIDTH = 6


@plain_value
class Wanted:
    """Which lines, and how much room there is for them."""

    room: int
    """In quarters of a token."""
    first: int = 1
    count: int | None = None


@dataclass(slots=True)
class Filling:
    """A page that is being filled."""

    wanted: Wanted
    lines: list[str] = field(default_factory=list[str])
    cut: set[int] = field(default_factory=set[int])
    total: int | None = None
    used: int = 0
    full: bool = False
    long: bool = False

    def add(self, text: str, end: str) -> None:
        """Add complete lines until the page is full."""
        lines = (text.replace(CRLF, LF) if end == LF and CR in text else text).split(end)
        if lines[-1] == "":
            lines.pop()
        else:
            lines[-1] = content(lines[-1])
        if self.wanted.count is not None:
            lines = lines[: self.wanted.count - len(self.lines)]
        around = max(NUMBER_WIDTH, len(str(self.wanted.first + len(self.lines) + len(lines)))) + len("\t\n")
        if text.isascii() and max(map(len, lines), default=0) <= min(LINE_CHARS, self.wanted.room - around):
            self._add_plain(lines, around)
        else:
            self._add_any(lines, around)
        self.full = self.full or len(self.lines) == self.wanted.count

    def _add_plain(self, lines: list[str], around: int) -> None:
        """Lines of known weight, of which none is cut: no need to look at each."""
        reached = list(accumulate(map(len, lines), initial=self.used))
        fitting = bisect_right(range(len(lines)), self.wanted.room, key=lambda at: reached[at + 1] + (at + 1) * around)
        self.full = fitting < len(lines)
        self.lines += lines[:fitting] if self.full else lines
        self.used = reached[fitting] + fitting * around

    def _add_any(self, lines: list[str], around: int) -> None:
        for line in lines:
            if weight(line) + around > self.wanted.room:
                self.full = self.long = True
                return
            shown = line if self.wanted.count == 1 else cut_line(line)
            needed = weight(shown) + around
            if self.used + needed > self.wanted.room:
                self.full = True
                return
            if shown is not line:
                self.cut.add(self.wanted.first + len(self.lines))
            self.lines.append(shown)
            self.used += needed


def weight(text: str) -> int:
    """How much room a text takes.

    >>> weight("abcd"), weight("漢字"), weight("é")
    (4, 10, 3)
    """
    return len(text) if text.isascii() else 2 * len(text.encode("utf-8", "surrogatepass")) - len(text)


def cut_line(line: str) -> str:
    if len(line) <= LINE_CHARS:
        return line
    return f"{line[:LINE_CHARS]} [{len(line) - LINE_CHARS:,} more characters in this line]"
