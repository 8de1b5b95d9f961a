"""The cells of a notebook as they are shown: sources, and what their runs put out."""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

from ..text.notebooks import Cell, Notebook, NotNotebook, joined
from .filling import weight
from .images import PIXELS_PER_TOKEN, BadImage, Picture, fitted_picture

PICTURES = ("image/png", "image/jpeg", "image/gif", "image/webp")
TEXTS = ("text/plain", "text/markdown", "text/latex", "application/json", "text/html", "image/svg+xml")
"""What an output may say the same thing in, the plainest first."""
MOST_PICTURES = 20
"""Of one cell: a model's service takes only so many at once."""
_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\^_])")

Output: TypeAlias = str | Picture


@dataclass(frozen=True, slots=True)
class ShownCell:
    number: int
    """From 1."""
    id: str
    """Its id, or `cell-3` (from 0) in a notebook that is older than ids."""
    type: str
    source: str
    outputs: tuple[Output, ...]
    execution_count: int | None

    def blocks(self) -> Iterator[Output]:
        run = f", run {self.execution_count}" if self.execution_count is not None else ""
        yield f"[Cell {self.number}, id {self.id}: {self.type}{run}]\n{self.source}"
        for output in self.outputs:
            yield f"[Output of {self.id}]\n{output}" if isinstance(output, str) else output

    @property
    def pictures_weight(self) -> int:
        """In quarters of a token."""
        sizes = (output.width * output.height for output in self.outputs if isinstance(output, Picture))
        return 4 * sum(sizes) // PIXELS_PER_TOKEN

    def text(self) -> str:
        return "\n".join(block for block in self.blocks() if isinstance(block, str))


@dataclass(frozen=True, slots=True)
class CellPage:
    cells: tuple[ShownCell, ...]
    total: int
    long: ShownCell | None
    """The first cell that is left out because it alone is more than a page."""


def cell_page(notebook: Notebook, *, first: int, count: int | None, room: int) -> CellPage:
    """As many of the cells from `first` on as there is room for."""
    wanted = notebook.cells[first - 1 :] if count is None else notebook.cells[first - 1 : first - 1 + count]
    shown: list[ShownCell] = []
    left = room
    for cell in wanted:
        candidate = shown_cell(cell)
        needed = weight(candidate.text()) + len("\n\n")
        if needed > room:
            return CellPage(tuple(shown), len(notebook.cells), candidate)
        needed += candidate.pictures_weight
        if needed > left and shown:
            break
        shown.append(candidate)
        left -= needed
    return CellPage(tuple(shown), len(notebook.cells), None)


def shown_cell(cell: Cell) -> ShownCell:
    pictures = 0
    outputs: list[Output] = []
    for output in (output for one in cell.outputs for output in _outputs(one)):
        pictures += isinstance(output, Picture)
        full = isinstance(output, Picture) and pictures > MOST_PICTURES
        outputs.append(f"(one more picture; a cell shows {MOST_PICTURES})" if full else output)
    return ShownCell(cell.index + 1, cell.name, cell.type, cell.source, tuple(outputs), cell.execution_count)


def plain(text: str) -> str:
    """Without the codes that colour a terminal.

    >>> plain("\\x1b[0;31mValueError\\x1b[0m")
    'ValueError'
    """
    return _ANSI.sub("", text)


def _outputs(output: Any) -> Iterator[Output]:
    """What is not as the format says is shown as it is."""
    told = _mapping(output)
    try:
        match told.get("output_type"):
            case "stream":
                yield plain(joined(told.get("text"), "a stream")).rstrip("\n")
            case "error":
                yield _error(told)
            case "display_data" | "execute_result":
                yield _data(told.get("data"))
            case _:
                yield json.dumps(output, ensure_ascii=False)
    except NotNotebook as reason:
        yield f"({reason})"


def _error(told: Mapping[str, Any]) -> str:
    traceback = cast(list[Any], told.get("traceback")) if isinstance(told.get("traceback"), list) else []
    return plain("\n".join(map(str, traceback))) or f"{told.get('ename', 'Error')}: {told.get('evalue', '')}"


def _data(data: Any) -> Output:
    forms = _mapping(data)
    for media_type in PICTURES:
        if media_type in forms:
            return _picture(joined(forms[media_type], "a picture"))
    for media_type in TEXTS:
        if media_type in forms:
            value = forms[media_type]
            return json.dumps(value) if media_type == "application/json" else plain(joined(value, media_type))
    return f"({', '.join(forms) or 'nothing'})"


def _picture(encoded: str) -> Output:
    try:
        return fitted_picture(base64.b64decode(encoded))
    except (BadImage, binascii.Error, ValueError) as reason:
        return f"(a picture that cannot be shown: {reason})"


def _mapping(value: Any) -> Mapping[str, Any]:
    return cast(Mapping[str, Any], value) if isinstance(value, dict) else {}
