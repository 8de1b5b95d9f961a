"""Where a text occurs in another, and the result of an edit there.

A match is exact, or differs in line endings only, or in quotes (and perhaps
line endings). Nothing more is guessed: whitespace that differs is not a
match. All spans are spans of the original text, so whatever lies outside them
stays as it is.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from enum import StrEnum
from itertools import islice, takewhile
from typing import TypeAlias

from ..core.values import named_value, plain_value
from .lines import CR, CRLF, LF, dominant_ending, has_break, line_end, line_numbers, to_lf
from .styles import keep_endings, keep_quotes, straight

LINES_NAMED = 20
MOST_PLACES = 250_000
"""Places that are changed at once: each costs memory beside the text."""
OVERLAPS_TRIED = 100


class How(StrEnum):
    """What had to be ignored; the strictest that finds anything."""

    EXACT = "exact"
    LINE_ENDINGS = "line endings"
    QUOTES = "quotes"
    """Quotes, and perhaps line endings too."""


@plain_value
class Span:
    start: int
    end: int


@plain_value
class TextMatch:
    spans: tuple[Span, ...]
    """Left to right, none overlapping another; empty where nothing matches."""
    how: How
    overlapping: tuple[Span, ...] = ()
    """Further places that overlap the only span, as in `aaa` for `aa`; not more than are worth trying."""
    more: int = 0
    """Further places after the spans, where a limited number of spans was asked for."""


@plain_value
class TextEdit:
    """Characters `start` to `end` (not included) become `new`."""

    start: int
    end: int
    new: str


MOST_RANGES = 10
"""Places of an edit that a result names."""


def replaced_lines(text: str, edits: Iterable[TextEdit]) -> tuple[tuple[int, int], ...]:
    r"""The first and the last line of each replacement, as the text is after the edits; of the first few.

    >>> replaced_lines("a\nb\nc\n", [TextEdit(0, 1, "x\ny"), TextEdit(4, 6, "z\n")])
    ((1, 2), (4, 4))
    """
    end = line_end(text)
    ranges = list[tuple[int, int]]()
    counted = before = shift = 0
    for edit in islice(edits, MOST_RANGES):
        before += text.count(end, counted, edit.start)
        counted = edit.start
        top = before + shift + 1
        added = edit.new.count(end)
        ranges.append((top, max(top, top + added - edit.new.endswith(end))))
        shift += added - text.count(end, edit.start, edit.end)
    return tuple(ranges)


@named_value
class Edited:
    edits: tuple[TextEdit, ...]
    """Left to right, positions of the text before any of them."""
    count: int
    how: How


@plain_value
class NotFound:
    pass


@named_value
class Ambiguous:
    count: int
    lines: tuple[int, ...]
    """Where each occurrence begins, for the first few."""
    is_least: bool = False
    """Whether there may be more than `count`."""


@plain_value
class TooMany:
    count: int


@named_value
class NoChange:
    equal: bool
    """Old and new are the same; otherwise the file's own line endings or quotes made them so."""
    how: How = How.EXACT


Outcome: TypeAlias = Edited | NotFound | Ambiguous | TooMany | NoChange


def find(text: str, old: str, *, most: int | None = None) -> TextMatch:
    r"""Every place where `old` occurs, or the first `most` of them and how many follow.

    An empty `old` occurs in an empty text only.

    >>> find("a\r\nb", "a\nb").spans
    (Span(start=0, end=4),)
    """
    if not old:
        return TextMatch(() if text else (Span(0, 0),), How.EXACT)
    return (
        _exactly(text, old, most)
        or (_by_endings(text, old, most) if has_break(old) else None)
        or _by_quotes(text, old, most)
        or TextMatch((), How.EXACT)
    )


def replacement(text: str, span: Span, new: str, how: How) -> str:
    r"""What is written over the span: `new` as it is, in the line endings and quotes of that place.

    >>> replacement("a\r\nb", Span(0, 4), "$1\n&", How.LINE_ENDINGS)
    '$1\r\n&'
    """
    return _replacement(text, span, new, how, dominant_ending(text) if has_break(new) else None)


def apply(text: str, old: str, new: str, *, replace_all: bool) -> Outcome:
    """The edits that put `new` in place of `old`, or why there are none."""
    if old == new:
        return NoChange(equal=True)
    match = find(text, old, most=MOST_PLACES if replace_all else LINES_NAMED)
    if not match.spans:
        return NotFound()
    if replace_all and match.more:
        return TooMany(len(match.spans) + match.more)
    fallback = dominant_ending(text) if has_break(new) else None
    if not replace_all and (len(match.spans) > 1 or _differs_by_place(text, new, match, fallback)):
        return _ambiguous(text, match)
    edits = tuple(_edit(text, span, new, match.how, fallback) for span in match.spans)
    if all(edit.new == text[edit.start : edit.end] for edit in edits):
        return NoChange(equal=False, how=match.how)
    return Edited(edits=edits, count=len(edits), how=match.how)


