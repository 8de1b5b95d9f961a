"""Unified diffs and previews, for results and notes."""

from __future__ import annotations

from collections.abc import Iterator

from .changes import Change, changes
from .lines import CR, LF, content, split_lines

UNFINISHED = "\\ No newline at end of file"
CR_SIGN = "␍"
LINE_CHARS = 2_000


def unified(
    before: str, after: str, path: str, *, context: int = 3, limit: int | None = None, show_cr: bool = False
) -> str:
    r"""The change as a patch that `git apply` takes, or nothing where there is none.

    `limit` cuts it to that many lines, the last of which says how many are
    missing. `show_cr` writes `␍` for each CR, for readers who would not see it;
    the result then is no patch. A text whose lines end in CR alone is shown
    that way in any case.

    >>> print(unified("a\nb\n", "a\nc", "f"), end="")
    --- a/f
    +++ b/f
    @@ -1,2 +1,2 @@
     a
    -b
    +c
    \ No newline at end of file
    """
    old, new = _lines(before, after)
    hunks = list(_hunks(changes(old, new), context))
    if not hunks:
        return ""
    name = path.lstrip("/").replace(LF, "\\n")
    lines = [f"--- a/{name}", f"+++ b/{name}"]
    for hunk in hunks:
        lines += _hunk(old, new, hunk, context)
    shown = (line.replace(CR, CR_SIGN) for line in lines) if show_cr else lines
    return "".join(f"{line}\n" for line in _limited(list(shown), limit))


def preview(text: str, lines: int = 30) -> str:
    r"""The first lines, and how many there are where these are not all.

    >>> preview("a\nb\nc\n", 2)
    'a\nb\n[2 of 3 lines]'
    """
    every = split_lines(text)
    shown = [_clipped(content(line)) for line in every[:lines]]
    return LF.join([*shown, f"[{lines} of {len(every):,} lines]"] if len(every) > lines else shown)


def _lines(before: str, after: str) -> tuple[list[str], list[str]]:
    if LF in before or LF in after or not (CR in before or CR in after):
        return split_lines(before, LF), split_lines(after, LF)
    shown = [text.replace(CR, CR_SIGN + LF) for text in (before, after)]
    return split_lines(shown[0], LF), split_lines(shown[1], LF)


def _hunks(every: list[Change], context: int) -> Iterator[list[Change]]:
    hunk = list[Change]()
    for change in every:
        if hunk and change.a.start - hunk[-1].a.stop > 2 * context:
            yield hunk
            hunk = []
        hunk.append(change)
    if hunk:
        yield hunk


def _hunk(old: list[str], new: list[str], hunk: list[Change], context: int) -> list[str]:
    above = min(context, hunk[0].a.start)
    below = min(context, len(old) - hunk[-1].a.stop)
    a_low, a_high = hunk[0].a.start - above, hunk[-1].a.stop + below
    b_low, b_high = hunk[0].b.start - above, hunk[-1].b.stop + below
    lines, done = [f"@@ -{_range(a_low, a_high)} +{_range(b_low, b_high)} @@"], a_low
    for change in hunk:
        lines += _marked(" ", old[done : change.a.start])
        lines += _marked("-", old[change.a])
        lines += _marked("+", new[change.b])
        done = change.a.stop
    return [*lines, *_marked(" ", old[done:a_high])]


def _range(low: int, high: int) -> str:
    """As in a patch: an empty range names the line before it, and a single line has no length."""
    size = high - low
    return f"{low + 1}" if size == 1 else f"{low + 1 if size else low},{size}"


def _marked(mark: str, lines: list[str]) -> Iterator[str]:
    for line in lines:
        yield mark + line.removesuffix(LF)
        if not line.endswith(LF):
            yield UNFINISHED


def _limited(lines: list[str], limit: int | None) -> list[str]:
    if limit is None or len(lines) <= limit:
        return lines
    kept = max(limit - 1, 0)
    return [*lines[:kept], f"[{len(lines) - kept:,} more lines of this diff]"]


def _clipped(line: str) -> str:
    return line if len(line) <= LINE_CHARS else f"{line[:LINE_CHARS]} [{len(line) - LINE_CHARS:,} more characters]"
