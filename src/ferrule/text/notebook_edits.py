"""Edits of a notebook that change one cell and leave every other character alone.

What is new is written as the notebook itself is: its indent and line endings,
the order of its keys, sources as lists or as strings, escapes or none.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterator
from itertools import count
from typing import Final

from .json_layout import encode_string, without
from .json_reader import Member, Object
from .matching import TextEdit
from .notebook_layout import (
    OF_CODE_ONLY,
    colon,
    inside,
    key_order,
    layout_of_cells,
    layout_of_members,
    members_of,
    nearest,
)
from .notebook_sources import source_edits, write_source
from .notebooks import Cell, CellType, Notebook

ID_CHARS: Final = 8


def replace_cell(notebook: Notebook, cell: Cell, source: str, type: CellType | None = None) -> tuple[TextEdit, ...]:
    """The cell gets this source and type; code loses its outputs. No edits if it already has both."""
    becomes = type or cell.type
    if source == cell.source and becomes == cell.type:
        return ()
    members = members_of(notebook, cell)
    there = members.get("source")
    missing = {} if there else {"source": write_source(notebook, cell.index, source)}
    edits = [*source_edits(notebook, cell, there.value, source)] if there else []
    if becomes == "code":
        edits += (edit for key, empty in OF_CODE_ONLY.items() for edit in _over(members.get(key), empty))
    if becomes != cell.type:
        edits += _over(members.get("cell_type"), encode_string(becomes, ascii_only=True))
        edits += _without(cell, members, _foreign(becomes))
        missing |= {key: empty for key, empty in OF_CODE_ONLY.items() if becomes == "code" and key not in cell.members}
    edits += _add_members(notebook, cell, members, becomes, missing)
    return tuple(sorted(edits, key=lambda edit: (edit.start, edit.end)))


def insert_cell(notebook: Notebook, after: Cell | None, source: str, type: CellType) -> tuple[TextEdit, ...]:
    """A new cell after that one, or before all others."""
    cells, layout = notebook.cells, layout_of_cells(notebook)
    if not cells:
        empty = inside(notebook.list_span)
        return (TextEdit(empty.start, empty.end, layout.around([_write_cell(notebook, 0, source, type)])),)
    if after is None:
        first, written = cells[0].span.start, _write_cell(notebook, 0, source, type)
        return (TextEdit(first, first, written + _gap(notebook, 0, layout.separator)),)
    end, written = after.span.end, _write_cell(notebook, after.index + 1, source, type)
    return (TextEdit(end, end, _gap(notebook, after.index, layout.separator) + written),)


def delete_cell(notebook: Notebook, cell: Cell) -> tuple[TextEdit, ...]:
    return tuple(without([cell.span for cell in notebook.cells], {cell.index}, inside(notebook.list_span)))


def _over(member: Member | None, new: str) -> Iterator[TextEdit]:
    """Replace the value that is there, unless the new one means the same."""
    if member and member.value.value != json.loads(new):
        yield TextEdit(member.value.start, member.value.end, new)


def _foreign(type: str) -> Collection[str]:
    """What a cell of this type must not have."""
    return ("attachments",) if type == "code" else OF_CODE_ONLY


def _without(cell: Cell, members: Object, keys: Collection[str]) -> Iterator[TextEdit]:
    gone = {index for index, member in enumerate(members.members) if member.key in keys}
    return without(members.members, gone, inside(cell.span))


def _add_members(
    notebook: Notebook, cell: Cell, members: Object, becomes: str, missing: dict[str, str]
) -> Iterator[TextEdit]:
    """Each where a new cell would have it: after the nearest key before it that the cell has."""
    order, separator = key_order(notebook, cell.index, becomes), layout_of_members(notebook, cell).separator
    for at, key in enumerate(order):
        if key not in missing:
            continue
        written = f'"{key}"{colon(notebook, members)}{missing[key]}'
        anchors = [member for before in order[:at] if (member := members.get(before))]
        if anchors:
            yield TextEdit(anchors[-1].end, anchors[-1].end, separator + written)
        else:
            first = members.members[0].start
            yield TextEdit(first, first, written + separator)


def _write_cell(notebook: Notebook, at: int, source: str, type: CellType) -> str:
    """A new cell, all of it."""
    values = {
        "cell_type": encode_string(type, ascii_only=True),
        "id": encode_string(_new_id(notebook, at, source), ascii_only=True),
        "metadata": "{}",
        "source": write_source(notebook, at, source),
        **OF_CODE_ONLY,
    }
    near = next(nearest(notebook, at, type), None)
    between = colon(notebook, members_of(notebook, near) if near else notebook.members)
    members = [f'"{key}"{between}{values[key]}' for key in key_order(notebook, at, type)]
    return f"{{{layout_of_members(notebook, near).around(members)}}}"


def _new_id(notebook: Notebook, at: int, source: str) -> str:
    """The same for the same edit of the same notebook, and no other cell's."""
    taken = {cell.id for cell in notebook.cells}
    seed = f"{at}\n{source}".encode(errors="surrogatepass")
    tries = (hashlib.sha256(seed + b"\n%d" % number).hexdigest()[:ID_CHARS] for number in count())
    return next(id for id in tries if id not in taken)


def _gap(notebook: Notebook, index: int, spare: str) -> str:
    """What separates this cell from the next, or would."""
    cells = notebook.cells
    for one, other in ((index, index + 1), (index - 1, index)):
        if one >= 0 and other < len(cells):
            return notebook.text[cells[one].span.end : cells[other].span.start]
    return spare
