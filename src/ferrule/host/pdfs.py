"""PDF documents: their pages as text, and as pictures where they have none.

pdfium does it all, so no program has to be installed. It is not safe to use
from two threads, so whoever uses it holds the lock.
"""

# pypdfium2 has no type stubs; what is taken from it is given a type where it is taken.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false

from __future__ import annotations

import re
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from threading import Lock
from typing import TYPE_CHECKING, Final, cast

from .images import LONG_SIDE, Picture, fitted_bitmap

if TYPE_CHECKING:
    from PIL.Image import Image
    from pypdfium2 import PdfDocument, PdfPage

MOST_AT_ONCE = 20
MOST_UNASKED = 10
"""Pages of a document that is shown whole without `pages`."""
MAGIC = b"%PDF-"
MAGIC_WITHIN = 1024
"""Bytes: some programs write something before the document begins."""
MOST_SENT = 20_000_000
"""Bytes of a document that is sent as such."""
WIDEST_SCALE = 4.0
NEEDS_PASSWORD = 4
"""pdfium's number for a document that its empty password does not open."""

_PDFIUM: Final = Lock()
"""One for the process, as pdfium itself is."""


class BadPages(ValueError):
    """What was asked for are no pages. The message says what to write instead."""


class BadPdf(Exception):
    """It begins like a PDF and cannot be shown. The message says why."""


class TooManyPages(Exception):
    def __init__(self, total: int) -> None:
        self.total = total
        super().__init__(f"it has {total} pages")


@dataclass(frozen=True, slots=True)
class PageRange:
    first: int
    last: int

    def __str__(self) -> str:
        return f"{self.first}" if self.first == self.last else f"{self.first}-{self.last}"


@dataclass(frozen=True, slots=True)
class Sheet:
    """One page: its text, or a picture of it where it has none."""

    number: int
    text: str
    picture: Picture | None


@dataclass(frozen=True, slots=True)
class Pdf:
    data: bytes | None
    """A document of the pages asked for; the file itself where those are all. `None` if it is too large to be sent."""
    total: int
    pages: PageRange
    sheets: tuple[Sheet, ...]


def parsed_pages(text: str) -> PageRange:
    """Raises `BadPages`.

    >>> parsed_pages("10-20"), parsed_pages("3")
    (PageRange(first=10, last=20), PageRange(first=3, last=3))
    """
    found = re.fullmatch(r"\s*([0-9]{1,9})\s*(?:-\s*([0-9]{1,9})\s*)?", text)
    if not found:
        raise BadPages('`pages` must be a page or a range of pages, such as "3" or "1-5"')
    first, last = int(found[1]), int(found[2] or found[1])
    if not first:
        raise BadPages("`pages` counts from 1")
    if last < first:
        raise BadPages(f"`pages` ends before it begins: {text.strip()}. Write the smaller number first")
    if last - first >= MOST_AT_ONCE:
        raise BadPages(f"`pages` asks for {last - first + 1:,} pages, and {MOST_AT_ONCE} is the most at once")
    return PageRange(first, last)


def is_pdf(head: bytes, *, named_so: bool) -> bool:
    """By its first bytes; a file that is `named_so` may have something before them."""
    return MAGIC in head[:MAGIC_WITHIN] if named_so else head.startswith(MAGIC)


def read_pdf(data: bytes, pages: PageRange | None, *, as_document: bool = False) -> Pdf:
    """The pages, all of them where none are named. Raises `BadPdf`, `BadPages` or `TooManyPages`.

    What goes `as_document`, and is not too large for that, is not looked at any further and has no sheets.
    """
    with _opened(data) as document:
        shown = _shown(pages, len(document))
        numbers = range(shown.first, shown.last + 1)
        cut = data if len(numbers) == len(document) else _extract(document, shown)
        if len(cut) > MOST_SENT:
            cut = None
        sheets = () if as_document and cut else tuple(_sheet(document, number) for number in numbers)
        return Pdf(cut, len(document), shown, sheets)


def _shown(pages: PageRange | None, total: int) -> PageRange:
    if not total:
        raise BadPdf("it is a PDF without pages")
    if pages is None and total > MOST_UNASKED:
        raise TooManyPages(total)
    if pages and pages.first > total:
        raise BadPages(f"there is no page {pages.first}; the last one is {total}")
    return PageRange(pages.first, min(pages.last, total)) if pages else PageRange(1, total)


@contextmanager
def _opened(data: bytes) -> Generator[PdfDocument]:
    import pypdfium2  # noqa: PLC0415 - takes longer to load than most files take to read

    with _PDFIUM:
        try:
            document = pypdfium2.PdfDocument(data)
        except pypdfium2.PdfiumError as error:
            if getattr(error, "err_code", None) == NEEDS_PASSWORD:
                raise BadPdf("it is a PDF that needs a password") from None
            raise BadPdf("it is a PDF that is broken or incomplete") from None
        try:
            yield document
        except pypdfium2.PdfiumError as error:
            raise BadPdf(f"it is a PDF that is broken or incomplete ({error})") from None
        finally:
            document.close()


def _sheet(document: PdfDocument, number: int) -> Sheet:
    page = document[number - 1]
    try:
        text = _text(page)
        return Sheet(number, text, None if text else fitted_bitmap(_drawn(page)))
    finally:
        page.close()


def _text(page: PdfPage) -> str:
    words = page.get_textpage()
    try:
        text = words.get_text_range()
    finally:
        words.close()
    return "\n".join(line.rstrip() for line in text.splitlines()).strip("\n")


def _drawn(page: PdfPage) -> Image:
    """As large as a model looks at, whatever size the page says it has."""
    longest = max(*page.get_size(), 1.0)
    scale = min(LONG_SIDE / longest, WIDEST_SCALE)
    return cast("Image", page.render(scale=scale).to_pil())  # pyright: ignore[reportArgumentType]


def _extract(document: PdfDocument, pages: PageRange) -> bytes:
    import pypdfium2  # noqa: PLC0415 - as above

    cut = pypdfium2.PdfDocument.new()
    try:
        cut.import_pages(document, list(range(pages.first - 1, pages.last)))
        buffer = BytesIO()
        cut.save(buffer)
        return buffer.getvalue()
    finally:
        cut.close()