def splice_edits(text: str, edits: Iterable[TextEdit]) -> str:
    """The text after its edits.

    >>> splice_edits("one two", [TextEdit(0, 3, "1"), TextEdit(4, 7, "2")])
    '1 2'
    """
    parts, done = list[str](), 0
    for edit in edits:
        parts += text[done : edit.start], edit.new
        done = edit.end
    return "".join([*parts, text[done:]])


def _exactly(text: str, old: str, most: int | None) -> TextMatch | None:
    """An occurrence that begins between CR and LF is not valid: the pair is one line ending.

    One that ends there is: a CR alone is written on purpose.
    """
    if old[0] == LF and CRLF in text:
        mark = _absent_from(text, old)
        text, old = text.replace(CRLF, CR + mark), old.replace(CRLF, CR + mark)
    return _match(text, old, How.EXACT, most)


def _by_endings(text: str, old: str, most: int | None) -> TextMatch | None:
    if CR not in text and CR not in old:
        return None
    return _in_original(text, _match(to_lf(text), to_lf(old), How.LINE_ENDINGS, most))


def _by_quotes(text: str, old: str, most: int | None) -> TextMatch | None:
    folded, sought = straight(text), straight(old)
    if folded == text and sought == old:
        return None
    if not has_break(old):
        return _match(folded, sought, How.QUOTES, most)
    return _in_original(text, _match(to_lf(folded), to_lf(sought), How.QUOTES, most))


def _match(text: str, old: str, how: How, most: int | None) -> TextMatch | None:
    size = len(old)
    starts = list(islice(_starts(text, old), most))
    if not starts:
        return None
    overlapping = _overlapping(text, old, starts[0]) if len(starts) == 1 else ()
    more = text.count(old, starts[-1] + size) if len(starts) == most else 0
    return TextMatch(tuple([Span(at, at + size) for at in starts]), how, overlapping, more)


def _starts(text: str, old: str) -> Iterator[int]:
    at = text.find(old)
    while at >= 0:
        yield at
        at = text.find(old, at + len(old))


def _overlapping(text: str, old: str, only: int) -> tuple[Span, ...]:
    found, at = list[Span](), only
    while len(found) < OVERLAPS_TRIED and (at := text.find(old, at + 1, only + 2 * len(old) - 1)) >= 0:
        found.append(Span(at, at + len(old)))
    return tuple(found)


def _absent_from(text: str, old: str) -> str:
    return next(char for char in map(chr, range(0x110000)) if char not in text and char not in old)


def _in_original(text: str, match: TextMatch | None) -> TextMatch | None:
    """The same places in the text as it was before its line endings became LF."""
    if match is None or CRLF not in text:
        return match
    last = max(span.end for span in (match.spans[-1], *match.overlapping))
    all_shortened = (at - earlier for earlier, at in enumerate(_starts(text, CRLF)))
    shortened = list(takewhile(lambda at: at < last, all_shortened))

    def original(spans: tuple[Span, ...]) -> tuple[Span, ...]:
        return tuple([Span(_shift(span.start, shortened), _shift(span.end, shortened)) for span in spans])

    return TextMatch(original(match.spans), match.how, original(match.overlapping), match.more)


def _shift(position: int, shortened: list[int]) -> int:
    return position + bisect_left(shortened, position)


def _edit(text: str, span: Span, new: str, how: How, fallback: str | None) -> TextEdit:
    return TextEdit(span.start, span.end, _replacement(text, span, new, how, fallback))


def _replacement(text: str, span: Span, new: str, how: How, fallback: str | None) -> str:
    if text.startswith(CRLF, span.end - 1) and span.end > span.start:
        return new  # it ends between CR and LF, so `old` was after the CR itself
    region = text[span.start : span.end]
    if how is How.QUOTES:
        new = keep_quotes(region, new, before=text[span.start - 1 : span.start])
    if not has_break(new):
        return new
    return keep_endings(region, new, fallback=fallback, lone_cr=how is not How.EXACT or fallback == CR)


def _differs_by_place(text: str, new: str, match: TextMatch, fallback: str | None) -> bool:
    """Whether it matters which of several overlapping places is taken: for one of many blank lines it does not."""
    if not match.overlapping:
        return False
    places = (*match.spans, *match.overlapping)
    low, high = places[0].start, places[-1].end
    edits = [_edit(text, span, new, match.how, fallback) for span in places]
    return len({text[low : edit.start] + edit.new + text[edit.end : high] for edit in edits}) > 1


def _ambiguous(text: str, match: TextMatch) -> Ambiguous:
    places = (*match.spans, *match.overlapping)
    return Ambiguous(
        count=len(places) + match.more,
        is_least=len(match.overlapping) == OVERLAPS_TRIED,
        lines=tuple(line_numbers(text, [span.start for span in places[:LINES_NAMED]])),
    )
