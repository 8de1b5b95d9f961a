"""Carries out, for a held command, the calls that change names: what it declared is done, everything else is refused.

Nothing here trusts the command. Every path is led to a folder held open and a
name in it (see `handed_call`), the decision is about where that is, and the
change is made there without following a link. What is left to the kernel is
only what Landlock holds the command to.
"""

from __future__ import annotations

import errno
import os
import stat

from . import landlock
from .handed_call import CallPlace, HandedCall
from .metadata_execution import ITSELF, PERMISSIONS, MetadataExecution
from .notification import WRITING
from .syscalls import AT_FDCWD, syscall

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from .name_rights import NameRights

REMOVE_FOLDER, SYMLINK_FOLLOW = 0x200, 0x400
NO_REPLACE, EXCHANGE = 1, 2
DEVICES = frozenset(map(os.fsencode, landlock.DEVICES))
RENAMEAT2 = {"x86_64": 316, "aarch64": 276}
MOST_TRIES = 8


class Opened:
    """A descriptor that the caller is to get."""

    __slots__ = ("closes_on_exec", "descriptor")

    def __init__(self, descriptor: int, *, closes_on_exec: bool) -> None:
        self.descriptor = descriptor
        self.closes_on_exec = closes_on_exec


class LeftToKernel:
    """Landlock holds the command to the right thing here."""


LEFT_TO_KERNEL = LeftToKernel()
if TYPE_CHECKING:
    Result = Opened | LeftToKernel | None


