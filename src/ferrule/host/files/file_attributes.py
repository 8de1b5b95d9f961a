"""What a file has besides its content, carried over to the one that takes its place."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable


def keep_attributes(old: int, new: int) -> None:
    """Owner, extended attributes and mode, in the order in which one does not undo another."""
    status = os.fstat(old)
    mode = stat.S_IMODE(status.st_mode)
    if not (_try_change(lambda: os.fchown(new, status.st_uid, status.st_gid)) or os.fstat(new).st_uid == status.st_uid):
        _try_change(lambda: os.fchown(new, -1, status.st_gid))
        mode &= ~(stat.S_ISUID | stat.S_ISGID)  # they would lend the rights of somebody else
    _keep_extended(old, new)
    os.fchmod(new, mode)


def _keep_extended(old: int, new: int) -> None:
    if not hasattr(os, "listxattr"):
        return
    try:
        names = os.listxattr(old)
    except OSError:
        return  # a file system that has none
    for name in names:
        if name != "security.capability":  # granted for the old content
            value = os.getxattr(old, name)
            _try_change(lambda name=name, value=value: os.setxattr(new, name, value))


def _try_change(change: Callable[[], None]) -> bool:
    try:
        change()
    except OSError as error:
        if error.errno in (errno.EPERM, errno.EACCES, errno.EOPNOTSUPP, errno.EINVAL):
            return False
        raise
    return True
