"""The session's folder: private, made when first needed, forgotten after a while."""

from __future__ import annotations

import logging
import math
import os
import re
import shutil
import time
from hashlib import sha256
from pathlib import Path

log = logging.getLogger(__name__)

DEFAULT_CLEANUP_DAYS = 30


class SessionFolder:
    """Saves oversized results under `<root>/<session id>/results`; satisfies `core.ports.SpillStore`.

    Folders are 0700 and files 0600. Making the folder also removes those of
    sessions that nobody has touched for `cleanup_days`.
    """

    def __init__(self, root: Path, session_id: str, *, cleanup_days: int = DEFAULT_CLEANUP_DAYS) -> None:
        self._root = root
        self._cleanup_days = cleanup_days
        self.path = root / session_id

    def save(self, call_id: str, text: str, /) -> str:
        folder = self._make()
        name = _file_name(call_id)
        for attempt in range(1, 10_000):
            path = folder / (f"{name}.txt" if attempt == 1 else f"{name}-{attempt}.txt")
            try:
                descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            except FileExistsError:
                continue  # call ids may repeat; what was saved before stays
            return str(_write(path, descriptor, text))
        raise FileExistsError(f"{folder} already holds thousands of results named {name}")

    def _make(self) -> Path:
        folder = self.path / "results"
        if not folder.is_dir():
            make_private(folder)
            prune(self._root, self._cleanup_days, keep=self.path)
        return folder


def make_private(folder: Path) -> None:
    """The folder, and every one above it that is missing, for this user alone."""
    for part in (*reversed(folder.parents), folder):
        if not part.exists():
            part.mkdir(mode=0o700, exist_ok=True)


def prune(root: Path, days: int, *, keep: Path | None = None) -> None:
    """Remove the folders of sessions that were last written more than `days` days ago."""
    oldest = time.time() - days * 86_400
    for folder in root.iterdir():
        try:
            if folder != keep and not folder.is_symlink() and _last_write_time(folder) < oldest:
                shutil.rmtree(folder)
        except OSError as error:
            log.warning("could not tidy up %s: %s", folder, error)


def _last_write_time(folder: Path) -> float:
    results = folder / "results"
    return max((path.stat().st_mtime for path in (folder, results) if path.exists()), default=math.inf)


def _write(path: Path, descriptor: int, text: str) -> Path:
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(_encode(text))
    except OSError:
        path.unlink(missing_ok=True)
        raise
    return path


def _encode(text: str) -> bytes:
    """UTF-8; a lone surrogate, which UTF-8 has no bytes for, is written as an escape."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "backslashreplace")


def _file_name(call_id: str) -> str:
    """The call's id where it is a plain name, otherwise something like it that is.

    >>> _file_name("toolu_01A"), _file_name("../x")[:2]
    ('toolu_01A', 'x-')
    """
    if re.fullmatch(r"[A-Za-z0-9_-][A-Za-z0-9_.-]{0,99}", call_id):
        return call_id
    readable = re.sub(r"[^A-Za-z0-9_-]+", "-", call_id).strip("-")[:60] or "call"
    return f"{readable}-{sha256(call_id.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}"
