"""The place most like a text that was not found, and how the two differ.

Both are compared without whitespace, case and look-alike characters. If that
finds nothing, short pieces of the sought text vote for a place, rare ones the
most. The cost grows with the length of the text, not with how often its
pieces occur.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator
from itertools import accumulate, pairwise

from ..core.values import named_value, plain_value
from .changes import Same, common
from .differences import difference, visible_diff
from .folding import fold_key
from .lines import LF, content, line_end, line_numbers, split_lines, to_lf
from .matching import find

MOST_CHARS, MOST_LINES = 8 << 20, 200_000
"""Of a text that is searched: it is taken apart for that, which takes many times its memory where lines are short."""
PIECES = 16
HITS = 50
PLACES = 8
ALIKE = 0.45
COMPARED_CHARS = 4_000
LONG_LINE = 600
MARGIN = 40

_NUMBERED = re.compile(r"[ \t]*\d+(?:\t|→)")
_ESCAPE = re.compile(r"""\\([nt"'`\\])""")


@named_value
class Nearest:
    first: int
    last: int
    """The lines it is on, counted from 1."""
    there: str
    """The exact text there."""
    is_part: bool
    """Only a part of a long line is given."""
    difference: str
    """Completes the sentence "It differs in …"."""
    diff: str


@plain_value
class _Region:
    """Lines of the text, from 0, the last one included."""

    first: int
    last: int


def is_searchable(text: str) -> bool:
    return len(text) <= MOST_CHARS and text.count(line_end(text)) <= MOST_LINES


def nearest(text: str, old: str) -> Nearest | None:
    """The most similar place, or `None` where nothing is much like it."""
    if not text:
        return None
    lines = split_lines(text)
    for repaired, cause in _repairs(old):
        if spans := find(text, repaired).spans:
            first, last = line_numbers(text, [spans[0].start, max(spans[0].start, spans[0].end - 1)])
            return _describe(lines, _Region(first - 1, last - 1), old, cause)
    region = _place(_Folded(text), lines, old)
    return _describe(lines, region, old) if region else None


class _Folded:
    """A text without whitespace, case and look-alikes, that knows the line of each character."""

    def __init__(self, text: str) -> None:
        self.keys = fold_key(text.replace(line_end(text), LF)).split(LF)
        self.text = "".join(self.keys)
        self._starts = [0, *accumulate(map(len, self.keys))][:-1]

    def line(self, position: int) -> int:
        return bisect_right(self._starts, position) - 1


def _place(folded: _Folded, lines: list[str], old: str) -> _Region | None:
    sought = _Folded(_trim(to_lf(old)))
    if not sought.text:
        return None
    same = [_Region(folded.line(at), folded.line(at + len(sought.text) - 1)) for at in _same(folded, sought)]
    if same:
        return max(same, key=lambda region: _likeness(old, "".join(lines[region.first : region.last + 1])))
    return _vote(folded, sought)


def _same(folded: _Folded, sought: _Folded) -> list[int]:
    """Where only whitespace, case and look-alikes differ. Two letters prove nothing inside a longer line."""
    hits = list(_hits(folded.text, sought.text))
    if len(sought.text) > 3:
        return hits
    return [at for at in hits if folded.keys[folded.line(at)] == sought.text]


def _vote(folded: _Folded, sought: _Folded) -> _Region | None:
    size = 10 if len(sought.text) >= 30 else max(3, len(sought.text) // 3)
    votes, places = Counter[int](), dict[int, int]()
    for at in _spread(len(sought.text) - size + 1):
        hits = list(_hits(folded.text, sought.text[at : at + size]))
        for hit in hits:
            start = max(0, folded.line(hit) - sought.line(at))
            votes[start] += 1_000 // len(hits)
            places.setdefault(start, hit - at)
    scores = [(_likeness(sought.text, _slice(folded.text, places[at], sought.text)), at) for at in _top(votes)]
    best, start = max(scores, key=lambda one: one[0], default=(0.0, 0))
    return _align(folded.keys, sought.keys, start) if best >= ALIKE else None


def _top(votes: Counter[int]) -> list[int]:
    return [start for start, _ in votes.most_common(PLACES)]


def _spread(count: int) -> Iterator[int]:
    """A few of `count` places, evenly."""
    return iter(range(0, max(count, 0), max(1, count // PIECES)))


def _hits(text: str, piece: str) -> Iterator[int]:
    at = text.find(piece)
    for _ in range(HITS):
        if at < 0:
            return
        yield at
        at = text.find(piece, at + len(piece))


def _slice(text: str, at: int, like: str) -> str:
    return text[max(at, 0) : max(at + len(like), 0)]


def _likeness(one: str, other: str) -> float:
    """The share of neighbouring characters that both have, from 0 to 1."""
    pairs, others = (Counter(pairwise(text)) for text in (_head(one), _head(other)))
    total = pairs.total() + others.total()
    return 2 * (pairs & others).total() / total if total else float(one == other)


def _head(text: str) -> str:
    return text[:COMPARED_CHARS]


def _align(keys: list[str], sought: list[str], start: int) -> _Region:
    """The lines around `start` that correspond to the sought ones, where some of these are missing or new."""
    low = max(0, start - 3)
    same = [
        Same(part.a, low + part.b, part.size)
        for part in common(sought, keys[low : start + len(sought) + 3])
        if any(sought[part.a : part.a + part.size])
    ] or [Same(0, start, 0)]
    first = max(0, same[0].b - same[0].a)
    last = min(len(keys), same[-1].b + len(sought) - same[-1].a) - 1
    while last > first and sought[-1] and not keys[last]:
        last -= 1
    return _Region(first, max(first, last))


def _repairs(old: str) -> Iterator[tuple[str, str]]:
    """What was perhaps meant, and how to call the mistake."""
    lines = [line for line in old.split(LF) if line.strip()]
    if lines and all(_NUMBERED.match(line) for line in lines):
        bare = LF.join(_NUMBERED.sub("", line, count=1) for line in old.split(LF))
        yield bare, "its line numbers, which Read adds and the file does not have"
    if _ESCAPE.search(old):
        bare = _ESCAPE.sub(lambda found: {"n": LF, "t": "\t"}.get(found[1], found[1]), old)
        yield bare, "its escapes: `old_string` has a backslash where the file has the character itself"
    if (bare := old.strip("\r\n")) != old:
        yield bare, "line endings where it begins or ends, which the file does not have there"


def _describe(lines: list[str], region: _Region, old: str, cause: str | None = None) -> Nearest:
    wanted = _trim(to_lf(old)).split(LF)
    stands = lines[region.first : region.last + 1]
    is_part = len(stands) == 1 and len(stands[0]) > LONG_LINE + 3 * len(old)
    stands = [_around(stands[0], old)] if is_part else stands
    found = [content(line) for line in stands]
    return Nearest(
        first=region.first + 1,
        last=region.first + len(stands),
        there="".join(stands),
        is_part=is_part,
        difference=cause or difference(wanted, found),
        diff=visible_diff(wanted, found, region.first + 1),
    )


def _trim(old: str) -> str:
    return old.removesuffix(LF) or old


def _around(line: str, old: str) -> str:
    """The part of a long line that is most likely meant."""
    words = sorted(set(re.findall(r"\w+", old)), key=len, reverse=True)[:PIECES]
    at = next((line.find(word) - old.find(word) for word in words if word in line), 0)
    return line[max(0, at - MARGIN) : max(0, at) + len(old) + MARGIN]
