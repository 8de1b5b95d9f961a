"""Writes files so that nobody sees half of one, and so that a change by somebody else is found and kept.

A file is written beside its target and exchanged with what is there, in a
folder held open. Whatever was there until that moment must still be what was
read; otherwise it is put back. Whoever writes holds a lock, so of two processes
that write by this module the second gets an error.

What is left open: another program that had the file open before, and writes
to it after the exchange, writes to a file without a name, as with every editor
that renames. Where names cannot be exchanged (some file systems know only
renames) the same is true from the last look on, some microseconds earlier. A
file with several hard links is overwritten in place: who reads it meanwhile
and takes no lock may see a part of it.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import stat
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from hashlib import file_digest
from typing import Literal

from ...core.values import plain_value
from .file_attributes import keep_attributes
from .held_folders import ChangedMeanwhile, hold_folder, is_still_at, sync_folder
from .open_files import DIGEST, SAFELY, FileIdentity, became_a_link, kind_of, open_for_reading, real_path_of

PATIENCE = 10.0
"""Seconds to wait for whoever else has locked the file."""
STRAY_AGE = 60.0
"""Seconds after which an unlocked temporary file belongs to nobody."""

BESIDE = re.compile(r"\..+\.ferrule-([0-9a-f]{8})[0-9a-f]{8}\.(tmp|saved)")
"""Names of temporary files beside a file being written; the first eight digits say who writes."""
LONGEST_PATH = 4095
"""Bytes of a path that the kernel takes (PATH_MAX with its end)."""
LONGEST_NAME = 200
"""Bytes of a name that a temporary file takes over; file systems allow 255."""

ANYBODY_WRITES = stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH
"""A file that nobody may write was protected on purpose; a rename, or being root, must not bypass that."""
PROTECTED = "it is write-protected. Make it writable first, if it is to be changed"

ADVICE = {
    errno.ENOSPC: "the disk is full. Free some space, then try again",
    errno.EDQUOT: "the disk quota is used up. Free some space, then try again",
    errno.EFBIG: "it would be larger than files may be here",
    errno.EROFS: "the file system is read-only",
    errno.EACCES: "this user has no permission to write it, or to write in its folder",
    errno.EPERM: "this user is not permitted to change it",
    errno.ENOENT: "its folder does not exist any more. Look for the folder, or make it, then try again",
    errno.ENOTDIR: "a part of its path is a file, not a folder",
    errno.ENAMETOOLONG: "its name is too long for the file system",
    errno.EMFILE: "this program has too many open files. End something that it runs, or raise `ulimit -n`",
    errno.ENFILE: "the system has too many open files. End a program, then try again",
    errno.EAGAIN: "another process keeps it locked. Try again when that has finished",
}


class NotWritten(OSError):
    """Nothing was written, and what was there is whole. `strerror` says why, and what to do."""


@plain_value
class Written:
    path: str
    identity: FileIdentity
    """Of the file as it is now."""
    created: bool
    followed_link: bool
    """`path` is a link, and the file it leads to was written."""

    @property
    def remarks(self) -> tuple[str, ...]:
        """What whoever asked for the change may not expect."""
        remarks: list[str] = []
        if self.followed_link:
            remarks.append(f"{self.path} is a link; what was written is {self.identity.real_path}.")
        if self.identity.links > 1:
            remarks.append(f"The file has {self.identity.links} hard links, and all of them show the change.")
        return tuple(remarks)


def write_file(
    path: str,
    data: bytes,
    *,
    expected: FileIdentity | None,
    judged: str | None = None,
    owner: str = "",
    mode: int | None = None,
) -> Written:
    """Replace the file that was read as `expected`, or make one where there was none.

    Raises `ChangedMeanwhile` if what is there is anything else: other content,
    a link, a file where none was. Raises `NotWritten` if it cannot be done.
    Either way what was there is whole, and no temporary file is left.
    `judged` is as for `read_document`, for a file that is new. `owner` marks
    the temporary file, for `sweep` to know it by. `mode` is for a file that is
    new; one that is replaced keeps its own.
    """
    with _in_words(path):
        real_path = real_path_of(path, expected.real_path if expected else judged)
        _check_length(real_path)
        followed = os.path.islink(path)
        with hold_folder(os.path.dirname(real_path), made=expected is None) as folder:
            place = _Place(path, real_path, folder, owner or new_owner())
            status = _create(place, data, mode) if expected is None else _replace(place, data, expected)
    return Written(path, FileIdentity.of(real_path, status, data), expected is None, followed)


def remove_file(path: str, *, expected: FileIdentity) -> None:
    """Remove the file that was read as `expected`. Raises as `write_file` does, and then it is as it was."""
    with _in_words(path), hold_folder(os.path.dirname(expected.real_path)) as folder:
        place = _Place(path, expected.real_path, folder, new_owner())
        with _hold_lock(place) as current:
            _check_unchanged(place, current, expected)
            os.unlink(place.name, dir_fd=folder)
            sync_folder(folder)


def _check_length(real_path: str) -> None:
    """Refuse a path that could be made a folder at a time, but never be opened."""
    size = len(os.fsencode(real_path))
    if size > LONGEST_PATH:
        words = (
            f"its path has {size:,} bytes, and no program can open one of more than {LONGEST_PATH:,}. Use a shorter one"
        )
        raise NotWritten(errno.ENAMETOOLONG, words, real_path)


def new_owner() -> str:
    return os.urandom(4).hex()


def sweep(folder: str, *, owner: str = "", older_than: float = STRAY_AGE) -> tuple[str, ...]:
    """Remove the temporary files that killed processes left here; the names of those removed.

    Only regular files of this user, named as ours are, that no process holds
    locked; with an `owner`, only what that one made.
    """
    removed: list[str] = []
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if stands_beside(entry.name, "tmp", owner) and _is_stray(entry, older_than):
                with suppress(FileNotFoundError):
                    os.unlink(entry.path)
                    removed.append(entry.name)
    return tuple(sorted(removed))


def stands_beside(name: str, kind: Literal["tmp", "saved"], owner: str = "") -> bool:
    """
    >>> stands_beside(".a.txt.ferrule-0123456789abcdef.tmp", "tmp", "01234567")
    True
    """
    found = BESIDE.fullmatch(name)
    return found is not None and found[2] == kind and owner in ("", found[1])


@plain_value
class _Place:
    """Where a file goes: a name in a folder that is held open."""

    shown: str
    real_path: str
    folder: int
    owner: str

    @property
    def name(self) -> str:
        return os.path.basename(self.real_path)

    def status(self) -> os.stat_result | None:
        try:
            return os.stat(self.name, dir_fd=self.folder, follow_symlinks=False)
        except FileNotFoundError:
            return None

    def check_folder(self) -> None:
        if not is_still_at(os.path.dirname(self.real_path), self.folder):
            raise ChangedMeanwhile(
                f"the folder of {self.real_path} was moved or replaced meanwhile. Look at it again, then ask again."
            )


def _create(place: _Place, data: bytes, mode: int | None) -> os.stat_result:
    _check_free(place)
    with _temporary(place, 0o666 if mode is None else 0o600) as (temporary, descriptor):
        if mode is not None:
            os.fchmod(descriptor, mode)
        _fill(descriptor, data)
        place.check_folder()
        _settle_new(place, temporary)
        sync_folder(place.folder)
        return os.stat(descriptor)


def _check_free(place: _Place) -> None:
    there = place.status()
    if there is not None and stat.S_ISREG(there.st_mode):
        raise _exists_now(place.shown)
    if there is not None:
        raise OSError(errno.EEXIST, f"it is {kind_of(there.st_mode)}")


def _settle_new(place: _Place, temporary: str) -> None:
    """Give the new file its name, unless something has that name by now."""
    try:
        os.link(temporary, place.name, src_dir_fd=place.folder, dst_dir_fd=place.folder, follow_symlinks=False)
    except FileExistsError:
        raise _exists_now(place.shown) from None
    except OSError as error:
        if error.errno not in (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK):
            raise
        if place.status() is not None:  # a file system without hard links, which leaves a moment open
            raise _exists_now(place.shown) from None
        os.rename(temporary, place.name, src_dir_fd=place.folder, dst_dir_fd=place.folder)
    else:
        os.unlink(temporary, dir_fd=place.folder)


def _replace(place: _Place, data: bytes, expected: FileIdentity) -> os.stat_result:
    with _hold_lock(place) as current:
        if os.fstat(current).st_nlink > 1:
            return _overwritten(place, current, data, expected)
        with _temporary(place, 0o600) as (temporary, descriptor):
            _write_all(descriptor, data)
            keep_attributes(current, descriptor)
            os.fsync(descriptor)
            _check_unchanged(place, current, expected)
            _put_in_place(place, temporary, current, expected)
            sync_folder(place.folder)
            return os.stat(descriptor)


def _put_in_place(place: _Place, temporary: str, current: int, expected: FileIdentity) -> None:
    """The old file then has the temporary name, and is removed with it if nobody changed it meanwhile."""
    from .exchanging import exchange

    try:
        exchanged = exchange(temporary, place.name, place.folder)
    except FileNotFoundError:
        raise _changed_meanwhile(place.shown) from None
    if not exchanged:
        os.rename(temporary, place.name, src_dir_fd=place.folder, dst_dir_fd=place.folder)
        return
    stood = os.stat(temporary, dir_fd=place.folder, follow_symlinks=False)
    if not os.path.samestat(stood, os.fstat(current)) or not _holds(current, expected):
        exchange(temporary, place.name, place.folder)
        raise _changed_meanwhile(place.shown)


def _overwritten(place: _Place, current: int, data: bytes, expected: FileIdentity) -> os.stat_result:
    """In place, so that all names stay names of one file; a copy is kept beside it until that is done."""
    _check_unchanged(place, current, expected)
    old = _bytes_of(current)
    saved = _save_copy(place, old)
    if not _holds(current, expected):  # to save it takes longer than to look at it
        os.unlink(saved, dir_fd=place.folder)
        raise _changed_meanwhile(place.shown)
    try:
        _put(current, data)
    except OSError:
        _put(current, old)
        os.unlink(saved, dir_fd=place.folder)
        raise
    os.unlink(saved, dir_fd=place.folder)
    return os.stat(current)


def _save_copy(place: _Place, data: bytes) -> str:
    """The name of a whole copy. `sweep` leaves it alone: after a kill it may be all there is."""
    with _temporary(place, 0o600) as (temporary, descriptor):
        _fill(descriptor, data)
        saved = temporary.removesuffix(".tmp") + ".saved"
        os.rename(temporary, saved, src_dir_fd=place.folder, dst_dir_fd=place.folder)
        sync_folder(place.folder)
        return saved


def _put(descriptor: int, data: bytes) -> None:
    """Replace the content; the room is taken first, so that a full disk shows before anything is lost."""
    size = os.fstat(descriptor).st_size
    if len(data) > size and hasattr(os, "posix_fallocate"):
        try:
            os.posix_fallocate(descriptor, size, len(data) - size)
        except OSError:
            os.ftruncate(descriptor, size)
            raise
    os.lseek(descriptor, 0, os.SEEK_SET)
    _write_all(descriptor, data)
    os.ftruncate(descriptor, len(data))
    os.fsync(descriptor)


@contextmanager
def _hold_lock(place: _Place) -> Generator[int]:
    """The file open for writing, locked against everybody who writes by this module."""
    try:
        descriptor = os.open(place.name, os.O_RDWR | os.O_NOFOLLOW | SAFELY, dir_fd=place.folder)
    except FileNotFoundError:
        raise ChangedMeanwhile(f"{place.shown} does not exist any more. Check what became of it.") from None
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise became_a_link(place.shown) from None
        raise
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise ChangedMeanwhile(f"{place.shown} is {kind_of(status.st_mode)} now. Check what became of it.")
        if not status.st_mode & ANYBODY_WRITES:
            raise NotWritten(errno.EACCES, PROTECTED, place.shown)
        _lock(descriptor)
        yield descriptor
    finally:
        os.close(descriptor)  # and with it the lock


def _lock(descriptor: int) -> None:
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.002)
        except OSError as error:
            if error.errno in (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS):
                return None  # a file system without locks; the comparison still protects
            raise


def _check_unchanged(place: _Place, current: int, expected: FileIdentity) -> None:
    """By content and not by time: a file that was merely touched is as it was."""
    place.check_folder()
    there = place.status()
    if there is None or not os.path.samestat(there, os.fstat(current)):
        raise _changed_meanwhile(place.shown)
    if not _holds(current, expected):
        raise _changed_meanwhile(place.shown)


def _holds(descriptor: int, expected: FileIdentity) -> bool:
    return os.fstat(descriptor).st_size == expected.size and _digest_in(descriptor) == expected.digest


def _digest_in(descriptor: int) -> str:
    os.lseek(descriptor, 0, os.SEEK_SET)
    with open(descriptor, "rb", closefd=False, buffering=0) as file:
        return file_digest(file, DIGEST).hexdigest()


def _bytes_of(descriptor: int) -> bytes:
    os.lseek(descriptor, 0, os.SEEK_SET)
    with open(descriptor, "rb", closefd=False) as file:
        return file.read()


@contextmanager
def _temporary(place: _Place, mode: int) -> Generator[tuple[str, int]]:
    """A new file beside the place, locked while it is ours; gone at the end unless it got another name."""
    name = _temporary_name(place.name, place.owner)
    descriptor = os.open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode, dir_fd=place.folder)
    try:
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield name, descriptor
    finally:
        with suppress(FileNotFoundError):
            os.unlink(name, dir_fd=place.folder)
        os.close(descriptor)


def _temporary_name(name: str, owner: str) -> str:
    """
    >>> stands_beside(_temporary_name("a.txt", "01234567"), "tmp", "01234567")
    True
    >>> len(_temporary_name("ü" * 127, "01234567").encode()) < 255
    True
    """
    while len(os.fsencode(name)) > LONGEST_NAME:
        name = name[:-1]
    return f".{name}.ferrule-{owner}{os.urandom(4).hex()}.tmp"


def _is_stray(entry: os.DirEntry[str], older_than: float) -> bool:
    try:
        status = entry.stat(follow_symlinks=False)
        if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid():
            return False
        return time.time() - status.st_mtime >= older_than and not _is_locked(entry.path)
    except FileNotFoundError:
        return False


def _is_locked(path: str) -> bool:
    with open_for_reading(path) as descriptor:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        return False


def _fill(descriptor: int, data: bytes) -> None:
    _write_all(descriptor, data)
    os.fsync(descriptor)


def _write_all(descriptor: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


@contextmanager
def _in_words(path: str) -> Generator[None]:
    try:
        yield
    except NotWritten:
        raise
    except OSError as error:
        number = error.errno or errno.EIO
        words = ADVICE.get(number, error.strerror or str(error))
        raise NotWritten(number, words, path) from error


def _changed_meanwhile(path: str) -> ChangedMeanwhile:
    return ChangedMeanwhile(f"{path} changed since it was read. Read it again, then repeat the change.")


def _exists_now(path: str) -> ChangedMeanwhile:
    return ChangedMeanwhile(f"{path} exists by now. Read it before you overwrite it.")
