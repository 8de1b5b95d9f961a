"""How a sought text differs from the file: in words, and as a small diff with its whitespace visible."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from .changes import changes
from .folding import fold_key
from .lines import LF

SHOWN_LINES = 30
SHOWN_CHARS = 160
MARGIN = 40
CONTEXT = 2

_SIGNS = {" ": "·", "\t": "→", "\r": "␍"}


def difference(wanted: list[str], found: list[str]) -> str:
    """Completes the sentence "It differs in …", for the lines sought and the lines of the file.

    >>> difference(["  a"], ["\\ta"])
    'indentation: the file has tabs where `old_string` has spaces'
    """
    old, there = LF.join(wanted), LF.join(found)
    if _bare(old) in _bare(there):
        return _whitespace(wanted, found)
    if old.lower() in there.lower():
        return "upper and lower case"
    if _bare(old).lower() in _bare(there).lower():
        return "upper and lower case, and in whitespace"
    if fold_key(old).replace(LF, "") in fold_key(there).replace(LF, ""):
        return _lookalikes(old, there)
    return _lines(wanted, found)


def _bare(text: str) -> str:
    return "".join(text.split())


def _whitespace(wanted: list[str], found: list[str]) -> str:
    characters = set("".join(wanted)) ^ set("".join(found))
    if odd := sorted(char for char in characters if char.isspace() and not char.isascii()):
        return f"whitespace: {', '.join(f'U+{ord(char):04X}' for char in odd[:6])} is not a plain space"
    if len(wanted) != len(found):
        bare = ([line.strip() for line in lines if line.strip()] for lines in (wanted, found))
        return "blank lines" if len({tuple(lines) for lines in bare}) == 1 else "where the lines break"
    kinds = dict[str, str]()
    for old, there in zip(wanted, found, strict=True):
        for kind, detail in _kinds(old, there):
            kinds.setdefault(kind, kind + detail)
    return ", and in ".join(kinds.values()) or "whitespace where it begins or ends"


def _kinds(old: str, there: str) -> Iterator[tuple[str, str]]:
    """How one line differs. An old line that is only a part of the one in the file has no edges to compare."""
    bare = old.strip()
    if bare == there.strip():
        if _indent(old) != _indent(there):
            yield "indentation", _against(_indent(old), _indent(there))
        if _trail(old) != _trail(there):
            yield "trailing whitespace", _against(_trail(old), _trail(there))
    elif bare not in there:
        yield "the spaces inside a line", ""


def _against(old: str, there: str) -> str:
    if old and there and ("\t" in old) != ("\t" in there):
        tabs, spaces = ("`old_string`", "the file") if "\t" in old else ("the file", "`old_string`")
        return f": {tabs} has tabs where {spaces} has spaces"
    return f": the file has {_count_blanks(there)} where `old_string` has {_count_blanks(old)}"


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def _trail(line: str) -> str:
    return line[len(line.rstrip()) :]


def _count_blanks(blanks: str) -> str:
    names = {"\t": "tab", " ": "space"}
    name = names.get(blanks[0], "whitespace character") if len(set(blanks)) == 1 else "whitespace character"
    return f"{len(blanks)} {name}{'' if len(blanks) == 1 else 's'}" if blanks else "none"


def _lookalikes(old: str, there: str) -> str:
    only = [
        f"U+{ord(char):04X} in {owner}"
        for chars, others, owner in ((there, old, "the file"), (old, there, "`old_string`"))
        for char in sorted(set(chars) - set(others))
        if not char.isascii()
    ]
    return f"characters that look alike or cannot be seen: {', '.join(only[:6])}"


def _lines(wanted: list[str], found: list[str]) -> str:
    every = changes(wanted, _as_cut(wanted, found))
    extra = sum(change.a.stop - change.a.start for change in every)
    lacking = sum(change.b.stop - change.b.start for change in every)
    if not lacking:
        return f"{_line_count(extra)} of `old_string` that the file does not have there"
    if not extra:
        return f"{_line_count(lacking)} that the file has there and `old_string` does not"
    return "its words" if len(wanted) == 1 else f"{extra} of the {len(wanted)} lines of `old_string`"


def _line_count(number: int) -> str:
    return f"{number} line" if number == 1 else f"{number} lines"


def _as_cut(wanted: list[str], found: list[str]) -> list[str]:
    """The lines of the file, cut where `old` begins or ends inside one."""
    cut = list(found)
    if len(wanted) == len(cut) == 1 and wanted[0] in cut[0]:
        return wanted
    if cut and wanted[0] and cut[0].endswith(wanted[0]):
        cut[0] = wanted[0]
    if cut and wanted[-1] and cut[-1].startswith(wanted[-1]):
        cut[-1] = wanted[-1]
    return cut


def visible_diff(wanted: list[str], found: list[str], first: int) -> str:
    """What was sought (-) against what is there (+), numbered as the file is.

    Of lines that agree only those beside a difference are shown.
    """
    every = changes(wanted, _as_cut(wanted, found))
    if not every:
        return _limit(_agreeing(found, range(len(found)), first))
    rows, done = list[str](), 0
    for change in every:
        rows += _agreeing(found, _beside(done, change.b.start, after=bool(rows), before=True), first)
        at = _first_difference(wanted[change.a], found[change.b])
        rows += [f"{'':>6} - {_show_line(line, at)}" for line in wanted[change.a]]
        rows += [f"{first + n:>6} + {_show_line(found[n], at)}" for n in range(change.b.start, change.b.stop)]
        done = change.b.stop
    return _limit(rows + _agreeing(found, _beside(done, len(found), after=True, before=False), first))


def _limit(rows: list[str]) -> str:
    more = len(rows) - SHOWN_LINES
    return LF.join([*rows[:SHOWN_LINES], f"[{more} more lines]"] if more > 0 else rows)


def _beside(low: int, high: int, *, after: bool, before: bool) -> list[int]:
    """Of the lines that agree, those right after a difference and those right before one."""
    below = range(low, min(low + CONTEXT, high)) if after else ()
    above = range(max(low, high - CONTEXT), high) if before else ()
    return sorted({*below, *above})


def _agreeing(found: list[str], lines: Iterable[int], first: int) -> list[str]:
    return [f"{first + n:>6}   {_with_visible_end(found[n][:SHOWN_CHARS])}" for n in lines]


def _with_visible_end(line: str) -> str:
    return line.rstrip() + visible(_trail(line))


def _first_difference(wanted: list[str], found: list[str]) -> int:
    if not wanted or not found:
        return 0
    pairs = zip(wanted[0], found[0], strict=False)
    return next((at for at, (one, other) in enumerate(pairs) if one != other), 0)


def _show_line(line: str, at: int) -> str:
    if len(line) <= SHOWN_CHARS:
        return visible(line)
    low = max(0, min(at - MARGIN, len(line) - SHOWN_CHARS))
    part = visible(line[low : low + SHOWN_CHARS])
    return f"{'…' if low else ''}{part}{'…' if low + SHOWN_CHARS < len(line) else ''}"


def visible(line: str) -> str:
    r"""The line with its whitespace and its invisible characters shown.

    >>> visible("\ta b\u200b")
    '→a·b⟨U+200B⟩'
    """
    return "".join([_SIGNS.get(char) or (char if char.isprintable() else f"⟨U+{ord(char):04X}⟩") for char in line])
