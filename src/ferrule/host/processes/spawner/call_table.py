"""The calls that are handed over, each with its arguments as its manual page has them."""

from __future__ import annotations

import errno
import os
import struct

from .call_execution import REMOVE_FOLDER, SYMLINK_FOLLOW, CallExecution
from .handed_call import HandedCall
from .metadata_execution import EMPTY_PATH, SYMLINK_NOFOLLOW, TIMES, Target
from .syscalls import AT_FDCWD

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from .call_execution import Result

CREATING = os.O_CREAT | os.O_WRONLY | os.O_TRUNC
NANO, MICRO = 1, 1_000


def _open(execution: CallExecution, call: HandedCall) -> Result:
    return execution.open(call, AT_FDCWD, call.text(0), call.number(1), call.unsigned(2))


def _openat(execution: CallExecution, call: HandedCall) -> Result:
    return execution.open(call, call.number(0), call.text(1), call.number(2), call.unsigned(3))


def _creat(execution: CallExecution, call: HandedCall) -> Result:
    return execution.open(call, AT_FDCWD, call.text(0), CREATING, call.unsigned(1))


def _rename(execution: CallExecution, call: HandedCall) -> Result:
    old, new = call.text(0), call.text(1)
    return execution.rename(call, call.place(AT_FDCWD, old), call.place(AT_FDCWD, new), 0)


def _renameat(execution: CallExecution, call: HandedCall) -> Result:
    old, new = call.text(1), call.text(3)
    return execution.rename(call, call.place(call.number(0), old), call.place(call.number(2), new), 0)


def _renameat2(execution: CallExecution, call: HandedCall) -> Result:
    old, new = call.text(1), call.text(3)
    places = call.place(call.number(0), old), call.place(call.number(2), new)
    return execution.rename(call, *places, call.unsigned(4))


def _link(execution: CallExecution, call: HandedCall) -> Result:
    old, new = call.text(0), call.text(1)
    return execution.link(call, call.place(AT_FDCWD, old), call.place(AT_FDCWD, new))


def _linkat(execution: CallExecution, call: HandedCall) -> Result:
    old, new = call.place(call.number(0), call.text(1)), call.place(call.number(2), call.text(3))
    return execution.link(call, call.follow(old) if call.number(4) & SYMLINK_FOLLOW else old, new)


def _utime(execution: CallExecution, call: HandedCall) -> Result:
    times = None
    if address := call.pointer(1):
        accessed, modified = struct.unpack("=2q", _exactly(call, address, 16))
        times = TIMES.pack(accessed, 0, modified, 0)
    return execution.metadata.change_times(call, Target.of_path(call, AT_FDCWD, call.text(0), 0), times)


def _utimes(execution: CallExecution, call: HandedCall) -> Result:
    times = _times(call, 1, MICRO)
    return execution.metadata.change_times(call, Target.of_path(call, AT_FDCWD, call.text(0), 0), times)


def _futimesat(execution: CallExecution, call: HandedCall) -> Result:
    times = _times(call, 2, MICRO)
    return execution.metadata.change_times(call, _path_or_descriptor(call, 0), times)


def _utimensat(execution: CallExecution, call: HandedCall) -> Result:
    times = _times(call, 2, NANO)
    return execution.metadata.change_times(call, _path_or_descriptor(call, call.number(3)), times)


def _path_or_descriptor(call: HandedCall, flags: int) -> Target:
    """Without a path, the descriptor itself is meant."""
    if not call.pointer(1):
        return Target.of_descriptor(call, call.number(0))
    return Target.of_path(call, call.number(0), _maybe_empty(call, 1, flags), flags)


def _maybe_empty(call: HandedCall, index: int, flags: int) -> bytes:
    if flags & EMPTY_PATH and call.memory(call.pointer(index), 1) == b"\0":
        return b""
    return call.text(index)


def _times(call: HandedCall, index: int, unit: int) -> bytes | None:
    """Two times in the form that `utimensat` takes; `None` for now."""
    if not (address := call.pointer(index)):
        return None
    accessed, part, modified, other_part = TIMES.unpack(_exactly(call, address, TIMES.size))
    if unit == MICRO and not (0 <= part < 1_000_000 and 0 <= other_part < 1_000_000):
        raise OSError(errno.EINVAL, "not a time")
    return TIMES.pack(accessed, part * unit, modified, other_part * unit)


