"""The cells of a notebook as they are shown: sources and outputs."""

from __future__ import annotations

import base64
import binascii
import errno
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias, cast

from ...core.values import plain_value
from ...text.notebooks import Cell, Notebook, NotNotebook, join_source
from .images import PIXELS_PER_TOKEN, BadImage, FittedPicture, fit_picture, pixels_of
from .text_pages import weight

PICTURES = ("image/png", "image/jpeg", "image/gif", "image/webp")
TEXTS = ("text/plain", "text/markdown", "text/latex", "application/json", "text/html", "image/svg+xml")
"""What an output may say the same thing in, the plainest first."""
MOST_PICTURES = 20
"""Of one cell: a model's service takes only so many at once."""
MOST_PIXELS_UNPACKED = 200_000_000
"""Of one cell, and about as many of one page: some seconds of work."""
_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\^_])")

Output: TypeAlias = str | FittedPicture


@plain_value
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
        yield f"[Cell index {self.number - 1}, id {self.id}: {self.type}{run}]\n{self.source}"
        for output in self.outputs:
            yield f"[Output of {self.id}]\n{output}" if isinstance(output, str) else output

    @property
    def pictures_weight(self) -> int:
        """In quarters of a token."""
        sizes = (output.width * output.height for output in self.outputs if isinstance(output, FittedPicture))
        return 4 * sum(sizes) // PIXELS_PER_TOKEN

    def text(self) -> str:
        return "\n".join(block for block in self.blocks() if isinstance(block, str))


@plain_value
class CellPage:
    cells: tuple[ShownCell, ...]
    total: int
    long: ShownCell | None
    """The first cell that is left out because it alone is more than a page."""


class Album:
    """The pictures of one cell: how many more there may be, and how large."""

    def __init__(self, interrupted: Callable[[], bool] = bool) -> None:
        self._interrupted = interrupted
        self._left = MOST_PICTURES
        self.pixels = 0

    def add(self, encoded: str) -> Output:
        """The picture, or words instead of it. Raises `InterruptedError` once somebody wants the work to end."""
        if self._interrupted():
            raise InterruptedError(errno.EINTR, os.strerror(errno.EINTR))
        if not self._left:
            return f"(one more picture; a cell shows {MOST_PICTURES})"
        try:
            data = base64.b64decode(encoded)
            pixels = pixels_of(data)
            if self.pixels + pixels > MOST_PIXELS_UNPACKED:
                return f"(one more picture, of {pixels:,} pixels; those before it are as much as a cell shows)"
            self._left, self.pixels = self._left - 1, self.pixels + pixels
            return fit_picture(data)
        except (BadImage, binascii.Error, ValueError) as reason:
            return f"(a picture that cannot be shown: {reason})"


def cell_page(
    notebook: Notebook, *, first: int, count: int | None, room: int, interrupted: Callable[[], bool] = bool
) -> CellPage:
    """As many of the cells from `first` on as there is room for.

    Raises `InterruptedError` once somebody wants the work to end.
    """
    wanted = notebook.cells[first - 1 :] if count is None else notebook.cells[first - 1 : first - 1 + count]
    shown: list[ShownCell] = []
    left, pixels = room, 0
    for cell in wanted:
        album = Album(interrupted)
        candidate = show_cell(cell, album)
        pixels += album.pixels
        needed = weight(candidate.text()) + len("\n\n")
        if needed > room:
            return CellPage(tuple(shown), len(notebook.cells), candidate)
        needed += candidate.pictures_weight
        if shown and (needed > left or pixels > MOST_PIXELS_UNPACKED):
            break
        shown.append(candidate)
        left -= needed
    return CellPage(tuple(shown), len(notebook.cells), None)


def show_cell(cell: Cell, album: Album) -> ShownCell:
    outputs = tuple(output for one in cell.outputs for output in _outputs(one, album))
    return ShownCell(cell.index + 1, cell.name, cell.type, cell.source, outputs, cell.execution_count)


def plain(text: str) -> str:
    """Without the codes that colour a terminal.

    >>> plain("\\x1b[0;31mValueError\\x1b[0m")
    'ValueError'
    """
    return _ANSI.sub("", text)


def _outputs(output: Any, album: Album) -> Iterator[Output]:
    """Whatever does not follow the format is shown as it is."""
    told = _mapping(output)
    try:
        match told.get("output_type"):
            case "stream":
                yield plain(join_source(told.get("text"), "a stream")).rstrip("\n")
            case "error":
                yield _error(told)
            case "display_data" | "execute_result":
                yield _data(told.get("data"), album)
            case _:
                yield json.dumps(output, ensure_ascii=False)
    except NotNotebook as reason:
        yield f"({reason})"


def _error(told: Mapping[str, Any]) -> str:
    traceback = cast(list[Any], told.get("traceback")) if isinstance(told.get("traceback"), list) else []
    lines = [line if isinstance(line, str) else json.dumps(line, ensure_ascii=False) for line in traceback]
    return plain("\n".join(lines)) or f"{told.get('ename') or 'Error'}: {told.get('evalue') or ''}"


def _data(data: Any, album: Album) -> Output:
    forms = _mapping(data)
    for media_type in PICTURES:
        if media_type in forms:
            return album.add(join_source(forms[media_type], "a picture"))
    for media_type in TEXTS:
        if media_type in forms:
            value = forms[media_type]
            return json.dumps(value) if media_type == "application/json" else plain(join_source(value, media_type))
    return f"({', '.join(forms) or 'nothing'})"


def _mapping(value: Any) -> Mapping[str, Any]:
    return cast(Mapping[str, Any], value) if isinstance(value, dict) else {}
