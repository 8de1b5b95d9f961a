"""What a line is.

Lines are numbered as Read, Grep and git number them: a line ends at LF, so also
at CRLF. A CR alone ends a line only in a text without any LF. Which endings a
match may exchange is another question: there a CR alone always is one.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from itertools import accumulate, pairwise

_BREAKS_A_LINE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


def on_one_line(path: str) -> str:
    r"""The path as it is, or as a JSON string where it holds a line break or another control character.

    No absolute path begins with a quote, nor one of `shorten_path`: the two cannot be taken for each other.

    >>> on_one_line("/a/b c"), on_one_line("/a\nb")
    ('/a/b c', '"/a\\nb"')
    """
    if not _BREAKS_A_LINE.search(path):
        return path
    return _BREAKS_A_LINE.sub(lambda found: f"\\u{ord(found[0]):04x}", json.dumps(path, ensure_ascii=False))


def shorten_path(path: str, folder: str) -> str:
    r"""The path as a tool takes it in that folder: relative inside of it, as it is elsewhere; on one line.

    >>> shorten_path("/a/b/c", "/a"), shorten_path("/ab", "/a"), shorten_path("/a/~x", "/a"), shorten_path("/a", "")
    ('b/c', '/ab', './~x', '/a')
    """
    inside = f"{folder.rstrip('/')}/"
    if not folder or not path.startswith(inside) or path == inside:
        return on_one_line(path)
    short = path[len(inside) :]
    return on_one_line(f"./{short}" if short.startswith(("~", '"')) else short)


LF, CRLF, CR = "\n", "\r\n", "\r"
CHUNK = 1 << 16
BREAK = re.compile(r"\r\n|\r|\n")


def split_lines(text: str, end: str | None = None) -> list[str]:
    r"""The lines with their endings; the ending that ends the text starts no line of its own.

    >>> split_lines("a\r\nb\rc\n")
    ['a\r\n', 'b\rc\n']
    >>> split_lines("a\rb")
    ['a\r', 'b']
    """
    end = end or line_end(text)
    *ended, rest = text.split(end)
    lines = [line + end for line in ended]
    return [*lines, rest] if rest else lines


def first_lines(text: str, count: int) -> list[str]:
    r"""The first lines with their endings, without a look at the others.

    >>> first_lines("a\nb\nc", 2)
    ['a\n', 'b\n']
    """
    end = line_end(text)
    *ended, rest = text.split(end, count)
    lines = [line + end for line in ended]
    return lines if len(lines) == count or not rest else [*lines, rest]


def count_lines(text: str) -> int:
    r"""
    >>> count_lines("a\nb"), count_lines("a\n"), count_lines("")
    (2, 1, 0)
    """
    end = line_end(text)
    return text.count(end) + bool(text and not text.endswith(end))


def line_end(text: str) -> str:
    """The character that ends a line here."""
    return CR if CR in text and LF not in text else LF


class LineView:
    r"""The lines of a text by their numbers, from 1 on, without taking all of it apart.

    >>> view = LineView("a\r\nb\nc")
    >>> view.total, view.some(2, 3), view.some(4, 9)
    (3, ['b', 'c'], [])
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._end = line_end(text)
        self.total = count_lines(text)
        chunks = range(0, len(text), CHUNK)
        self._ended = [0, *accumulate(text.count(self._end, at, at + CHUNK) for at in chunks)]
        """How many lines end before each piece of the text."""

    def some(self, first: int, last: int) -> list[str]:
        """These lines without their endings, as far as there are any."""
        piece = self._text[self._start(first) : self._start(last + 1)]
        return [content(line) for line in split_lines(piece, self._end)]

    def _start(self, number: int) -> int:
        """Where a line begins; the end of the text for one that is not there."""
        ended = number - 1
        if ended <= 0:
            return 0
        if ended > self._ended[-1]:
            return len(self._text)
        chunk = bisect_left(self._ended, ended) - 1
        at = chunk * CHUNK
        for _ in range(ended - self._ended[chunk]):
            at = self._text.index(self._end, at) + 1
        return at


def content(line: str) -> str:
    r"""The line without its ending.

    >>> content("a\r\n"), content("a\r")
    ('a', 'a')
    """
    return line.removesuffix(LF).removesuffix(CR)


def line_numbers(text: str, positions: list[int]) -> list[int]:
    r"""The line of each of these ascending positions; lines count from 1.

    >>> line_numbers("a\nb\nc", [0, 2, 4])
    [1, 2, 3]
    """
    end, number, numbers = line_end(text), 1, list[int]()
    for before, position in pairwise([0, *positions]):
        number += text.count(end, before, position)
        numbers.append(number)
    return numbers


def to_lf(text: str) -> str:
    """Every line ending as LF."""
    return text.replace(CRLF, LF).replace(CR, LF) if CR in text else text


def has_break(text: str) -> bool:
    return LF in text or CR in text


def dominant_ending(text: str) -> str | None:
    r"""The most frequent line ending, the first one where two are as frequent; `None` where there is none.

    >>> dominant_ending("a\r\nb\r\nc\n"), dominant_ending("a\rb\rc\n"), dominant_ending("abc")
    ('\r\n', '\n', None)
    """
    if LF not in text:
        return CR if CR in text else None
    pairs = text.count(CRLF)
    others = text.count(LF) - pairs
    if pairs == others:
        return CRLF if text[text.index(LF) - 1 :].startswith(CRLF) else LF
    return CRLF if pairs > others else LF
