"""What a file is, by its first bytes and then by its name."""

from __future__ import annotations

import os
from collections.abc import Mapping
from enum import StrEnum

from .images import image_type
from .pdfs import is_pdf

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
    """By content where that tells. What is neither picture nor PDF may still turn out to be no text."""
    ending = ending_of(path)
    if image_type(head):
        return FileKind.IMAGE
    if is_pdf(head, named_so=ending == ".pdf"):
        return FileKind.PDF
    return FileKind.NOTEBOOK if ending == ".ipynb" else FileKind.TEXT


def binary_by_name(path: str) -> str | None:
    """What a file of this name holds, if that is nothing to read.

    >>> binary_by_name("a.tar.GZ"), binary_by_name("a.py")
    ('an archive (.gz)', None)
    """
    ending = ending_of(path)
    return next((f"{what} ({ending})" for what, endings in BINARY.items() if ending in endings.split()), None)


def ending_of(path: str) -> str:
    return os.path.splitext(path)[1].lower()
