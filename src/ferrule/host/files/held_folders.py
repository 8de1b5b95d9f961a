"""Folders held open, so that what happens in them happens in the folder that was meant.

A path is walked one part at a time and no link is followed: who walks a real
path cannot be led elsewhere by a link that was put there afterwards.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Generator
from contextlib import contextmanager, suppress

SEARCH = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC | getattr(os, "O_PATH", os.O_RDONLY)
"""Passing through a folder does not require permission to list it."""


class ChangedMeanwhile(Exception):
    """What is there is not what was decided about. The message says what happened and what to do."""


@contextmanager
def hold_folder(real_path: str, *, made: bool = False) -> Generator[int]:
    """A descriptor of this folder, `made` with those above it where it is missing.

    Raises `ChangedMeanwhile` where a part of the path is a link now, otherwise `OSError`.
    """
    descriptor = os.open("/", SEARCH)
    try:
        for part in filter(None, real_path.split("/")):
            inner = _enter(part, descriptor, real_path, made=made)
            os.close(descriptor)
            descriptor = inner
        yield descriptor
    finally:
        os.close(descriptor)


def is_still_at(real_path: str, folder: int) -> bool:
    """Whether the folder held open is the one that this path leads to, with no link on the way.

    Raises `OSError` where that cannot be determined, as without a free descriptor.
    """
    try:
        with hold_folder(real_path) as again:
            return os.path.samestat(os.fstat(again), os.fstat(folder))
    except (ChangedMeanwhile, FileNotFoundError, NotADirectoryError, PermissionError):
        return False


def sync_folder(folder: int) -> None:
    """Make what was renamed here outlast a power cut, where this user may open the folder for that."""
    try:
        descriptor = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
    except OSError:
        return
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _enter(part: str, folder: int, real_path: str, *, made: bool) -> int:
    try:
        return os.open(part, SEARCH, dir_fd=folder)
    except FileNotFoundError:
        if not made:
            raise
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR) and _is_link(part, folder):
            raise ChangedMeanwhile(
                f"on the way to {real_path}, {part} has become a link since this was decided. "
                "Look where it leads, then ask again."
            ) from None
        raise
    with suppress(FileExistsError):  # somebody else may make it at the same time
        os.mkdir(part, dir_fd=folder)
    return _enter(part, folder, real_path, made=False)


def _is_link(name: str, folder: int) -> bool:
    return stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
