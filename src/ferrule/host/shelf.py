"""Texts that are too long to keep in memory and may be wanted again."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from .files import digest_of
from .spill import make_private


@dataclass(frozen=True, slots=True)
class OnDisk:
    path: Path | None
    """`None` where the text could not be saved."""


Shelved: TypeAlias = str | OnDisk


@dataclass(frozen=True, slots=True)
class Shelf:
    """A folder of texts by their digests, or none at all. Losing one costs a diff, so a full disk is no error."""

    folder: Path | None = None

    def put(self, text: str) -> OnDisk:
        if self.folder is None:
            return OnDisk(None)
        data = text.encode("utf-8", "surrogatepass")
        path = self.folder / digest_of(data)
        try:
            make_private(self.folder)
            if not path.exists():
                path.write_bytes(data)
        except OSError:
            return OnDisk(None)
        return OnDisk(path)

    def get(self, shelved: Shelved) -> str | None:
        if isinstance(shelved, str):
            return shelved
        try:
            return shelved.path.read_bytes().decode("utf-8", "surrogatepass") if shelved.path else None
        except (OSError, UnicodeDecodeError):
            return None
