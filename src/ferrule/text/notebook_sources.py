"""The source of a cell, as a list of lines or as one string, and what a new one changes of it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import Any, Final

from ..core.values import named_value
from .json_layout import Layout, encode_string, escapes, without
from .json_reader import Value
from .lines import LF, split_lines
from .matching import TextEdit
from .notebook_layout import inside, items_of, layout_of_lines, layout_of_new_lines, nearest
from .notebooks import Cell, Notebook

NOTHING: Final = Layout(open="", separator="", close="")
_LINE: Final = re.compile(r"(?:[^\\]++|\\[^n])*+\\n|(?:[^\\]++|\\[^n])+")
"""A line within a string as it is written, with the escape that ends it."""


@named_value
class _Lines:
    """The lines of a source with their places, and how another would be written beside them."""

    items: tuple[Value, ...]
    layout: Layout
    as_list: bool
    ascii_only: bool

    def write(self, line: str) -> str:
        quoted = encode_string(line, ascii_only=self.ascii_only)
        return quoted if self.as_list else quoted[1:-1]

    def whole(self, lines: Sequence[str]) -> str:
        if not lines:
            return "[]" if self.as_list else '""'
        inner = self.layout.around([self.write(line) for line in lines])
        return f"[{inner}]" if self.as_list else f'"{inner}"'


def write_source(notebook: Notebook, at: int, source: str) -> str:
    """For a new cell at this index."""
    return _new(notebook, at).whole(split_lines(source, LF))


def source_edits(notebook: Notebook, cell: Cell, there: Value, source: str) -> Iterator[TextEdit]:
    """Replace the source of this cell."""
    lines, standing = split_lines(source, LF), _standing(notebook, cell, there)
    if source == cell.source:
        return
    if not lines or not standing.items:
        yield TextEdit(there.start, there.end, standing.whole(lines))
    else:
        yield from _change_lines(notebook.text, there, standing, lines)


def _change_lines(text: str, there: Value, standing: _Lines, lines: list[str]) -> Iterator[TextEdit]:
    """Only the lines that differ, from the first to the last; those kept in between stay as they are written."""
    items, separator = standing.items, standing.layout.separator
    old = [item.value for item in items]
    head = _alike(old, lines)
    tail = _alike(old[head:][::-1], lines[head:][::-1])
    stop = len(items) - tail
    as_written = {item.value: text[item.start : item.end] for item in items}
    new = [as_written.get(line) or standing.write(line) for line in lines[head : len(lines) - tail]]
    if head < stop and new:
        yield TextEdit(items[head].start, items[stop - 1].end, separator.join(new))
    elif head < stop:
        yield from without(items, range(head, stop), inside(there))
    elif head:
        yield TextEdit(items[head - 1].end, items[head - 1].end, "".join(separator + line for line in new))
    else:
        yield TextEdit(items[0].start, items[0].start, "".join(line + separator for line in new))


def _alike(one: Sequence[Any], other: Sequence[Any]) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def _standing(notebook: Notebook, cell: Cell, there: Value) -> _Lines:
    """How this source is written; an empty one does not tell, so those near it do."""
    if not there.value:
        return _new(notebook, cell.index, spare=isinstance(there.value, list))
    raw = notebook.text[there.start : there.end]
    own = escapes(raw)
    ascii_only = own if own is not None else bool(escapes(notebook.text))
    if isinstance(there.value, str):
        items = tuple(_lines_within(raw, there.start))
        return _Lines(items=items, layout=NOTHING, as_list=False, ascii_only=ascii_only)
    layout = layout_of_lines(notebook, cell)
    return _Lines(items=items_of(notebook, there), layout=layout, as_list=True, ascii_only=ascii_only)


def _new(notebook: Notebook, at: int, *, spare: bool = True) -> _Lines:
    """For a source that has no lines yet: a list or a string like the nearest, a list if `spare` if none shows it."""
    filled = [cell for cell in nearest(notebook, at) if cell.source]
    as_list = isinstance(filled[0].members["source"], list) if filled else spare
    layout = layout_of_new_lines(notebook, filled) if as_list else NOTHING
    return _Lines(items=(), layout=layout, as_list=as_list, ascii_only=bool(escapes(notebook.text)))


def _lines_within(raw: str, start: int) -> Iterator[Value]:
    for found in _LINE.finditer(raw, 1, len(raw) - 1):
        yield Value(start + found.start(), start + found.end(), json.loads(f'"{found[0]}"'))