def _exactly(call: HandedCall, address: int, size: int) -> bytes:
    content = call.memory(address, size)
    if len(content) < size:
        raise OSError(errno.EFAULT, "no such memory")
    return content


def _chmod(execution: CallExecution, call: HandedCall) -> Result:
    return execution.metadata.change_mode(call, Target.of_path(call, AT_FDCWD, call.text(0), 0), call.unsigned(1))


def _fchmodat(execution: CallExecution, call: HandedCall) -> Result:
    return execution.metadata.change_mode(call, Target.of_path(call, call.number(0), call.text(1), 0), call.unsigned(2))


def _fchmodat2(execution: CallExecution, call: HandedCall) -> Result:
    flags = call.number(3)
    target = Target.of_path(call, call.number(0), _maybe_empty(call, 1, flags), flags)
    return execution.metadata.change_mode(call, target, call.unsigned(2))


def _chown(execution: CallExecution, call: HandedCall) -> Result:
    target = Target.of_path(call, AT_FDCWD, call.text(0), 0)
    return execution.metadata.change_owner(call, target, call.number(1), call.number(2))


def _lchown(execution: CallExecution, call: HandedCall) -> Result:
    target = Target.of_path(call, AT_FDCWD, call.text(0), SYMLINK_NOFOLLOW)
    return execution.metadata.change_owner(call, target, call.number(1), call.number(2))


def _fchownat(execution: CallExecution, call: HandedCall) -> Result:
    flags = call.number(4)
    target = Target.of_path(call, call.number(0), _maybe_empty(call, 1, flags), flags)
    return execution.metadata.change_owner(call, target, call.number(2), call.number(3))


def _fchown(execution: CallExecution, call: HandedCall) -> Result:
    target = Target.of_descriptor(call, call.number(0))
    return execution.metadata.change_owner(call, target, call.number(1), call.number(2))


def _length(call: HandedCall) -> int:
    value = call.pointer(1)
    if value >> 63:
        raise OSError(errno.EINVAL, "a negative length")
    return value


CALLS: dict[str, Callable[[CallExecution, HandedCall], Result]] = {
    "open": _open,
    "openat": _openat,
    "creat": _creat,
    "rename": _rename,
    "renameat": _renameat,
    "renameat2": _renameat2,
    "link": _link,
    "linkat": _linkat,
    "unlink": lambda execution, call: execution.remove(call, AT_FDCWD, call.text(0), 0),
    "unlinkat": lambda execution, call: execution.remove(call, call.number(0), call.text(1), call.number(2)),
    "rmdir": lambda execution, call: execution.remove(call, AT_FDCWD, call.text(0), REMOVE_FOLDER),
    "mkdir": lambda execution, call: execution.make_folder(call, AT_FDCWD, call.text(0), call.unsigned(1)),
    "mkdirat": lambda execution, call: execution.make_folder(call, call.number(0), call.text(1), call.unsigned(2)),
    "mknod": lambda execution, call: execution.make_node(call, AT_FDCWD, call.text(0)),
    "mknodat": lambda execution, call: execution.make_node(call, call.number(0), call.text(1)),
    "symlink": lambda execution, call: execution.make_symlink(call, call.text(0), AT_FDCWD, call.text(1)),
    "symlinkat": lambda execution, call: execution.make_symlink(call, call.text(0), call.number(1), call.text(2)),
    "truncate": lambda execution, call: execution.truncate(call, call.text(0), _length(call)),
    "chmod": _chmod,
    "fchmod": lambda execution, call: execution.metadata.change_mode(
        call, Target.of_descriptor(call, call.number(0)), call.unsigned(1)
    ),
    "fchmodat": _fchmodat,
    "fchmodat2": _fchmodat2,
    "chown": _chown,
    "lchown": _lchown,
    "fchown": _fchown,
    "fchownat": _fchownat,
    "utime": _utime,
    "utimes": _utimes,
    "futimesat": _futimesat,
    "utimensat": _utimensat,
}
