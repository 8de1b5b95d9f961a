"""System calls for which Python has no function, through the C library."""

from __future__ import annotations

import ctypes
import os
import signal
import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_SET_SECCOMP = 22
PR_SET_SECUREBITS = 28
PR_SET_CHILD_SUBREAPER = 36
PR_SET_NO_NEW_PRIVS = 38
PR_CAP_AMBIENT = 47

OPENAT2 = 437  # alike on all architectures
RESOLVE_NO_MOUNTS, RESOLVE_NO_MAGIC_LINKS, RESOLVE_NO_SYMLINKS, RESOLVE_BENEATH = 1, 2, 4, 8
AT_FDCWD = -100
MNT_DETACH = 2

CLONE = {"x86_64": 56, "aarch64": 220}

_libc = ctypes.CDLL(None, use_errno=True)
_libc_with_lock = ctypes.PyDLL(None, use_errno=True)
"""Calls through it keep the interpreter's lock, which a child could not take again after a fork."""


def syscall(what: str, number: int, *arguments: Any) -> int:
    """The call's result. `what` names it in the error, where there is one."""
    return _check(what, _libc.syscall(ctypes.c_long(number), *map(_word, arguments)))


def prctl(what: str, option: int, *arguments: Any) -> None:
    words = [*map(_word, arguments), *(ctypes.c_ulong(0) for _ in range(4 - len(arguments)))]
    _check(what, _libc.prctl(option, *words))


def fork_into(namespaces: int) -> int:
    """Like `os.fork`, but the child is in new namespaces, and the first process of a new process namespace."""
    ctypes.pythonapi.PyOS_BeforeFork()
    number = ctypes.c_long(CLONE[os.uname().machine])
    pid = _libc_with_lock.syscall(number, ctypes.c_long(namespaces | signal.SIGCHLD), *([ctypes.c_long(0)] * 4))
    if pid == 0:
        ctypes.pythonapi.PyOS_AfterFork_Child()
    else:
        ctypes.pythonapi.PyOS_AfterFork_Parent()
    return _check("clone", pid)


def unshare(flags: int) -> None:
    _check("unshare", _libc.unshare(flags))


def mount(source: str, target: str, kind: str, flags: int, data: str = "") -> None:
    arguments = (os.fsencode(source), os.fsencode(target), os.fsencode(kind), ctypes.c_ulong(flags), os.fsencode(data))
    _check(f"mount on {target}", _libc.mount(*arguments))


def detach(target: str) -> None:
    """Takes a mount out of the tree; who has something open in it keeps it."""
    _check(f"unmount of {target}", _libc.umount2(os.fsencode(target), MNT_DETACH))


def open_without_links(path: str) -> int:
    """A descriptor (`O_PATH`) of the path; an error if a link was put anywhere on the way."""
    how = struct.pack("=QQQ", os.O_PATH | os.O_CLOEXEC, 0, RESOLVE_NO_SYMLINKS)
    return syscall(f"open {path}", OPENAT2, AT_FDCWD, os.fsencode(path), how, len(how))


def open_beneath(folder: int, path: str, flags: int) -> int:
    """A relative path below an open folder; an error if a link or another mount was put anywhere on the way."""
    resolving = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGIC_LINKS | RESOLVE_NO_MOUNTS
    how = struct.pack("=QQQ", flags | os.O_CLOEXEC, 0, resolving)
    return syscall(f"open {path}", OPENAT2, folder, os.fsencode(path or "."), how, len(how))


def _word(argument: Any) -> Any:
    """Integers are as wide as a register here; ctypes would pass them as `int`."""
    return ctypes.c_long(argument) if isinstance(argument, int) else argument


def _check(what: str, result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result
