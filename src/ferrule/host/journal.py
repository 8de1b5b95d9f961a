"""The folders a process writes in, so that the next one can tidy up after a kill.

A journal is locked as long as somebody may write by it. One that nobody holds
belongs to a process that is gone, however it ended.
"""

from __future__ import annotations

import fcntl
import logging
import os
import weakref
from pathlib import Path

from .spill import make_private
from .writing import new_owner, stands_beside, sweep

log = logging.getLogger(__name__)

SEPARATOR = b"\0"


class Journal:
    """One session's. Its file is made when something is first written."""

    def __init__(self, root: Path) -> None:
        self.owner = new_owner()
        """Marks the temporary files of this session."""
        self._path = root / self.owner
        self._descriptor: int | None = None
        self._noted: set[str] = set()

    def note(self, folder: str) -> None:
        """Something is about to be written in this folder. Without a journal it is written all the same."""
        if folder in self._noted:
            return
        try:
            if self._descriptor is None:
                make_private(self._path.parent)
                self._descriptor = _held(self._path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_APPEND)
                weakref.finalize(self, os.close, self._descriptor)
            os.write(self._descriptor, os.fsencode(folder) + SEPARATOR)
        except OSError as error:
            log.warning("%s cannot be noted in %s: %s", folder, self._path, error.strerror)
        self._noted.add(folder)


def recover(root: Path) -> tuple[str, ...]:
    """Remove what processes that are gone were writing; the paths of old content that may be wanted again.

    Those are the copies of files with several hard links, which are written in place.
    """
    saved: list[str] = []
    try:
        journals = list(root.iterdir())
    except OSError:
        return ()
    for journal in journals:
        try:
            descriptor = _held(journal, os.O_RDONLY)
        except OSError:
            continue  # of a process that lives, or not ours to touch
        try:
            for folder in _noted_in(descriptor):
                sweep(folder, owner=journal.name, older_than=0)
                saved += _saved_in(folder, journal.name)
            journal.unlink(missing_ok=True)
        finally:
            os.close(descriptor)
    return tuple(saved)


def _held(path: Path, flags: int) -> int:
    """Open and locked; the lock is gone with the last process that has it open."""
    descriptor = os.open(path, flags | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def _noted_in(descriptor: int) -> list[str]:
    with open(descriptor, "rb", closefd=False) as file:
        return [os.fsdecode(name) for name in file.read().split(SEPARATOR) if name]


def _saved_in(folder: str, owner: str) -> list[str]:
    try:
        return [os.path.join(folder, name) for name in os.listdir(folder) if stands_beside(name, "saved", owner)]
    except OSError:
        return []
