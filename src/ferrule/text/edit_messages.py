"""What the model reads about an edit: what happened, then what to do."""

from __future__ import annotations

import re
from collections.abc import Sequence

from .diffs import preview
from .lines import LF, content, count_lines, split_lines
from .matching import MOST_PLACES, Ambiguous, How, NoChange, TooMany
from .nearest import Nearest, is_searchable, nearest

LEGEND = "(- `old_string`, + the file; · is a space, → a tab)"
QUOTED_LINES = 40
QUOTED_CHARS = 4_000
_HALF = re.compile(r"[\ud800-\udfff]")


def not_found(path: str, text: str, old: str) -> str:
    """Why `old` cannot be replaced, with the nearest place in the text of the file."""
    if not old:
        return (
            f"`old_string` is empty, which fits only a missing or empty file, and {path} has text. "
            "Give the text to replace, or use Write to replace all of it."
        )
    if not text:
        return f"`old_string` is not in {path}, which is empty. Leave `old_string` empty to fill it."
    if not is_searchable(text):
        return (
            f"`old_string` is not in {path}, which is too long to look for something like it. Find the text with Grep."
        )
    near = nearest(text, old)
    if near is None:
        return (
            f"`old_string` is not in {path}, nor is anything like it. Read the file again, or find the text with Grep."
        )
    return _near(path, near)


def ambiguous(path: str, found: Ambiguous) -> str:
    named = list(dict.fromkeys(found.lines))
    lines = (
        f"line {named[0]}" if len(named) == 1 else f"lines {_join_numbers(named, more=found.count > len(found.lines))}"
    )
    count = f"more than {found.count - 1:,}" if found.is_least else f"{found.count:,}"
    return (
        f"`old_string` occurs {count} times in {path}, on {lines}. "
        "Add surrounding lines until it is unique, or set `replace_all`."
    )


def too_many(path: str, found: TooMany) -> str:
    return (
        f"`old_string` occurs {found.count:,} times in {path}, and one edit changes at most {MOST_PLACES:,} places. "
        "Use a command, such as sed with Bash."
    )


def no_change(path: str, found: NoChange) -> str:
    if found.equal:
        return f"`old_string` and `new_string` are the same, so {path} would not change. Give the text it should have."
    if found.how is How.QUOTES:
        advice = "To change them, give `old_string` with the quotes that the file has"
    else:
        advice = "Convert line endings with a command, if you want that"
    return f"{path} would not change: an edit keeps the line endings and quotes of the text it matches. {advice}."


def half_character(field: str, text: str) -> str:
    """The message about a lone surrogate, which no file can hold; nothing if there is none.

    >>> half_character("content", "\\ud83d")
    '`content` holds U+D83D, half of a character, which cannot be written to a file. Give the whole character.'
    """
    found = None if text.isascii() else _HALF.search(text)
    if found is None:
        return ""
    half = f"U+{ord(found[0]):04X}"
    return f"`{field}` holds {half}, half of a character, which cannot be written to a file. Give the whole character."


def describe_match(how: How) -> str:
    """A sentence for the result of an edit; nothing where the match was exact."""
    match how:
        case How.EXACT:
            return ""
        case How.LINE_ENDINGS:
            return "Matched apart from line endings; those of the file were kept."
        case How.QUOTES:
            return "Matched apart from curly and straight quotes; those of the file were kept."


def describe_created(path: str, text: str, *, with_preview: bool = False) -> str:
    """The result of making a file."""
    if not text:
        return f"Created {path}, which is empty."
    said = f"Created {path}, {phrase_line_count(text)}."
    return f"{said}\n{preview(text)}" if with_preview else said


def describe_lines(ranges: Sequence[tuple[int, int]], total: int) -> str:
    """Where edits were made, by the first and the last line of the first of `total` places.

    >>> describe_lines([(3, 3)], 1), describe_lines([(3, 5)], 1), describe_lines([(1, 1), (4, 5)], 3)
    ('line 3', 'lines 3-5', 'lines 1, 4-5 and more')
    """
    shown = list(dict.fromkeys(str(first) if first == last else f"{first}-{last}" for first, last in ranges))
    word = "line" if len(shown) == 1 and "-" not in shown[0] and len(ranges) == total else "lines"
    return f"{word} {', '.join(shown)}" + (" and more" if len(ranges) < total else "")


def phrase_line_count(text: str) -> str:
    """
    >>> phrase_line_count("a\\nb"), phrase_line_count("a")
    ('2 lines', '1 line')
    """
    lines = count_lines(text)
    return "1 line" if lines == 1 else f"{lines:,} lines"


def _near(path: str, near: Nearest) -> str:
    where = f"line {near.first}" if near.first == near.last else f"lines {near.first} to {near.last}"
    part = f"a part of {where}" if near.is_part else where
    return (
        f"`old_string` is not in {path}. The nearest text is on {where}.\nIt differs in {near.difference}.\n\n"
        f"{LEGEND}\n{near.diff}\n\n"
        f"Copy `old_string` from there; this is {part}, exactly:\n{_quote(near.there)}"
    )


def _quote(text: str) -> str:
    lines = [content(line) for line in split_lines(text)]
    shown = LF.join(lines[:QUOTED_LINES])[:QUOTED_CHARS]
    return (
        shown if len(lines) <= QUOTED_LINES and len(shown) < QUOTED_CHARS else f"{shown}\n[Read the rest in the file]"
    )


def _join_numbers(numbers: Sequence[int], *, more: bool) -> str:
    words = [str(number) for number in numbers]
    if more:
        return f"{', '.join(words)} and more"
    return f"{', '.join(words[:-1])} and {words[-1]}"
