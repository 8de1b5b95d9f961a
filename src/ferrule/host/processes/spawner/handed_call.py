"""What a call that was handed over means: its strings, read once, and the places that its paths lead to.

A place is a folder held open and a name in it. The folder was opened by a path
that has no link in it, and whether something may be done there is decided by
that path; so no link that is put in the way afterwards leads anywhere else, nor
does a folder of the same name as another process sees it.
"""

from __future__ import annotations

import errno
import os
import resource
import stat
import struct

from .syscalls import AT_FDCWD, OPENAT2, RESOLVE_NO_SYMLINKS, syscall

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .notification import Notification

LONGEST_PATH = 4096
MOST_LINKS = 40
FOLDER = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC
WITHOUT_LINKS = struct.pack("=QQQ", FOLDER, 0, RESOLVE_NO_SYMLINKS)
STREAMS = {b"stdin": b"fd/0", b"stdout": b"fd/1", b"stderr": b"fd/2"}


class CallPlace:
    """A name in a folder that is held open. `path` is where that really is."""

    __slots__ = ("folder", "found", "is_dot", "name", "path", "wants_folder")

    def __init__(
        self, folder: int, name: bytes, path: bytes, *, wants_folder: bool = False, is_dot: bool = False
    ) -> None:
        self.folder = folder
        self.name = name
        self.path = path
        self.wants_folder = wants_folder
        """Its path ended in a slash."""
        self.is_dot = is_dot
        """Its path ended in `.` or `..`, or was that of the root."""
        self.found = _find(folder, name)

    @property
    def is_link(self) -> bool:
        return self.found is not None and stat.S_ISLNK(self.found.st_mode)

    @property
    def is_folder(self) -> bool:
        return self.found is not None and stat.S_ISDIR(self.found.st_mode)


