"""What a file is, by its name and its first bytes."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from enum import StrEnum

PICTURES = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
)
GIF = re.compile(rb"GIF8[79]a[\s\S]{0,6}[^\t\n\f\r -~]")
"""A text could begin with its name; among the seven bytes of sizes that follow is one that text cannot contain."""
PDF = re.compile(rb"%PDF-[0-9]")
PDF_WITHIN = 1024
"""Bytes: some programs write something before the document begins."""
BINARY: Mapping[str, str] = {
    "an archive": ".zip .tar .gz .tgz .bz2 .xz .zst .7z .rar .jar .war .whl .deb .rpm .dmg .iso",
    "a compiled program": ".exe .dll .dylib .o .class .pyc .pyd .wasm",
    "a picture in a format that models do not take": ".bmp .tif .tiff .ico .heic .heif .avif .psd",
    "sound or video": ".mp3 .wav .ogg .flac .m4a .aac .mp4 .mov .avi .mkv .webm .wmv",
    "an office document": ".doc .docx .xls .xlsx .ppt .pptx .odt .ods .odp",
    "a font": ".ttf .otf .woff .woff2 .eot",
    "a database": ".sqlite .sqlite3 .mdb",
}
"""Names that tell. Not `.obj`, `.so` or `.a`, which may be a model of a thing, a script for the linker, or anything."""
SHOWN = (".png", ".jpg", ".jpeg", ".gif", ".webp", ".pdf")
"""Names of what can be shown as what it is, and is text if it does not begin like that."""


class FileKind(StrEnum):
    IMAGE = "image"
    PDF = "pdf"
    NOTEBOOK = "notebook"
    TEXT = "text"


def kind_of_file(path: str, head: bytes) -> FileKind:
    """By content where possible. What is neither picture nor PDF may still turn out not to be text."""
    ending = ending_of(path)
    if image_type(head):
        return FileKind.IMAGE
    if is_pdf(head, named_so=ending == ".pdf"):
        return FileKind.PDF
    return FileKind.NOTEBOOK if ending == ".ipynb" else FileKind.TEXT


def binary_by_name(path: str) -> str | None:
    """What a file of this name holds, if that cannot be read as text.

    >>> binary_by_name("a.tar.GZ"), binary_by_name("a.py")
    ('an archive (.gz)', None)
    """
    ending = ending_of(path)
    return next((f"{what} ({ending})" for what, endings in BINARY.items() if ending in endings.split()), None)


def ending_of(path: str) -> str:
    return os.path.splitext(path)[1].lower()


def image_type(head: bytes) -> str | None:
    """The media type, by the first bytes.

    >>> image_type(b"GIF89a\\x01\\x00\\x01\\x00"), image_type(b"GIF89a = 5"), image_type(b"<svg>")
    ('image/gif', None, None)
    """
    if head[:4] == b"RIFF" and head[8:15] == b"WEBPVP8":
        return "image/webp"
    if GIF.match(head):
        return "image/gif"
    return next((media_type for magic, media_type in PICTURES if head.startswith(magic)), None)


def is_pdf(head: bytes, *, named_so: bool) -> bool:
    """By its first bytes; a file that is `named_so` may have something before them."""
    return bool(PDF.search(head[:PDF_WITHIN]) if named_so else PDF.match(head))
