"""Which tracked files look changed, by the stamps in git's index. Nothing is run and no file is opened."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from typing import Final

from ..core.values import plain_value

MOST_ENTRIES: Final = 5_000
"""An index with more takes too long to go through before the first request."""
_HEAD: Final = struct.Struct(">4sII")
_ENTRY: Final = struct.Struct(">10I20sH")
_SUBMODULE: Final = 0xE000


@plain_value
class Changed:
    modified: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()


def find_changed_files(root: str, index: str) -> Changed | None:
    """`None` where that takes too long or is unknown: no index, an unsupported version, or too many entries."""
    try:
        with open(index, "rb") as file:
            data = file.read(MOST_ENTRIES * 400)
        entries = list(_entries(data))
    except (OSError, struct.error, IndexError, ValueError):
        return None
    modified: list[str] = []
    deleted: list[str] = []
    for path, mode, seconds, nanoseconds, size in entries:
        if mode & 0xF000 == _SUBMODULE:
            continue
        try:
            status = os.lstat(os.path.join(root, path))
        except (FileNotFoundError, NotADirectoryError):
            deleted.append(path)
            continue
        except (OSError, ValueError):
            continue
        stamp = (int(status.st_mtime_ns // 1_000_000_000) & 0xFFFFFFFF, status.st_size & 0xFFFFFFFF)
        nanos = status.st_mtime_ns % 1_000_000_000
        if stamp != (seconds, size) or (nanoseconds and nanos != nanoseconds):
            modified.append(path)
    return Changed(tuple(modified), tuple(deleted))


def _entries(data: bytes) -> Iterator[tuple[str, int, int, int, int]]:
    """Path, mode, modification time and size of each entry. Raises what a broken index causes."""
    signature, version, count = _HEAD.unpack_from(data)
    if signature != b"DIRC" or version not in (2, 3, 4) or count > MOST_ENTRIES:
        raise ValueError("not a supported index")
    position, path = _HEAD.size, b""
    for _ in range(count):
        fields = _ENTRY.unpack_from(data, position)
        flags = fields[11]
        name = position + _ENTRY.size
        skipped = False
        if flags & 0x4000:
            (more,) = struct.unpack_from(">H", data, name)
            skipped, name = bool(more & 0x6000), name + 2  # added with an intent only, or outside a sparse checkout
        if version == 4:
            cut, name = _cut(data, name)
            end = data.index(b"\0", name)
            path = path[: len(path) - cut] + data[name:end]
            position = end + 1
        else:
            end = data.index(b"\0", name)
            path = data[name:end]
            position += (end - position + 8) // 8 * 8
        if not (skipped or flags & 0x8000):
            yield os.fsdecode(path), fields[6], fields[2], fields[3], fields[9]


def _cut(data: bytes, position: int) -> tuple[int, int]:
    byte = data[position]
    value = byte & 0x7F
    while byte & 0x80:
        position += 1
        byte = data[position]
        value = ((value + 1) << 7) | (byte & 0x7F)
    return value, position + 1
