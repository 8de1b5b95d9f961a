"""Jupyter notebooks: their cells, and where in the text each is.

A notebook is read, not validated against its schema: what
Jupyter opens should be readable here, and an edit leaves alone what it does
not know.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, Literal, TypeAlias, cast

from ..core.values import named_value
from .json_reader import Array, NotJson, Object, Value, array_at, object_at, read_json
from .matching import Span

CellType: TypeAlias = Literal["code", "markdown", "raw"]

FORMAT: Final = 4
MINOR_WITH_IDS: Final = 5
_VALID_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_BY_INDEX: Final = re.compile(r"(?:cell-)?([0-9]{1,9})")


class NotNotebook(Exception):
    """The text is not a readable notebook. The message says why, as in "it is invalid JSON in line 3, …"."""


@named_value
class Cell:
    index: int
    id: str | None
    type: str
    """One of `CellType` in a valid notebook; others are read as they are."""
    source: str
    outputs: tuple[Any, ...]
    """As decoded; empty for a cell that is not code."""
    execution_count: int | None
    span: Span
    members: Mapping[str, Any]
    """All of it as decoded, such as the metadata."""

    @property
    def name(self) -> str:
        """What to call it: its id, or `cell-3` where it has none that the format allows."""
        return self.id if self.id and _VALID_ID.fullmatch(self.id) else f"cell-{self.index}"


@named_value
class Notebook:
    text: str
    minor: int
    """The second number of its format, which is 4.something."""
    metadata: Mapping[str, Any]
    cells: tuple[Cell, ...]
    members: Object
    span: Span
    list_span: Span
    """Of the list of cells, brackets included."""

    @property
    def language(self) -> str:
        """What the code cells are written in; nothing where the notebook does not say."""
        for part, key in (("language_info", "name"), ("kernelspec", "language")):
            named = _mapping(self.metadata.get(part)).get(key)
            if isinstance(named, str):
                return named
        return ""

    def find_cells(self, name: str) -> tuple[Cell, ...]:
        """The cells of that id, or otherwise the one of that index: `3` or `cell-3`, from 0.

        More than one only where ids repeat, which the format forbids.
        """
        by_id = tuple(cell for cell in self.cells if cell.id == name)
        found = _BY_INDEX.fullmatch(name.strip())
        if by_id or not found:
            return by_id
        return self.cells[int(found[1]) : int(found[1]) + 1]


def parse_notebook(text: str) -> Notebook:
    """Raises `NotNotebook`."""
    try:
        value = read_json(text, lambda text, at: object_at(text, at, {"cells": array_at}))
    except NotJson as error:
        raise NotNotebook(f"it is {str(error).removesuffix('.')}") from None
    top = value.value
    if not isinstance(top, Object):
        raise NotNotebook("it is JSON, but not an object with cells")
    listed = _find_cell_list(top)
    cells = cast(Array, listed.value).items
    return Notebook(
        text=text,
        minor=_whole_number(_decode(top, "nbformat_minor")) or 0,
        metadata=_mapping(_decode(top, "metadata")),
        cells=tuple(_cell(index, value) for index, value in enumerate(cells)),
        members=top,
        span=Span(value.start, value.end),
        list_span=Span(listed.start, listed.end),
    )


def join_source(source: Any, what: str) -> str:
    """A text that is written as one string or as a list of them. Raises `NotNotebook` for anything else.

    >>> join_source(["a\\n", "b"], "a source")
    'a\\nb'
    """
    if source is None:
        return ""
    if isinstance(source, str):
        return source
    if isinstance(source, list) and all(isinstance(part, str) for part in cast(list[Any], source)):
        return "".join(cast(list[str], source))
    raise NotNotebook(f"{what} is neither a string nor a list of strings")


def _find_cell_list(top: Object) -> Value:
    """The list of cells, once the format is one that has it."""
    number, cells = _whole_number(_decode(top, "nbformat")), top.get("cells")
    if (number is not None and number < FORMAT) or (cells is None and top.get("worksheets")):
        raise NotNotebook(
            f"it is in format {number or 3}, which is outdated. "
            f"Convert it first: jupyter nbconvert --to notebook --inplace"
        )
    if number != FORMAT:
        said = f"its format is {number}" if number is not None else "it has no number `nbformat`"
        raise NotNotebook(f"{said}, and only format {FORMAT} is supported")
    if cells is None or not isinstance(cells.value.value, Array):
        raise NotNotebook("it has no list `cells`")
    return cells.value


def _cell(index: int, value: Value) -> Cell:
    if not isinstance(value.value, dict):
        raise NotNotebook(f"its cell {index} is not an object")
    members = cast(dict[str, Any], value.value)
    kind, id, outputs = (members.get(key) for key in ("cell_type", "id", "outputs"))
    if not isinstance(kind, str):
        raise NotNotebook(f"its cell {index} has no `cell_type`")
    return Cell(
        index=index,
        id=id if isinstance(id, str) and id else None,
        type=kind,
        source=join_source(members.get("source"), f"the source of its cell {index}"),
        outputs=tuple(cast(list[Any], outputs)) if isinstance(outputs, list) else (),
        execution_count=_whole_number(members.get("execution_count")),
        span=Span(value.start, value.end),
        members=members,
    )


def _decode(members: Object, key: str) -> Any:
    member = members.get(key)
    return member.value.value if member else None


def _whole_number(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _mapping(value: Any) -> Mapping[str, Any]:
    return cast(Mapping[str, Any], value) if isinstance(value, dict) else {}
