"""Texts that are too long to keep in memory and may be wanted again."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TypeAlias

from ...core.values import plain_value
from ..storage.session_folder import make_private
from .open_files import digest_of


@plain_value
class OnDisk:
    path: Path | None
    """`None` where the text could not be saved."""


Shelved: TypeAlias = str | OnDisk


@plain_value
class TextStore:
    """A folder of texts by their digests, or none at all. Losing one costs a diff, so a full disk is not an error."""

    folder: Path | None = None

    def put(self, text: str) -> OnDisk:
        if self.folder is None:
            return OnDisk(None)
        data = text.encode("utf-8", "surrogatepass")
        path = self.folder / digest_of(data)
        try:
            make_private(self.folder)
            with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600), "wb") as file:
                file.write(data)
        except OSError:
            return OnDisk(None)
        return OnDisk(path)

    def get(self, shelved: Shelved) -> str | None:
        if isinstance(shelved, str):
            return shelved
        if shelved.path is None:
            return None
        try:
            data = shelved.path.read_bytes()
        except OSError:
            return None
        return data.decode("utf-8", "surrogatepass") if digest_of(data) == shelved.path.name else None
