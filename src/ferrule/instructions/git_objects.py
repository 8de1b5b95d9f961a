"""Commits of a git repository, read from its files: loose, or packed with or without deltas. Nothing is run."""

from __future__ import annotations

import mmap
import os
import struct
import zlib
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

MOST_BYTES: Final = 1 << 20
"""Of one object; a commit is some hundred bytes."""
MOST_DELTAS: Final = 50
MOST_PACKS: Final = 64
_MAGIC: Final = b"\xfftOc"
_COMMIT: Final = 1
_OFFSET_DELTA, _REF_DELTA = 6, 7
_KINDS: Final = {1: b"commit", 2: b"tree", 3: b"blob", 4: b"tag"}


class UnreadableObject(ValueError):
    """Not there, or not what git writes."""


class Objects:
    """The object folder of a repository and those it borrows from."""

    def __init__(self, folder: str) -> None:
        self._folders = [folder, *_alternates_of(folder)]

    def commit(self, name: str) -> bytes:
        """The text of a commit. Raises `UnreadableObject`."""
        kind, data = self._object(name, MOST_DELTAS)
        if kind != b"commit":
            raise UnreadableObject(f"{name} is not a commit")
        return data

    def _object(self, name: str, deltas: int) -> tuple[bytes, bytes]:
        for folder in self._folders:
            loose = os.path.join(folder, name[:2], name[2:])
            if os.path.isfile(loose):
                return _loose(loose)
            for pack in _packs(folder):
                offset = _offset_in(f"{pack}.idx", name)
                if offset is not None:
                    return self._read_packed(f"{pack}.pack", offset, deltas)
        raise UnreadableObject(f"{name} was not found")

    def _read_packed(self, pack: str, offset: int, deltas: int) -> tuple[bytes, bytes]:
        if deltas == 0:
            raise UnreadableObject("too many deltas on top of each other")
        with _map_file(pack) as data:
            kind, position = _header(data, offset)
            if kind in _KINDS:
                return _KINDS[kind], _inflate(data, position)
            if kind == _OFFSET_DELTA:
                back, position = _distance(data, position)
                delta = _inflate(data, position)
                base = self._read_packed(pack, offset - back, deltas - 1)
            elif kind == _REF_DELTA:
                delta = _inflate(data, position + 20)
                base = self._object(bytes(data[position : position + 20]).hex(), deltas - 1)
            else:
                raise UnreadableObject("an object of an unknown kind")
        return base[0], _apply_delta(base[1], delta)


def _alternates_of(folder: str) -> list[str]:
    path = os.path.join(folder, "info", "alternates")
    if not os.path.isfile(path):
        return []
    with open(path, "rb") as file:
        lines = os.fsdecode(file.read(1 << 16)).split("\n")
    return [os.path.join(folder, line) for line in lines if line and not line.startswith("#")]


def _packs(folder: str) -> list[str]:
    try:
        names = sorted(os.listdir(os.path.join(folder, "pack")))
    except OSError:
        return []
    found = [name.removesuffix(".idx") for name in names if name.endswith(".idx")]
    return [os.path.join(folder, "pack", name) for name in found[:MOST_PACKS]]


def _loose(path: str) -> tuple[bytes, bytes]:
    with open(path, "rb") as file:
        data = _inflate(file.read(MOST_BYTES), 0)
    head, found, body = data.partition(b"\0")
    if not found:
        raise UnreadableObject("a loose object without a head")
    return head.split(b" ")[0], body


@contextmanager
def _map_file(path: str) -> Generator[mmap.mmap]:
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        yield data


def _offset_in(index: str, name: str) -> int | None:
    """Where a pack holds the object, by the index of the pack (version 2, names of 20 bytes)."""
    wanted = bytes.fromhex(name)
    with _map_file(index) as data:
        if data[:4] != _MAGIC or struct.unpack_from(">I", data, 4) != (2,):
            return None
        fan = struct.unpack_from(">256I", data, 8)
        low, high, total = fan[wanted[0] - 1] if wanted[0] else 0, fan[wanted[0]], fan[255]
        names = 8 + 1024
        while low < high:
            middle = (low + high) // 2
            found = data[names + middle * 20 : names + middle * 20 + 20]
            if found == wanted:
                return _offset_at(data, names + total * 24, total, middle)
            low, high = (middle + 1, high) if found < wanted else (low, middle)
    return None


def _offset_at(data: mmap.mmap, offsets: int, total: int, place: int) -> int:
    (offset,) = struct.unpack_from(">I", data, offsets + place * 4)
    if offset & 0x80000000:
        (offset,) = struct.unpack_from(">Q", data, offsets + total * 4 + (offset & 0x7FFFFFFF) * 8)
    return offset


def _header(data: mmap.mmap, position: int) -> tuple[int, int]:
    byte = data[position]
    kind = (byte >> 4) & 7
    while byte & 0x80:
        position += 1
        byte = data[position]
    return kind, position + 1


def _distance(data: mmap.mmap, position: int) -> tuple[int, int]:
    byte = data[position]
    value = byte & 0x7F
    while byte & 0x80:
        position += 1
        byte = data[position]
        value = ((value + 1) << 7) | (byte & 0x7F)
    return value, position + 1


def _inflate(data: bytes | mmap.mmap, position: int) -> bytes:
    try:
        return zlib.decompressobj().decompress(data[position : position + MOST_BYTES], MOST_BYTES)
    except zlib.error as error:
        raise UnreadableObject(str(error)) from None


def _apply_delta(base: bytes, delta: bytes) -> bytes:
    position = _after_size(delta, _after_size(delta, 0))
    made = bytearray()
    while position < len(delta) and len(made) <= MOST_BYTES:
        order = delta[position]
        position += 1
        if order & 0x80:
            start, position = _number(delta, position, order, 4)
            length, position = _number(delta, position, order >> 4, 3)
            made += base[start : start + (length or 0x10000)]
        else:
            made += delta[position : position + order]
            position += order
    return bytes(made)


def _after_size(delta: bytes, position: int) -> int:
    while delta[position] & 0x80:
        position += 1
    return position + 1


def _number(delta: bytes, position: int, which: int, most: int) -> tuple[int, int]:
    value = 0
    for place in range(most):
        if which & (1 << place):
            value |= delta[position] << (8 * place)
            position += 1
    return value, position