class CallExecution:
    """For one command. Each method answers one kind of call and raises `OSError` for what fails."""

    def __init__(self, rights: NameRights, confirm: Callable[[HandedCall], None]) -> None:
        """`confirm` raises where the caller no longer waits; what was read of it may then be somebody else's."""
        self._rights = rights
        self._names = rights.names
        self._temporaries = rights.temporaries
        self._confirm = confirm
        self.metadata = MetadataExecution(rights, confirm)

    # Files

    def open(self, call: HandedCall, at: int, path: bytes, flags: int, mode: int) -> Result:
        if flags & os.O_PATH or path in DEVICES:
            return LEFT_TO_KERNEL
        if not flags & WRITING:
            return self._open_for_reading(call, at, path, flags)
        for _ in range(MOST_TRIES):
            place = self._place_to_open(call, at, path, flags)
            if self._names.is_own(place.path):
                return LEFT_TO_KERNEL
            self._confirm(call)
            try:
                if place.found is None:
                    return self._create(call, place, flags, mode)
                return self._open_existing(call, place, flags)
            except (FileExistsError, FileNotFoundError):  # it came or went in between
                if flags & os.O_EXCL or not flags & os.O_CREAT:
                    raise
        raise OSError(errno.EAGAIN, "the name comes and goes")

    def _open_for_reading(self, call: HandedCall, at: int, path: bytes, flags: int) -> Result:
        """What the command made in a folder of which Landlock grants only parts is not among those."""
        if not self._rights.is_new(os.path.basename(path.rstrip(b"/"))):
            return LEFT_TO_KERNEL
        place = call.place(at, path)
        if flags & os.O_NOFOLLOW and place.is_link:
            return LEFT_TO_KERNEL
        place = call.follow(place)
        if place.found is None or not stat.S_ISREG(place.found.st_mode) or not self._names.may_be_read(place.path):
            return LEFT_TO_KERNEL
        if place.wants_folder or flags & os.O_DIRECTORY:
            return LEFT_TO_KERNEL
        self._confirm(call)
        added = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
        descriptor = call.keep(os.open(place.name, flags | added, dir_fd=place.folder))
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return LEFT_TO_KERNEL
        if not flags & os.O_NONBLOCK:
            os.set_blocking(descriptor, True)
        return Opened(descriptor, closes_on_exec=bool(flags & os.O_CLOEXEC))

    def truncate(self, call: HandedCall, path: bytes, length: int) -> Result:
        place = call.follow(call.place(AT_FDCWD, path))
        if self._names.is_own(place.path):
            return LEFT_TO_KERNEL
        largest = call.largest_file()
        self._confirm(call)
        if place.found is None:
            raise FileNotFoundError(errno.ENOENT, "nothing is there")
        if length > largest >= 0:
            raise OSError(errno.EFBIG, "more than the caller may write")
        opened = self._open_existing(call, place, os.O_WRONLY)
        if not isinstance(opened, Opened):
            return opened
        os.ftruncate(opened.descriptor, length)
        return None

    def _place_to_open(self, call: HandedCall, at: int, path: bytes, flags: int) -> CallPlace:
        place = call.place(at, path)
        is_new = flags & os.O_CREAT and flags & os.O_EXCL
        if place.is_link and is_new:
            raise OSError(errno.EEXIST, "a link is there")
        if place.is_link and flags & os.O_NOFOLLOW:
            raise OSError(errno.ELOOP, "a link is there")
        return call.follow(place)

    def _create(self, call: HandedCall, place: CallPlace, flags: int, mode: int) -> Result:
        if not flags & os.O_CREAT:
            raise OSError(errno.ENOENT, "nothing is there")
        if place.wants_folder:
            raise OSError(errno.EISDIR, "a folder is meant")
        if flags & os.O_DIRECTORY:
            raise OSError(errno.EINVAL, "no folder is made by opening it")
        is_temporary = self._rights.check_new(place)
        opening = flags & ~os.O_TRUNC | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NOCTTY
        os.umask(call.umask())
        self._rights.announce(place, is_temporary=is_temporary)
        descriptor = call.keep(os.open(place.name, opening, mode & PERMISSIONS, dir_fd=place.folder))
        self._rights.note_made(place, os.fstat(descriptor), is_temporary=is_temporary)
        return Opened(descriptor, closes_on_exec=bool(flags & os.O_CLOEXEC))

    def _open_existing(self, call: HandedCall, place: CallPlace, flags: int) -> Result:
        found = place.found
        assert found is not None
        if flags & os.O_CREAT and flags & os.O_EXCL:
            raise OSError(errno.EEXIST, "something is there")
        if flags & os.O_TMPFILE == os.O_TMPFILE:
            raise OSError(errno.EOPNOTSUPP, "no file without a name")
        reads_only = flags & os.O_ACCMODE == os.O_RDONLY and not flags & os.O_TRUNC
        if reads_only or place.is_link or not (stat.S_ISREG(found.st_mode) or place.is_folder):
            return LEFT_TO_KERNEL
        if place.is_folder:
            raise OSError(errno.EISDIR, "a folder is there")
        if place.wants_folder or flags & os.O_DIRECTORY:
            raise OSError(errno.ENOTDIR, "no folder is there")
        self._rights.check_existing(place)
        if flags & os.O_ACCMODE != os.O_WRONLY and not self._rights.may_be_read(place):
            raise self._rights.refusal(place.path)
        added = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY  # a pipe put there now must not make us wait
        opening = flags & ~(os.O_CREAT | os.O_TRUNC) | added
        descriptor = call.keep(os.open(place.name, opening, dir_fd=place.folder))
        self._rights.check_alone(os.fstat(descriptor), place.path)
        if not flags & os.O_NONBLOCK:
            os.set_blocking(descriptor, True)
        if flags & os.O_TRUNC:
            os.truncate(ITSELF.format(descriptor), 0)
        self._rights.note_changed(place.path)
        return Opened(descriptor, closes_on_exec=bool(flags & os.O_CLOEXEC))

    # Names

    def make_folder(self, call: HandedCall, at: int, path: bytes, mode: int) -> Result:
        place = call.place(at, path)
        if self._names.is_own(place.path):
            return LEFT_TO_KERNEL
        if place.found is not None:
            raise OSError(errno.EEXIST, "something is there")
        is_parent = self._names.is_parent(place.path)
        is_temporary = False if is_parent else self._rights.check_new(place)
        umask = call.umask()
        self._confirm(call)
        os.umask(umask)
        self._rights.announce(place, is_temporary=is_temporary)
        os.mkdir(place.name, mode & PERMISSIONS, dir_fd=place.folder)
        if is_parent:
            self._rights.note_parent_made(place)
        else:
            self._rights.note_made(place, _stat(place), is_temporary=is_temporary)
        return None

    def make_node(self, call: HandedCall, at: int, path: bytes) -> Result:
        """Pipes and devices: only in its own folder."""
        place = call.place(at, path)
        if self._names.is_own(place.path):
            return LEFT_TO_KERNEL
        if place.found is not None:
            raise OSError(errno.EEXIST, "something is there")
        raise self._rights.refusal(place.path)

    def make_symlink(self, call: HandedCall, target: bytes, at: int, path: bytes) -> Result:
        place = call.place(at, path)
        if self._names.is_own(place.path):
            return LEFT_TO_KERNEL
        if place.found is not None:
            raise OSError(errno.EEXIST, "something is there")
        if place.wants_folder:
            raise OSError(errno.ENOENT, "a folder is meant")
        is_temporary = self._rights.check_new(place)
        self._confirm(call)
        self._rights.announce(place, is_temporary=is_temporary)
        os.symlink(target, place.name, dir_fd=place.folder)
        self._rights.note_made(place, _stat(place), is_temporary=is_temporary)
        return None

    def link(self, call: HandedCall, old: CallPlace, new: CallPlace) -> Result:
        """A second name makes what it means readable there, so it must be readable where it is."""
        if self._names.is_own(new.path):
            return LEFT_TO_KERNEL
        if self._names.is_own(old.path):
            raise OSError(errno.EXDEV, "another file system, as far as the command can tell")
        if old.found is None:
            raise OSError(errno.ENOENT, "nothing is there")
        if new.found is not None:
            raise OSError(errno.EEXIST, "something is there")
        if old.is_folder or new.wants_folder:
            raise OSError(errno.EPERM, "folders have one name")
        is_temporary = self._rights.check_new(new)
        is_known = self._names.is_in_workspace(old.path) and self._names.may_be_read(old.path)
        if self._names.is_guarded(old.path) or not (is_known or self._rights.may_change(old)):
            raise self._rights.refusal(old.path)
        self._confirm(call)
        self._rights.announce(new, is_temporary=is_temporary)
        os.link(old.name, new.name, src_dir_fd=old.folder, dst_dir_fd=new.folder, follow_symlinks=False)
        self._rights.note_made(new, _stat(new), is_temporary=is_temporary)
        return None

    def rename(self, call: HandedCall, old: CallPlace, new: CallPlace, flags: int) -> Result:
        own = self._names.is_own(old.path), self._names.is_own(new.path)
        if all(own):
            return LEFT_TO_KERNEL
        if flags & ~(NO_REPLACE | EXCHANGE) or flags == NO_REPLACE | EXCHANGE:
            raise OSError(errno.EINVAL, "no such way to rename")
        if old.found is None or (flags & EXCHANGE and new.found is None):
            raise OSError(errno.ENOENT, "nothing is there")
        if flags & NO_REPLACE and new.found is not None:
            raise OSError(errno.EEXIST, "something is there")
        if old.is_dot or new.is_dot:
            raise OSError(errno.EBUSY, "not a name")
        if not old.is_folder and (old.wants_folder or new.wants_folder):
            raise OSError(errno.ENOTDIR, "no folder is there")
        if not flags & EXCHANGE and new.found is not None and old.is_folder != new.is_folder:
            raise OSError(errno.EISDIR if new.is_folder else errno.ENOTDIR, "a folder for a file")
        if any(own):
            raise OSError(errno.EXDEV, "another file system, as far as the command can tell")
        self._check_rename(old, new, exchanging=bool(flags & EXCHANGE))
        self._confirm(call)
        is_temporary = not self._names.is_declared(new.path) and not self._temporaries.is_below(new.path)
        self._rights.announce(new, is_temporary=is_temporary)
        words = old.folder, old.name, new.folder, new.name, flags
        syscall("rename", RENAMEAT2[os.uname().machine], *words)
        self._note_rename(old, new, is_temporary=is_temporary, exchanged=bool(flags & EXCHANGE))
        return None

    def _check_rename(self, old: CallPlace, new: CallPlace, *, exchanging: bool) -> None:
        self._rights.check_existing(old)
        comes_from_temporary = self._temporaries.means(old.path, old.found)
        if not self._names.is_declared(new.path):
            if not comes_from_temporary:
                raise self._rights.refusal(new.path)
            if new.found is None:
                self._rights.check_new(new)
            else:
                self._rights.check_existing(new)
        for place, other in ((old, new), (new, old)) if exchanging else ((old, new),):
            if place.is_folder and not (
                self._is_whole(old) and self._is_whole(new) and self._names.can_move(place.path, other.path)
            ):
                raise self._rights.refusal(place.path)

    def _is_whole(self, place: CallPlace) -> bool:
        """Whether a folder with all that is in it may be at this name."""
        return self._names.is_declared_tree(place.path) or not self._names.is_declared(place.path)

    def _note_rename(self, old: CallPlace, new: CallPlace, *, is_temporary: bool, exchanged: bool) -> None:
        if not exchanged:
            self._temporaries.forget(old.path)
        elif self._temporaries.means(old.path, old.found):
            self._temporaries.add(old.path, _stat(old))
        if is_temporary:
            self._temporaries.add(new.path, _stat(new))
        for place in (old, new):
            self._rights.note_renamed(place)

    def remove(self, call: HandedCall, at: int, path: bytes, flags: int) -> Result:
        place = call.place(at, path)
        is_folder = bool(flags & REMOVE_FOLDER)
        if self._names.is_own(place.path):
            return LEFT_TO_KERNEL
        if place.is_dot:
            raise OSError(errno.EINVAL if is_folder else errno.EISDIR, "not a name")
        if place.found is None:
            raise OSError(errno.ENOENT, "nothing is there")
        if place.wants_folder and not place.is_folder:
            raise OSError(errno.ENOTDIR, "no folder is there")
        if not (is_folder and self._rights.is_made_parent(place.path)):
            self._rights.check_existing(place)
        self._confirm(call)
        if is_folder:
            os.rmdir(place.name, dir_fd=place.folder)
        else:
            os.unlink(place.name, dir_fd=place.folder)
        self._temporaries.forget(place.path)
        self._rights.note_changed(place.path)
        return None


def _stat(place: CallPlace) -> os.stat_result:
    return os.stat(place.name, dir_fd=place.folder, follow_symlinks=False)
