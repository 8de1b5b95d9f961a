"""Unified diffs and previews, for results and notes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .changes import LineChange, changes
from .lines import CR, LF, content, count_lines, first_lines, split_lines
from .matching import TextEdit, splice_edits

UNFINISHED = "\\ No newline at end of file"
CR_SIGN = "␍"
LINE_CHARS = 2_000
MORE_CHANGES = "[more changes follow]"
CONTEXT = 3
"""Lines around a change."""


def unified_diff(
    before: str, after: str, path: str, *, context: int = CONTEXT, limit: int | None = None, show_cr: bool = False
) -> str:
    r"""The change as a patch that `git apply` takes, or nothing without a change.

    `limit` cuts it to that many lines, the last of which says how many are
    missing, and long lines with it; the result is then not a patch. Nor is it
    with `show_cr`, which writes `␍` for each CR, for readers who would not see
    it. A text whose lines end in CR alone is shown that way in any case.

    >>> print(unified_diff("a\nb\n", "a\nc", "f"), end="")
    --- a/f
    +++ b/f
    @@ -1,2 +1,2 @@
     a
    -b
    +c
    \ No newline at end of file
    """
    return _patch(path, list(_body(*_lines(before, after), context)), limit, show_cr=show_cr)


def of_edits(
    text: str, edits: Sequence[TextEdit], path: str, *, limit: int | None = None, show_cr: bool = False
) -> str:
    """The patch of these edits, made without a look at the rest of the text."""
    if LF not in text:
        return unified_diff(text, splice_edits(text, edits), path, limit=limit, show_cr=show_cr)
    body, counted, line, shift, shown = list[str](), 0, 0, 0, 0
    for low, high, inside in _windows(text, edits, limit):
        if limit is not None and len(body) > limit:
            break
        shown += len(inside)
        line += text.count(LF, counted, low)
        counted = low
        before = text[low:high]
        after = splice_edits(before, [TextEdit(edit.start - low, edit.end - low, edit.new) for edit in inside])
        body += _body(split_lines(before, LF), split_lines(after, LF), CONTEXT, line, line + shift)
        shift += after.count(LF) - before.count(LF)
    if shown < len(edits):
        body.append(MORE_CHANGES)
    return _patch(path, body, limit, show_cr=show_cr)


def preview(text: str, lines: int = 30) -> str:
    r"""The first lines, and how many there are where these are not all.

    >>> preview("a\nb\nc\n", 2)
    'a\nb\n[2 of 3 lines]'
    """
    shown = [_clip(content(line)) for line in first_lines(text, lines)]
    total = count_lines(text)
    return LF.join([*shown, f"[{lines} of {total:,} lines]"] if total > lines else shown)


def _windows(text: str, edits: Sequence[TextEdit], most: int | None) -> Iterator[tuple[int, int, list[TextEdit]]]:
    """Whole lines around each edit, joined where two of them meet; nothing follows one with `most` changed lines."""
    low = high = line_end = -1
    inside, lines = list[TextEdit](), 0
    for edit in edits:
        if inside and edit.end <= line_end:  # in a line that was looked at already
            inside.append(edit)
            continue
        if most is not None and lines > most:
            break
        up = high if inside and edit.start < high else _up(text, edit.start)
        if inside and up > high:
            yield low, high, inside
            inside, lines = [], 0
        lines += 1
        low = up if not inside else low
        high, line_end = _down(text, edit.end)
        inside.append(edit)
    if inside:
        yield low, high, inside


def _up(text: str, position: int) -> int:
    """Where the line begins that is one more than the context before this position: a diff may slide that far."""
    for _ in range(CONTEXT + 2):
        position = text.rfind(LF, 0, position)
        if position < 0:
            return 0
    return position + 1


def _down(text: str, position: int) -> tuple[int, int]:
    """Where the lines after this position end that belong to its window, and where its own line does."""
    own = position = text.find(LF, position)
    for _ in range(CONTEXT + 1):
        if position < 0:
            return len(text), len(text) if own < 0 else own
        position = text.find(LF, position + 1)
    return (len(text) if position < 0 else position + 1), own


def _patch(path: str, body: list[str], limit: int | None, *, show_cr: bool) -> str:
    if not body:
        return ""
    name = path.lstrip("/").replace(LF, "\\n")
    lines = [f"--- a/{name}", f"+++ b/{name}", *body]
    if show_cr:
        lines = [line.replace(CR, CR_SIGN) for line in lines]
    return "".join(f"{line}\n" for line in _limit(lines, limit))


def _body(old: list[str], new: list[str], context: int, a_base: int = 0, b_base: int = 0) -> Iterator[str]:
    for hunk in _hunks(changes(old, new), context):
        yield from _hunk(old, new, hunk, context, a_base, b_base)


def _lines(before: str, after: str) -> tuple[list[str], list[str]]:
    if LF in before or LF in after or not (CR in before or CR in after):
        return split_lines(before, LF), split_lines(after, LF)
    shown = [text.replace(CR, CR_SIGN + LF) for text in (before, after)]
    return split_lines(shown[0], LF), split_lines(shown[1], LF)


def _hunks(every: list[LineChange], context: int) -> Iterator[list[LineChange]]:
    hunk = list[LineChange]()
    for change in every:
        if hunk and change.a.start - hunk[-1].a.stop > 2 * context:
            yield hunk
            hunk = []
        hunk.append(change)
    if hunk:
        yield hunk


def _hunk(old: list[str], new: list[str], hunk: list[LineChange], context: int, a_base: int, b_base: int) -> list[str]:
    above = min(context, hunk[0].a.start)
    below = min(context, len(old) - hunk[-1].a.stop)
    a_low, a_high = hunk[0].a.start - above, hunk[-1].a.stop + below
    b_low, b_high = hunk[0].b.start - above, hunk[-1].b.stop + below
    place = f"@@ -{_range(a_low + a_base, a_high + a_base)} +{_range(b_low + b_base, b_high + b_base)} @@"
    lines, done = [place], a_low
    for change in hunk:
        lines += _mark_lines(" ", old[done : change.a.start])
        lines += _mark_lines("-", old[change.a])
        lines += _mark_lines("+", new[change.b])
        done = change.a.stop
    return [*lines, *_mark_lines(" ", old[done:a_high])]


def _range(low: int, high: int) -> str:
    """As in a patch: an empty range names the line before it, and a single line has no length."""
    size = high - low
    return f"{low + 1}" if size == 1 else f"{low + 1 if size else low},{size}"


def _mark_lines(mark: str, lines: list[str]) -> Iterator[str]:
    for line in lines:
        yield mark + line.removesuffix(LF)
        if not line.endswith(LF):
            yield UNFINISHED


def _limit(lines: list[str], limit: int | None) -> list[str]:
    if limit is None:
        return lines
    lines = [_clip(line) for line in lines]
    if len(lines) <= limit:
        return lines
    kept = max(limit - 1, 0)
    if lines[-1] == MORE_CHANGES:
        return [*lines[:kept], MORE_CHANGES]
    return [*lines[:kept], f"[{len(lines) - kept:,} more lines of this diff]"]


def _clip(line: str) -> str:
    return line if len(line) <= LINE_CHARS else f"{line[:LINE_CHARS]} [{len(line) - LINE_CHARS:,} more characters]"
