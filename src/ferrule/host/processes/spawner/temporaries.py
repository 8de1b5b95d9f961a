"""Temporary names that a held command makes beside what it declared: remembered, listed on disk, removed at the end.

The list is written before a name is made, so that whoever comes after a killed
supervisor finds what it left. A name is removed only while it still means the
file that the command made.
"""

from __future__ import annotations

import ctypes
import errno
import os
import stat
import struct
import time
from contextlib import suppress

from .syscalls import AT_FDCWD, syscall

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    Identity = tuple[int, int, int]
    """Device, number and birth: numbers are used again."""

PREFIX = "temporaries-"
MOST = 10_000
"""Names at a time; a command that wants more is refused."""
LONGEST_LIST = 1 << 20
"""Bytes after which the list is written anew."""
DEEPEST = 200
NOBODY = 0, 0, 0
"""Marks a file that is yet to be made."""
STATX = {"x86_64": 332, "aarch64": 291}
BIRTH, BIRTH_AT, NO_FOLLOW = 0x800, 80, 0x100
A_MOMENT = 1_000_000_000
"""Nanoseconds within which a name that was announced is made."""


class TemporaryNames:
    """Those of one command, with the list that outlives this process."""

    def __init__(self, home: str, number: int) -> None:
        self._list = os.path.join(home, f"{PREFIX}{number}")
        self._descriptor: int | None = None
        self._written = 0
        self._longest = LONGEST_LIST
        self._names: dict[bytes, Identity] = {}
        self._folders: tuple[bytes, ...] = ()
        """Those of them that are folders, with a slash at the end."""

    def is_below(self, path: bytes) -> bool:
        """In a temporary folder."""
        return path.startswith(self._folders)

    def means(self, path: bytes, found: os.stat_result | None) -> bool:
        """Whether this is the file that was made under the name, or lies below a temporary folder."""
        if found is None:
            return False
        return self._names.get(path, NOBODY)[:2] == (found.st_dev, found.st_ino) or self.is_below(path)

    def announce(self, path: bytes) -> None:
        """To be called before the name is made. Raises `OSError` where there are too many."""
        if len(self._names) >= MOST:
            raise OSError(errno.ENOSPC, "too many temporary names")
        self._write(path, NOBODY)

    def add(self, path: bytes, found: os.stat_result) -> None:
        """The name was made, and means this."""
        identity = found.st_dev, found.st_ino, _birth(AT_FDCWD, path)
        self._folders = tuple(folder for folder in self._folders if folder != path + b"/")
        self._names[path] = identity
        if stat.S_ISDIR(found.st_mode):
            self._folders += (path + b"/",)
        self._write(path, identity)

    def forget(self, path: bytes) -> None:
        """The name is gone, or has become permanent."""
        if (identity := self._names.pop(path, None)) is not None:
            self._folders = tuple(folder for folder in self._folders if folder != path + b"/")
            self._write(path, (-1, *identity[1:]))

    def remove_all(self) -> list[bytes]:
        """Names that could not be removed. With them the list goes as well."""
        failed = [path for path, identity in self._names.items() if not _remove(path, identity)]
        self._names.clear()
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
            with suppress(OSError):
                os.unlink(self._list)
        return failed

    def _write(self, path: bytes, identity: Identity) -> None:
        if self._written > self._longest:
            self._shorten()
        if self._descriptor is None:
            self._descriptor = _new_list(self._list)
        self._written += os.write(self._descriptor, _line(path, identity))

    def _shorten(self) -> None:
        """The list anew, without what is over; a command may make and remove names for ever."""
        fresh = _new_list(f"{self._list}.new")
        lines = b"".join(_line(path, identity) for path, identity in self._names.items())
        with os.fdopen(os.dup(fresh), "wb") as file:
            file.write(lines)
        os.rename(f"{self._list}.new", self._list)
        if self._descriptor is not None:
            os.close(self._descriptor)
        self._descriptor, self._written = fresh, len(lines)
        self._longest = LONGEST_LIST + 2 * len(lines)


def _new_list(path: str) -> int:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o600)
    os.fchmod(descriptor, 0o600)  # the mask may be the command's
    return descriptor