class HandedCall:
    """A notification with its arguments as C means them. Descriptors that it opens are closed by `close`."""

    def __init__(self, notification: Notification) -> None:
        self.notification = notification
        self._task = notification.task
        self._open: list[int] = []

    def close(self) -> None:
        for descriptor in self._open:
            os.close(descriptor)
        self._open.clear()

    def keep(self, descriptor: int) -> int:
        """Closed with the rest."""
        self._open.append(descriptor)
        return descriptor

    def number(self, index: int) -> int:
        """An `int` argument; the upper half of its register means nothing."""
        value = self.notification.arguments[index] & 0xFFFFFFFF
        return value - (1 << 32) if value >> 31 else value

    def unsigned(self, index: int) -> int:
        return self.notification.arguments[index] & 0xFFFFFFFF

    def pointer(self, index: int) -> int:
        return self.notification.arguments[index]

    def memory(self, address: int, size: int) -> bytes:
        """At most that many bytes, fewer where the memory ends. Raises `OSError` for none."""
        if not 0 < address < 1 << 63:
            raise OSError(errno.EFAULT, "no such memory")
        descriptor = os.open(f"/proc/{self._task}/mem", os.O_RDONLY | os.O_CLOEXEC)
        try:
            return os.pread(descriptor, size, address)
        except OSError:
            raise OSError(errno.EFAULT, "no such memory") from None
        finally:
            os.close(descriptor)

    def text(self, index: int) -> bytes:
        """The path that an argument points to. Raises `OSError` as the kernel would."""
        content = self.memory(self.pointer(index), LONGEST_PATH)
        end = content.find(b"\0")
        if end < 0:
            raise OSError(errno.ENAMETOOLONG if len(content) == LONGEST_PATH else errno.EFAULT, "no end of the path")
        if end == 0:
            raise OSError(errno.ENOENT, "an empty path")
        return content[:end]

    def umask(self) -> int:
        with open(f"/proc/{self._task}/status", "rb", buffering=0) as file:
            head, _, rest = file.read(4096).partition(b"\nUmask:")
        return int(rest.split(None, 1)[0], 8) if head else 0o077

    def largest_file(self) -> int:
        """The most bytes that the caller may make a file; negative for as many as it likes."""
        return resource.prlimit(self._task, resource.RLIMIT_FSIZE)[0]

    def place(self, at: int, path: bytes) -> CallPlace:
        """Where a path of the caller leads, without following a link that its last name is. Raises `OSError`."""
        if path.startswith(b"/"):
            return self._place(_for_task(path, self._task))
        return self._place(self._base(at) + b"/" + path)

    def follow(self, place: CallPlace) -> CallPlace:
        """Where its links lead in the end; the same place for anything but a link. Raises `OSError` for a loop."""
        for _ in range(MOST_LINKS):
            if not place.is_link:
                return place
            if place.path.startswith(b"/proc/"):
                return self._behind_magic(place)
            target = os.readlink(place.name, dir_fd=place.folder)
            path = os.path.join(os.path.dirname(place.path), target)
            place = self._place(_for_task(path, self._task))
        raise OSError(errno.ELOOP, "too many links")

    def descriptor(self, number: int) -> tuple[int, bytes]:
        """What a descriptor of the caller means, held open, and its path; none where that means another file."""
        if number < 0:
            raise OSError(errno.EBADF, "no such descriptor")
        try:
            own = self.keep(os.open(f"/proc/{self._task}/fd/{number}", os.O_PATH | os.O_CLOEXEC))
        except FileNotFoundError:
            raise OSError(errno.EBADF, "no such descriptor") from None
        path = _path_of(own)
        try:
            is_there = os.path.samestat(os.lstat(path), os.fstat(own))
        except OSError:
            is_there = False
        return own, path if is_there else b""

    def _base(self, at: int) -> bytes:
        """The folder that a relative path starts from."""
        link = b"/proc/%d/cwd" % self._task if at == AT_FDCWD else b"/proc/%d/fd/%d" % (self._task, at)
        try:
            base = os.readlink(link)
        except FileNotFoundError:
            raise OSError(errno.EBADF, "no such descriptor") from None
        if not base.startswith(b"/"):
            raise OSError(errno.ENOTDIR, "not a folder")
        return base

    def _place(self, path: bytes) -> CallPlace:
        stripped = path.rstrip(b"/")
        head, _, name = stripped.rpartition(b"/")
        if name in (b"", b".", b".."):
            _, whole = self._folder(path)
            folder, above = self._folder(os.path.dirname(whole))
            return CallPlace(folder, os.path.basename(whole) or b".", whole, is_dot=True)
        folder, above = self._folder(head or b"/")
        return CallPlace(folder, name, os.path.join(above, name), wants_folder=stripped != path)

    def _folder(self, path: bytes) -> tuple[int, bytes]:
        """The folder held open, and its path without links."""
        try:
            return self.keep(_open_folder(path)), _plain(path)
        except OSError as error:
            if error.errno != errno.ELOOP:
                raise
        descriptor = os.open(path, FOLDER)
        try:
            path = _path_of(descriptor)
        finally:
            os.close(descriptor)
        return self.keep(_open_folder(path)), path

    def _behind_magic(self, place: CallPlace) -> CallPlace:
        """A link of /proc leads to a file, not to a name; its name is where that file is now."""
        own = self.keep(os.open(place.name, os.O_PATH | os.O_CLOEXEC, dir_fd=place.folder))
        path = _path_of(own)
        if not path.startswith(b"/") or not os.path.lexists(path):
            return place  # a pipe, or a file that has no name any more
        return self._place(path)


def _for_task(path: bytes, task: int) -> bytes:
    """What means the caller itself, named so that it does so from here too."""
    if not path.startswith((b"/proc/", b"/dev/")):
        return path
    parts = [part for part in path.split(b"/") if part]
    rest = b"/".join(parts[2:]) + (b"/" if path.endswith(b"/") else b"")
    if parts[:2] in ([b"proc", b"self"], [b"proc", b"thread-self"]):
        return b"/proc/%d/%s" % (task, rest)
    if parts[:2] == [b"dev", b"fd"]:
        return b"/proc/%d/fd/%s" % (task, rest)
    if len(parts) == 2 and parts[0] == b"dev" and parts[1] in STREAMS:
        return b"/proc/%d/%s" % (task, STREAMS[parts[1]])
    return path


def _open_folder(path: bytes) -> int:
    return syscall("open", OPENAT2, AT_FDCWD, path, WITHOUT_LINKS, len(WITHOUT_LINKS))


def _plain(path: bytes) -> bytes:
    """Without `..` and the like, which is the same folder in a path without links."""
    if b"//" in path or b"/." in path or path.endswith(b"/"):
        return b"/" + os.path.normpath(path).lstrip(b"/")
    return path


def _path_of(descriptor: int) -> bytes:
    return os.readlink(b"/proc/self/fd/%d" % descriptor)


def _find(folder: int, name: bytes) -> os.stat_result | None:
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None
