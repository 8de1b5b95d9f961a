"""Two names of one folder change places in one step, so that what stood at a name is still there to be looked at."""

from __future__ import annotations

import ctypes
import errno
import os

RENAME_EXCHANGE = 2
UNSUPPORTED = frozenset({errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.EPERM, errno.EXDEV})
"""What kernels, file systems and filters answer that know nothing of it."""


def exchange(one: str, other: str, folder: int) -> bool:
    """Whether they have changed places; `False` where this cannot be done here. Raises `OSError`."""
    rename = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if rename is None:
        return False
    if rename(folder, os.fsencode(one), folder, os.fsencode(other), RENAME_EXCHANGE) == 0:
        return True
    number = ctypes.get_errno()
    if number in UNSUPPORTED:
        return False
    raise OSError(number, os.strerror(number), other)
