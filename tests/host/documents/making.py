"""Small real files: pictures, and PDF documents written by hand."""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO
from typing import Any

from PIL import Image


def encoded(image: Image.Image, form: str, **options: Any) -> bytes:
    buffer = BytesIO()
    image.save(buffer, form, **options)
    return buffer.getvalue()


def png(width: int, height: int, colour: str = "teal") -> bytes:
    return encoded(Image.new("RGB", (width, height), colour), "PNG")


def pdf(texts: Sequence[str]) -> bytes:
    """One page for each text; a page whose text is empty has a grey square and no text, as a scan does."""
    kids = " ".join(f"{3 + 2 * index} 0 R" for index in range(len(texts)))
    objects = ["<< /Type /Catalog /Pages 2 0 R >>", f"<< /Type /Pages /Kids [{kids}] /Count {len(texts)} >>"]
    font = "<< /Font << /F1 << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >> >>"
    for index, text in enumerate(texts):
        lines = " ".join(f"({line}) Tj T*" for line in text.split("\n"))
        drawn = f"BT /F1 12 Tf 14 TL 72 700 Td {lines} ET" if text else "0.5 g 100 100 200 200 re f"
        objects += [
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents {4 + 2 * index} 0 R /Resources {font} >>",
            f"<< /Length {len(drawn)} >>\nstream\n{drawn}\nendstream",
        ]
    return _assembled(objects)


def nested_pdf(depth: int, times: int) -> bytes:
    """One page of forms in forms: each draws the next `times` times, `times ** depth` in all."""
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R "
        "/Resources << /XObject << /X 5 0 R >> >> >>",
        "<< /Length 5 >>\nstream\n/X Do\nendstream",
    ]
    form = "<< /Type /XObject /Subtype /Form /BBox [0 0 612 792]"
    for level in range(depth):
        drawn = "/X Do " * times
        inner = f"/Resources << /XObject << /X {6 + level} 0 R >> >>"
        objects.append(f"{form} {inner} /Length {len(drawn)} >>\nstream\n{drawn}\nendstream")
    drawn = "0 0 1 1 re f"
    objects.append(f"{form} /Length {len(drawn)} >>\nstream\n{drawn}\nendstream")
    return _assembled(objects)


def _assembled(objects: Sequence[str]) -> bytes:
    data, places = b"%PDF-1.4\n", list[int]()
    for number, content in enumerate(objects, 1):
        places.append(len(data))
        data += f"{number} 0 obj\n{content}\nendobj\n".encode()
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    end = f"trailer << /Size {len(objects) + 1} /Root 1 0 R >>\nstartxref\n{len(data)}\n%%EOF\n"
    return data + f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n".encode() + table + end.encode()
