"""What runs in the process that takes a PDF document apart; its other end is `host/documents/pdfs.py`.

A few bytes can keep pdfium busy for years, and nothing can stop a thread in it.
"""

# pypdfium2 has no type stubs; what is taken from it is given a type where it is taken.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false

from __future__ import annotations

import json
import sys
from base64 import b64encode
from io import BytesIO
from typing import TYPE_CHECKING, Any, cast

import pypdfium2

from ..processes.worker_process import limit_this_process
from .images import LONG_SIDE, fit_bitmap

if TYPE_CHECKING:
    from PIL.Image import Image

WIDEST_SCALE = 4.0
NEEDS_PASSWORD = 4
"""pdfium's number for a document that its empty password does not open."""


def main() -> None:
    asked = json.loads(limit_this_process())
    sys.stdout.write(json.dumps(_answer(sys.stdin.buffer.read(), **asked)))


def _answer(data: bytes, first: int, last: int | None, unasked: int, most_sent: int, as_document: bool) -> Any:
    """`last` is `None` where no pages were named; `unasked` says how many are then taken at most."""
    try:
        document = pypdfium2.PdfDocument(data)
    except pypdfium2.PdfiumError as error:
        return {"refused": "password" if getattr(error, "err_code", None) == NEEDS_PASSWORD else "broken"}
    total = len(document)
    last = min(last or total, total)
    if first > last or (last - first >= unasked):
        return {"total": total}
    try:
        cut = data if last - first + 1 == total else _extract(document, first, last)
        sendable = len(cut) <= most_sent
        sheets = [] if as_document and sendable else [_sheet(document, number) for number in range(first, last + 1)]
    except pypdfium2.PdfiumError:
        return {"refused": "broken"}
    return {
        "total": total,
        "sent": sendable,
        "cut": None if cut is data or not sendable else b64encode(cut).decode(),
        "sheets": sheets,
    }


def _sheet(document: pypdfium2.PdfDocument, number: int) -> dict[str, Any]:
    page = document[number - 1]
    text = _text(page)
    if text:
        return {"number": number, "text": text, "picture": None}
    picture = fit_bitmap(_draw(page))
    told = {
        "media_type": picture.media_type,
        "data": picture.base64,
        "original_width": picture.original_width,
        "original_height": picture.original_height,
        "width": picture.width,
        "height": picture.height,
    }
    return {"number": number, "text": "", "picture": told}


def _text(page: pypdfium2.PdfPage) -> str:
    text = page.get_textpage().get_text_range()
    return "\n".join(line.rstrip() for line in text.splitlines()).strip("\n")


def _draw(page: pypdfium2.PdfPage) -> Image:
    """As large as a model looks at, whatever size the page says it has."""
    longest = max(*page.get_size(), 1.0)
    scale = min(LONG_SIDE / longest, WIDEST_SCALE)
    return cast("Image", page.render(scale=scale).to_pil())  # pyright: ignore[reportArgumentType]


def _extract(document: pypdfium2.PdfDocument, first: int, last: int) -> bytes:
    cut = pypdfium2.PdfDocument.new()
    cut.import_pages(document, list(range(first - 1, last)))
    buffer = BytesIO()
    cut.save(buffer)
    return buffer.getvalue()
