"""PDF documents: their pages as text, and as pictures where they have none.

pdfium does it all, so no program has to be installed. It works in a process of
its own (`host/documents/pdf_process.py`), because a document can be made to keep it busy for ever.
"""

from __future__ import annotations

import json
import re
from base64 import b64decode
from collections.abc import Callable
from typing import Any

from ...core.values import plain_value
from ..processes.worker_process import RanAway, WorkLimits, in_own_process
from .images import FittedPicture

MOST_AT_ONCE = 20
MOST_UNASKED = 10
"""Pages of a document that is shown whole without `pages`."""
MOST_SENT = 20_000_000
"""Bytes of a document that is sent as such."""
LIMITS = WorkLimits(seconds=30.0, memory=3 << 29, answer=128 << 20)
PROCESS = f"{__package__}.pdf_process"
REFUSED = {
    "password": "it is a PDF that needs a password. Ask for a copy without one",
    "broken": "it is a PDF that is broken or incomplete",
}


class BadPages(ValueError):
    """The pages asked for are not valid. The message says what to write instead."""


class BadPdf(Exception):
    """It begins like a PDF, but cannot be shown. The message says why."""


class TooManyPages(Exception):
    def __init__(self, total: int) -> None:
        self.total = total
        super().__init__(f"it has {total} pages")


@plain_value
class PageRange:
    first: int
    last: int

    def __str__(self) -> str:
        return f"{self.first}" if self.first == self.last else f"{self.first}-{self.last}"


@plain_value
class PdfPage:
    """One page: its text, or a picture of it where it has none."""

    number: int
    text: str
    picture: FittedPicture | None


@plain_value
class Pdf:
    data: bytes | None
    """A document of the pages asked for; the file itself where those are all. `None` if it is too large to be sent."""
    total: int
    pages: PageRange
    sheets: tuple[PdfPage, ...]


def parse_pages(text: str) -> PageRange:
    """Raises `BadPages`.

    >>> parse_pages("10-20"), parse_pages("3")
    (PageRange(first=10, last=20), PageRange(first=3, last=3))
    """
    found = re.fullmatch(r"\s*([0-9]{1,9})\s*(?:-\s*([0-9]{1,9})\s*)?", text)
    if not found:
        raise BadPages('`pages` must be a page or a range of pages, such as "3" or "1-5"')
    first, last = int(found[1]), int(found[2] or found[1])
    if not first:
        raise BadPages("`pages` starts from 1")
    if last < first:
        raise BadPages(f"`pages` ends before it begins: {text.strip()}. Write the smaller number first")
    if last - first >= MOST_AT_ONCE:
        raise BadPages(f"`pages` asks for {last - first + 1:,} pages, and {MOST_AT_ONCE} is the most at once")
    return PageRange(first, last)


def read_pdf(
    data: bytes,
    pages: PageRange | None,
    *,
    as_document: bool = False,
    limits: WorkLimits = LIMITS,
    interrupted: Callable[[], bool] = bool,
) -> Pdf:
    """The pages, all of them where none are named.

    Raises `BadPdf`, `BadPages` or `TooManyPages`, and `InterruptedError` once somebody wants it to end.
    What goes `as_document`, and is not too large for that, is not looked at any further and has no sheets.
    """
    asked = {
        "first": pages.first if pages else 1,
        "last": pages.last if pages else None,
        "unasked": MOST_AT_ONCE if pages else MOST_UNASKED,
        "most_sent": MOST_SENT,
        "as_document": as_document,
    }
    try:
        told = json.loads(in_own_process(PROCESS, json.dumps(asked), data, limits, interrupted))
    except RanAway as reason:
        raise BadPdf(
            f"it is a PDF that cannot be taken apart: {reason}. Name fewer `pages`, or convert it with a command"
        ) from None
    if "refused" in told:
        raise BadPdf(REFUSED[told["refused"]])
    shown = _range_to_show(pages, told["total"])
    cut = b64decode(told["cut"]) if told["cut"] else data
    return Pdf(cut if told["sent"] else None, told["total"], shown, tuple(map(_sheet, told["sheets"])))


def _range_to_show(pages: PageRange | None, total: int) -> PageRange:
    if not total:
        raise BadPdf("it is a PDF without pages")
    if pages is None and total > MOST_UNASKED:
        raise TooManyPages(total)
    if pages and pages.first > total:
        raise BadPages(f"page {pages.first} does not exist; the last one is {total}")
    return PageRange(pages.first, min(pages.last, total)) if pages else PageRange(1, total)


def _sheet(told: dict[str, Any]) -> PdfPage:
    picture = told["picture"]
    if picture is not None:
        data = b64decode(picture.pop("data"))
        picture = FittedPicture(data=data, original_size=len(data), **picture)
    return PdfPage(told["number"], told["text"], picture)
