"""The tokens of a sign-in at a server, in a file that only its owner may read."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any, cast

from ..host.storage.session_folder import make_private


class TokenFile:
    """One for each address. If anybody else may read or write it, its content is ignored."""

    def __init__(self, folder: Path, url: str) -> None:
        self._path = folder / f"{sha256(url.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}.json"

    def get(self, key: str) -> Mapping[str, Any] | None:
        found = self._content().get(key)
        return cast(Mapping[str, Any], found) if isinstance(found, dict) else None

    def put(self, key: str, value: Mapping[str, Any]) -> None:
        """Raises `OSError` where it cannot be kept."""
        data = json.dumps({**self._content(), key: dict(value)}).encode()
        make_private(self._path.parent)
        draft = self._path.with_name(f"{self._path.name}.{os.urandom(4).hex()}")
        try:
            descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
            os.replace(draft, self._path)
        finally:
            with suppress(FileNotFoundError):
                draft.unlink()

    def _content(self) -> dict[str, Any]:
        try:
            status = self._path.stat()
            if status.st_uid != os.geteuid() or status.st_mode & 0o077:
                return {}
            found = json.loads(self._path.read_bytes())
        except (OSError, ValueError):
            return {}
        return cast(dict[str, Any], found) if isinstance(found, dict) else {}
