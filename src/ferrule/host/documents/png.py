"""PNG files that lost a little: parts that a picture can do without, and that nothing but a checksum speaks against."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from typing import Final

SIGNATURE: Final = b"\x89PNG\r\n\x1a\n"
_AROUND: Final = 12
"""Bytes of length, name and checksum around what a chunk holds."""
_OPTIONAL: Final = 0x20
"""The bit that makes the first letter of a chunk's name a small one."""


def without_broken_extras(data: bytes) -> bytes | None:
    """The file without its optional chunks whose checksum is wrong; `None` where that is not what is wrong with it.

    Every browser shows such files, and Pillow and some models' services do not.
    """
    if not data.startswith(SIGNATURE):
        return None
    kept, dropped = [SIGNATURE], False
    for chunk, is_sound in _chunks(data):
        if not is_sound and not chunk[4] & _OPTIONAL:
            return None
        dropped = dropped or not is_sound
        if is_sound:
            kept.append(chunk)
    return b"".join(kept) if dropped else None


def _chunks(data: bytes) -> Iterator[tuple[bytes, bool]]:
    """Each that is whole, and whether its checksum is right."""
    at = len(SIGNATURE)
    while at + _AROUND <= len(data):
        end = at + _AROUND + struct.unpack_from(">I", data, at)[0]
        if end > len(data):
            return
        (checksum,) = struct.unpack_from(">I", data, end - 4)
        yield data[at:end], zlib.crc32(memoryview(data)[at + 4 : end - 4]) == checksum
        at = end
