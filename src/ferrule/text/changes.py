"""What two sequences of strings have in common, at a bounded cost.

What begins and ends both is set aside, strings that are unique in both divide
the rest, and only what is small then goes to difflib. A large part without
anything unique is treated as changed as a whole.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from itertools import pairwise
from typing import NamedTuple

WORK = 4_000_000
"""Pairs of strings that difflib may compare in all."""
MOST_AT_ONCE = 40_000
LEAST_AT_ONCE = 64


class Same(NamedTuple):
    """`size` equal strings from `a` on in the one and from `b` on in the other."""

    a: int
    b: int
    size: int


class LineChange(NamedTuple):
    """What is at `a` in the one is what is at `b` in the other; either may be empty."""

    a: slice
    b: slice


def common(a: Sequence[str], b: Sequence[str]) -> list[Same]:
    """The parts that are equal, in order and as long as they get.

    >>> common(["x", "y", "z"], ["x", "z"])
    [Same(a=0, b=0, size=1), Same(a=2, b=1, size=1)]
    """
    at_once = min(MOST_AT_ONCE, max(LEAST_AT_ONCE, WORK // (len(a) + len(b) + 1)))
    found, parts = list[Same](), [(0, len(a), 0, len(b))]
    while parts:
        a_low, a_high, b_low, b_high = parts.pop()
        head = _head(a, b, a_low, a_high, b_low, b_high)
        tail = _tail(a, b, a_low + head, a_high, b_low + head, b_high)
        found += Same(a_low, b_low, head), Same(a_high - tail, b_high - tail, tail)
        part = (a_low + head, a_high - tail, b_low + head, b_high - tail)
        size = (part[1] - part[0]) * (part[3] - part[2])
        if 0 < size <= at_once:
            found += _small(a, b, *part)
        elif size:
            anchors = _anchors(a, b, *part)
            found += anchors
            parts += _between(anchors, *part) if anchors else ()
    return _join(sorted(found))


def changes(a: Sequence[str], b: Sequence[str]) -> list[LineChange]:
    """What lies between the equal parts."""
    edges = [Same(0, 0, 0), *common(a, b), Same(len(a), len(b), 0)]
    between = [
        LineChange(slice(one.a + one.size, two.a), slice(one.b + one.size, two.b)) for one, two in pairwise(edges)
    ]
    return [change for change in between if change.a.start < change.a.stop or change.b.start < change.b.stop]


def pair_lines(same: Iterable[Same], *, changed: bool = False) -> Iterator[tuple[int, int]]:
    """Index by index, what corresponds to what; with `changed` also what is between two equal parts."""
    a_done = b_done = 0
    for part in same:
        if changed:
            yield from zip(range(a_done, part.a), range(b_done, part.b), strict=False)
        yield from zip(range(part.a, part.a + part.size), range(part.b, part.b + part.size), strict=True)
        a_done, b_done = part.a + part.size, part.b + part.size


def _head(a: Sequence[str], b: Sequence[str], a_low: int, a_high: int, b_low: int, b_high: int) -> int:
    most = min(a_high - a_low, b_high - b_low)
    return next((n for n in range(most) if a[a_low + n] != b[b_low + n]), most)


def _tail(a: Sequence[str], b: Sequence[str], a_low: int, a_high: int, b_low: int, b_high: int) -> int:
    most = min(a_high - a_low, b_high - b_low)
    return next((n for n in range(most) if a[a_high - 1 - n] != b[b_high - 1 - n]), most)


def _small(a: Sequence[str], b: Sequence[str], a_low: int, a_high: int, b_low: int, b_high: int) -> list[Same]:
    blocks = SequenceMatcher(None, a[a_low:a_high], b[b_low:b_high], autojunk=False).get_matching_blocks()
    return [Same(a_low + block.a, b_low + block.b, block.size) for block in blocks]


def _anchors(a: Sequence[str], b: Sequence[str], a_low: int, a_high: int, b_low: int, b_high: int) -> list[Same]:
    """Strings that occur once in each, as many of them as keep their order."""
    in_b = {b[at]: at for at in range(b_low, b_high)}
    once_in_b = Counter(b[b_low:b_high])
    once_in_a = Counter(a[a_low:a_high])
    both = [(at, in_b[a[at]]) for at in range(a_low, a_high) if once_in_a[a[at]] == 1 and once_in_b.get(a[at]) == 1]
    return [Same(*pair, 1) for pair in _rising(both)]


def _rising(pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The longest part of the pairs whose second numbers rise too."""
    tops, ends, earlier = list[int](), list[int](), list[int]()
    for index, (_, value) in enumerate(pairs):
        pile = bisect_left(tops, value)
        tops[pile : pile + 1] = [value]
        ends[pile : pile + 1] = [index]
        earlier.append(ends[pile - 1] if pile else -1)
    chain, index = list[tuple[int, int]](), ends[-1] if ends else -1
    while index >= 0:
        chain.append(pairs[index])
        index = earlier[index]
    return chain[::-1]


def _between(
    anchors: Sequence[Same], a_low: int, a_high: int, b_low: int, b_high: int
) -> list[tuple[int, int, int, int]]:
    edges = [Same(a_low - 1, b_low - 1, 1), *anchors, Same(a_high, b_high, 1)]
    return [(one.a + 1, two.a, one.b + 1, two.b) for one, two in pairwise(edges)]


def _join(parts: Iterable[Same]) -> list[Same]:
    joined = list[Same]()
    for part in parts:
        if not part.size:
            continue
        last = joined[-1] if joined else None
        if last and (last.a + last.size, last.b + last.size) == (part.a, part.b):
            joined[-1] = Same(last.a, last.b, last.size + part.size)
        else:
            joined.append(part)
    return joined
