"""How a notebook is written: the whitespace at each of its levels, and the order of its keys.

What is not there to be looked at is taken from the nearest cell that shows
it, or otherwise from the level above.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, cast

from .json_layout import Layout
from .json_reader import Array, Object, Value, array_at, object_at
from .matching import Span
from .notebooks import MINOR_WITH_IDS, Cell, Notebook

OF_CODE_ONLY: Final = {"execution_count": "null", "outputs": "[]"}
"""The members that code has and no other cell, as they are written before it ran."""


def nearest(notebook: Notebook, at: int, type: str | None = None) -> Iterator[Cell]:
    """The cells, those of this type first, then by how far they are from a new cell at this index."""

    def distance(cell: Cell) -> tuple[bool, int, int]:
        return type is not None and cell.type != type, abs(2 * cell.index + 1 - 2 * at), cell.index

    return iter(sorted(notebook.cells, key=distance))


def members_of(notebook: Notebook, cell: Cell) -> Object:
    return cast(Object, object_at(notebook.text, cell.span.start).value)


def items_of(notebook: Notebook, source: Value) -> tuple[Value, ...]:
    """The lines of a source that is a list."""
    return cast(Array, array_at(notebook.text, source.start).value).items


def inside(span: Span | Value) -> Span:
    """Without the brackets or quotes around it."""
    return Span(span.start + 1, span.end - 1)


def key_order(notebook: Notebook, at: int, type: str) -> list[str]:
    """The keys of a new cell, in the order of the nearest cell of its type, or otherwise of any."""
    keys = {"cell_type", "metadata", "source"}
    if notebook.minor >= MINOR_WITH_IDS:
        keys.add("id")
    if type == "code":
        keys |= OF_CODE_ONLY.keys()
    near = next(nearest(notebook, at, type), None)
    order = [key for key in near.members if key in keys] if near else []
    alphabetical = sorted(keys)  # as nbformat writes them
    for place, key in enumerate(alphabetical):
        if key not in order:
            order.insert(order.index(alphabetical[place - 1]) + 1 if place else 0, key)
    return order


def colon(notebook: Notebook, members: Object) -> str:
    """What separates a key from its value."""
    member = members.members[0]
    written = notebook.text[member.start : member.value.start]
    return written[len(written.rstrip(" \t\r\n:")) :]


def layout_of_cells(notebook: Notebook) -> Layout:
    spans, spare = [cell.span for cell in notebook.cells], _top(notebook).on_one_line
    return Layout.of(notebook.text, inside(notebook.list_span), spans, spare=spare) or _deeper(notebook, 1)


def layout_of_members(notebook: Notebook, cell: Cell | None) -> Layout:
    """Of this cell, or of one that would be the first."""
    if cell is None:
        return _deeper(notebook, 2)
    members, spare = members_of(notebook, cell).members, _top(notebook).on_one_line
    return Layout.of(notebook.text, inside(cell.span), members, spare=spare) or _deeper(notebook, 2)


def layout_of_lines(notebook: Notebook, cell: Cell) -> Layout:
    """Of the source of a cell that has its lines in a list."""
    source, members = members_of(notebook, cell).get("source"), layout_of_members(notebook, cell)
    layout = None
    if source:
        items, spare = items_of(notebook, source.value), members.on_one_line
        layout = Layout.of(notebook.text, inside(source.value), items, spare=spare)
    return layout or members.inner(_unit(notebook))


def layout_of_new_lines(notebook: Notebook, near: list[Cell]) -> Layout:
    """As in the nearest list of lines, if possible one of two or more, which shows all of it."""
    lists = [cell for cell in near if isinstance(cell.members["source"], list)]
    telling = next((cell for cell in lists if len(cell.members["source"]) > 1), lists[0] if lists else None)
    if telling:
        return layout_of_lines(notebook, telling)
    first = notebook.cells[0] if notebook.cells else None
    return layout_of_members(notebook, first).inner(_unit(notebook))


def _top(notebook: Notebook) -> Layout:
    layout = Layout.of(notebook.text, inside(notebook.span), notebook.members.members)
    assert layout is not None, "a notebook has members"
    return layout


def _deeper(notebook: Notebook, levels: int) -> Layout:
    layout, unit = _top(notebook), _unit(notebook)
    for _ in range(levels):
        layout = layout.inner(unit)
    return layout


def _unit(notebook: Notebook) -> str:
    """What each level is indented by."""
    return _top(notebook).indent