def _line(path: bytes, identity: Identity) -> bytes:
    return b"%d %d %d %d %s\0" % (*identity, time.time_ns(), path)


def remove_listed(home: str, number: int) -> None:
    """Removes what a supervisor that was killed had made, and its list; one that ended by itself leaves none."""
    path = os.path.join(home, f"{PREFIX}{number}")
    for temporary, identity, announced in _read_list(path):
        if identity != NOBODY:
            _remove(temporary, identity)
        elif (found := _find_just_made(temporary, announced)) is not None:
            _remove(temporary, found)
    with suppress(OSError):
        os.unlink(path)


def remove_left_behind(home: str) -> None:
    """The same for all lists in a spawner's folder."""
    try:
        numbers = [name.removeprefix(PREFIX) for name in os.listdir(home) if name.startswith(PREFIX)]
    except OSError:
        return
    for number in filter(str.isdecimal, numbers):
        remove_listed(home, int(number))


def has_lists(home: str) -> bool:
    """Whether a supervisor wrote a list in this folder of a spawner."""
    return any(name.startswith(PREFIX) for name in os.listdir(home))


def _read_list(path: str) -> Iterator[tuple[bytes, Identity, int]]:
    """What is still on the list, with when it was announced; what cannot be read is left out."""
    try:
        with open(path, "rb") as file:
            lines = file.read().split(b"\0")[:-1]
    except OSError:
        return
    found: dict[bytes, tuple[Identity, int]] = {}
    for line in lines:
        try:
            *numbers, name = line.split(b" ", 4)
            device, number, birth, when = map(int, numbers)
        except ValueError:  # nobody wrote that here
            continue
        if device < 0:
            found.pop(name, None)
        else:
            found[name] = (device, number, birth), when
    for name, (identity, when) in found.items():
        yield name, identity, when


def _find_just_made(path: bytes, announced: int) -> Identity | None:
    """What is there, if it is empty, one's own and was made within a moment of being announced."""
    try:
        found = os.lstat(path)
    except OSError:
        return None
    is_empty = not found.st_size if stat.S_ISREG(found.st_mode) else stat.S_ISDIR(found.st_mode)
    if is_empty and found.st_uid == os.geteuid() and abs(found.st_ctime_ns - announced) < A_MOMENT:
        return found.st_dev, found.st_ino, _birth(AT_FDCWD, path)
    return None


def _remove(path: bytes, identity: Identity) -> bool:
    """Whether the name no longer means what was made."""
    try:
        folder = os.open(os.path.dirname(path), os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return True
    try:
        _remove_in(folder, os.path.basename(path), identity, 0)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    finally:
        os.close(folder)
    return True


def _remove_in(folder: int, name: bytes, identity: Identity | None, depth: int) -> None:
    found = os.stat(name, dir_fd=folder, follow_symlinks=False)
    if identity is not None and (found.st_dev, found.st_ino, _birth(folder, name)) != identity:
        return
    if not stat.S_ISDIR(found.st_mode):
        os.unlink(name, dir_fd=folder)
        return
    if depth > DEEPEST:
        raise OSError(errno.ELOOP, "too deep")
    with suppress(OSError):
        os.rmdir(name, dir_fd=folder)
        return
    inside = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    try:
        itself = f"/proc/self/fd/{inside}"
        os.chmod(itself, 0o700)
        for entry in os.listdir(itself):
            _remove_in(inside, os.fsencode(entry), None, depth + 1)
    finally:
        os.close(inside)
    os.rmdir(name, dir_fd=folder)


def _birth(folder: int, name: bytes) -> int:
    """When a file was made, in nanoseconds; 0 where the file system does not say."""
    found = ctypes.create_string_buffer(256)
    try:
        syscall("statx", STATX[os.uname().machine], folder, name, NO_FOLLOW, BIRTH, found)
    except OSError:
        return 0
    seconds, nanoseconds = struct.unpack_from("=qI", found, BIRTH_AT)
    return seconds * 1_000_000_000 + nanoseconds if struct.unpack_from("=I", found)[0] & BIRTH else 0
