"""Modes, owners and times, of which Landlock knows nothing: changed for a held command where it may."""

from __future__ import annotations

import errno
import os
import stat
import struct

from .handed_call import CallPlace, HandedCall
from .syscalls import AT_FDCWD, syscall

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from .name_rights import NameRights

SYMLINK_NOFOLLOW, EMPTY_PATH = 0x100, 0x1000
UTIMENSAT = {"x86_64": 280, "aarch64": 88}
PERMISSIONS = 0o1777
"""Modes are set without set-user-ID and set-group-ID."""
TIMES = struct.Struct("=4q")
ITSELF = "/proc/self/fd/{}"


class Target:
    """A file whose mode, owner or times are to change: held open, or a link by its place."""

    __slots__ = ("descriptor", "found", "path", "place")

    def __init__(self, descriptor: int, path: bytes, found: os.stat_result, place: CallPlace | None = None) -> None:
        self.descriptor = descriptor
        self.path = path
        self.found = found
        self.place = place

    @classmethod
    def of_path(cls, call: HandedCall, at: int, path: bytes, flags: int) -> Target:
        if not path and flags & EMPTY_PATH and at != AT_FDCWD:
            return cls.of_descriptor(call, at)
        place = call.place(at, path or b".")
        if not flags & SYMLINK_NOFOLLOW or place.wants_folder:
            place = call.follow(place)
        if place.found is None:
            raise OSError(errno.ENOENT, "nothing is there")
        if place.is_link:
            return cls(-1, place.path, place.found, place)
        opening = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = call.keep(os.open(place.name, opening, dir_fd=place.folder))
        return cls(descriptor, place.path, os.fstat(descriptor))

    @classmethod
    def of_descriptor(cls, call: HandedCall, number: int) -> Target:
        descriptor, path = call.descriptor(number)
        return cls(descriptor, path, os.fstat(descriptor))


class MetadataExecution:
    """For one command. Each method answers one kind of call and raises `OSError` for what fails."""

    def __init__(self, rights: NameRights, confirm: Callable[[HandedCall], None]) -> None:
        self._rights = rights
        self._confirm = confirm

    def change_mode(self, call: HandedCall, target: Target, mode: int) -> None:
        if target.place is not None:
            raise OSError(errno.EOPNOTSUPP, "links have no mode")
        self._check_target(call, target)
        os.chmod(ITSELF.format(target.descriptor), mode & PERMISSIONS)
        self._rights.note_changed(target.path)

    def change_owner(self, call: HandedCall, target: Target, user: int, group: int) -> None:
        self._check_target(call, target)
        if target.place is not None:
            os.chown(target.place.name, user, group, dir_fd=target.place.folder, follow_symlinks=False)
        else:
            os.chown(ITSELF.format(target.descriptor), user, group)
        self._rights.note_changed(target.path)

    def change_times(self, call: HandedCall, target: Target, times: bytes | None) -> None:
        self._check_target(call, target)
        if target.place is not None:
            words = target.place.folder, target.place.name, times, SYMLINK_NOFOLLOW
        else:
            words = AT_FDCWD, ITSELF.format(target.descriptor).encode(), times, 0
        syscall("utimensat", UTIMENSAT[os.uname().machine], *words)
        self._rights.note_changed(target.path)

    def _check_target(self, call: HandedCall, target: Target) -> None:
        self._confirm(call)
        if self._rights.names.is_own(target.path):
            return
        found = target.found
        if stat.S_ISREG(found.st_mode) and found.st_nlink == 0:
            return  # nobody else can find it
        declared = self._rights.names.is_declared(target.path) or self._rights.is_made_parent(target.path)
        if not (declared or self._rights.temporaries.means(target.path, found)):
            raise self._rights.refusal(target.path, errno.EPERM)
        if not (stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode) or stat.S_ISLNK(found.st_mode)):
            raise self._rights.refusal(target.path, errno.EPERM)
        if stat.S_ISREG(found.st_mode):
            self._rights.check_alone(found, target.path)
