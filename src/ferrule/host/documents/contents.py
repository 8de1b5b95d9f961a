"""What was read of a file: one of six kinds."""

from __future__ import annotations

from dataclasses import field
from typing import Literal, TypeAlias

from ...core.values import named_value, plain_value
from .notebook_cells import ShownCell
from .pdfs import PageRange, PdfPage


@plain_value
class TextRead:
    kind: Literal["text"] = field(default="text", init=False)
    path: str
    content: str
    """Lines without numbers; long ones are cut."""
    lines: int
    start: int
    total: int | None
    """`None` for a file too long to count."""
    notes: tuple[str, ...] = ()
    reminder: str = ""


@named_value
class ImageRead:
    kind: Literal["image"] = field(default="image", init=False)
    path: str
    data: str
    """As base64, shrunk where it was too large."""
    media_type: str
    original_size: int
    original_width: int
    original_height: int
    width: int
    height: int
    preview: str
    """For people: a small PNG as base64."""
    is_seen: bool = True
    """Whether the model can see it; otherwise it is told what there is."""


@plain_value
class NotebookRead:
    kind: Literal["notebook"] = field(default="notebook", init=False)
    path: str
    cells: tuple[ShownCell, ...]
    start: int
    total: int
    notes: tuple[str, ...] = ()
    reminder: str = ""


@plain_value
class PdfRead:
    kind: Literal["pdf"] = field(default="pdf", init=False)
    path: str
    data: str
    """The pages asked for as a document of their own, as base64; empty where that is too large to be sent."""
    original_size: int
    pages: PageRange
    total: int
    sheets: tuple[PdfPage, ...]
    """Text and pictures of the pages; none where the model takes the document."""
    notes: tuple[str, ...] = ()
    reminder: str = ""


@plain_value
class PartsRead:
    """What lines, cells or pages cannot divide, in files that can each be read."""

    kind: Literal["parts"] = field(default="parts", init=False)
    path: str
    original_size: int
    count: int
    folder: str
    what: str
    """What was split, such as "line 1"."""
    notes: tuple[str, ...] = ()


@plain_value
class FileUnchanged:
    kind: Literal["file_unchanged"] = field(default="file_unchanged", init=False)
    path: str


ReadOutput: TypeAlias = TextRead | ImageRead | NotebookRead | PdfRead | PartsRead | FileUnchanged
