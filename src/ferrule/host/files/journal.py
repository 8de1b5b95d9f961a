"""The folders a process writes in, so that the next one can tidy up after a kill.

A journal is locked as long as somebody may write by it. One that nobody holds
belongs to a process that is gone, however it ended.
"""

from __future__ import annotations

import errno
import fcntl
import logging
import os
import threading
import weakref
from pathlib import Path

from ..storage.session_folder import make_private
from .atomic_writes import new_owner, stands_beside, sweep

log = logging.getLogger(__name__)

SEPARATOR = b"\0"


TRIES = 10
"""How often a journal is made that somebody else takes for one of a process that is gone."""


class Journal:
    """One session's. Its file is made when something is first written, and may be written by several threads."""

    def __init__(self, root: Path) -> None:
        self.owner = new_owner()
        """Marks the temporary files of this session."""
        self._path = root / self.owner
        self._lock = threading.Lock()
        self._open: weakref.finalize[[int], Journal] | None = None
        """Closes the file, at the latest when nobody has the journal any more."""
        self._descriptor = -1
        self._noted: set[str] = set()
        self._missed: set[str] = set()

    def note(self, folder: str) -> None:
        """Note that something is about to be written in this folder. Where the note fails, it is written anyway."""
        if folder in self._noted:
            return
        with self._lock:
            try:
                if self._open is None:
                    make_private(self._path.parent)
                    self._descriptor = _begin(self._path)
                    self._open = weakref.finalize(self, os.close, self._descriptor)
                os.write(self._descriptor, os.fsencode(folder) + SEPARATOR)
                self._noted.add(folder)
            except OSError as error:
                if folder not in self._missed:
                    log.warning("%s cannot be noted in %s: %s", folder, self._path, error.strerror)
                self._missed.add(folder)

    def close(self) -> None:
        """Leave nothing open, and no file unless something is still to be tidied up. A later note begins it anew."""
        with self._lock:
            if self._open is None:
                return
            try:
                if not any(_left_in(folder, self.owner) for folder in self._noted):
                    self._path.unlink(missing_ok=True)
            except OSError as error:
                log.warning("%s cannot be removed: %s", self._path, error.strerror)
            self._noted.clear()
            self._open()
            self._open = None


def recover(root: Path) -> tuple[str, ...]:
    """Remove what processes that are gone were writing; returns the paths of old content that may be wanted again.

    Those are the copies of files with several hard links, which are written in place.
    """
    saved: list[str] = []
    try:
        journals = list(root.iterdir())
    except OSError:
        return ()
    for journal in journals:
        try:
            descriptor = _open_locked(journal, os.O_RDONLY)
        except OSError:
            continue  # of a process that lives, or not ours to touch
        try:
            for folder in _read_notes(descriptor):
                sweep(folder, owner=journal.name, older_than=0)
                saved += _find_saved(folder, journal.name)
            journal.unlink(missing_ok=True)
        finally:
            os.close(descriptor)
    return tuple(saved)


def _begin(path: Path) -> int:
    """A new file, locked. Between its making and its locking another process may find it unlocked, and remove it."""
    for _ in range(TRIES):
        try:
            descriptor = _open_locked(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND, wait=True)
        except FileNotFoundError:
            continue
        try:
            if os.path.samestat(os.fstat(descriptor), os.stat(path)):
                return descriptor
        except FileNotFoundError:
            pass
        os.close(descriptor)
    raise OSError(errno.EAGAIN, "other processes keep removing it")


def _open_locked(path: Path, flags: int, *, wait: bool = False) -> int:
    """Open and locked; the lock is gone with the last process that has it open."""
    descriptor = os.open(path, flags | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def _read_notes(descriptor: int) -> list[str]:
    with open(descriptor, "rb", closefd=False) as file:
        return [os.fsdecode(name) for name in file.read().split(SEPARATOR) if name]


def _find_saved(folder: str, owner: str) -> list[str]:
    return [path for path in _left_in(folder, owner) if path.endswith(".saved")]


def _left_in(folder: str, owner: str) -> list[str]:
    """The temporary files and copies there that this journal's session made."""
    try:
        names = os.listdir(folder)
    except OSError:
        return []
    return [
        os.path.join(folder, name)
        for name in names
        if stands_beside(name, "tmp", owner) or stands_beside(name, "saved", owner)
    ]
