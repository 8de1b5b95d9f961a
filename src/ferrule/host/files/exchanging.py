"""Exchange two names of one folder in one step, so that what had a name before can still be inspected."""

from __future__ import annotations

import ctypes
import errno
import os

RENAME_EXCHANGE = 2
UNSUPPORTED = frozenset({errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.EPERM, errno.EXDEV})
"""Errors of kernels, file systems and filters that do not support the exchange."""


def exchange(one: str, other: str, folder: int) -> bool:
    """Whether the names were exchanged; `False` where this is not supported. Raises `OSError`."""
    rename = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if rename is None:
        return False
    if rename(folder, os.fsencode(one), folder, os.fsencode(other), RENAME_EXCHANGE) == 0:
        return True
    number = ctypes.get_errno()
    if number in UNSUPPORTED:
        return False
    raise OSError(number, os.strerror(number), other)
