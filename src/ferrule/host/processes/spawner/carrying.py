"""What a command left in its layers, and the carrying over of that part which was declared.

A name is changed in one step (a move, or a copy beside it and then a move), so
nobody sees half of a file, and another hard link of the same file keeps what it
held. Which names will change is noted before the first one does.
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import contextmanager, suppress
from itertools import islice

from .declarations import Declarations
from .protocol import MOST_CHANGES
from .syscalls import open_beneath

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from .protocol import Changed, Jail

FEW, LITTLE = 100, 4 << 20
"""Changes, and bytes to be copied, up to which nobody else waits long while they are carried over."""
TRUSTED, USER = "trusted.overlay.", "user.overlay."
"""Where the kernel makes its own notes in a layer: as root, and in a user namespace."""
RUNS_AS_ANOTHER = "security.capability"
ORDINARY = (0, stat.S_IFREG, stat.S_IFDIR, stat.S_IFLNK)
"""Everything else (pipes, sockets, devices) is never carried over; 0 is for what is gone."""
KEPT_MODE, KEPT_FOLDER_MODE = 0o777, 0o1777
MADE, CHANGED, REMOVED, ATTRIBUTES = "made", "changed", "removed", "attributes"
CHUNK = 1 << 20


class LayerChange:
    """One name below a workspace folder that is not as it was."""

    __slots__ = ("kind", "mode", "path", "size", "untouched")

    def __init__(self, path: str, kind: str, mode: int = 0, size: int = 0, *, untouched: bool = False) -> None:
        self.path = path
        self.kind = kind
        self.mode = mode
        """As the command left it; 0 for what is gone."""
        self.size = size
        self.untouched = untouched
        """Opened for writing, but with the same mode, owner, size and time as before."""


class Layer:
    """What a command changed below one workspace folder, which may be read once."""

    def __init__(self, root: str, upper: int, *, in_memory: bool) -> None:
        """Takes over the descriptor of the layer. Raises `OSError`."""
        self.root = root
        self.upper = upper
        self.in_memory = in_memory
        self.lower = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW)
        self._opaque = (USER if os.geteuid() else TRUSTED) + "opaque"

    def close(self) -> None:
        os.close(self.upper)
        os.close(self.lower)

    def changes(self, folder: str = "", *, replaced: bool = False) -> Iterator[LayerChange]:
        """Folders before what is in them. Gives itself the rights to look into the layer's own."""
        with _open(self.upper, folder) as upper, _open(self.lower, folder) as lower:
            if upper is None:
                return
            names = sorted(os.listdir(upper))
            for name in names:
                path = f"{folder}/{name}" if folder else name
                new, old = _stat(name, upper), _stat(name, lower)
                if new is None:
                    continue
                if stat.S_ISCHR(new.st_mode) and new.st_rdev == 0:
                    yield from [LayerChange(path, REMOVED)] if old is not None else []
                elif stat.S_ISDIR(new.st_mode):
                    yield from self._folder(path, new, old, upper, replaced=replaced)
                else:
                    yield LayerChange(
                        path, MADE if old is None else CHANGED, new.st_mode, new.st_size, untouched=_same(new, old)
                    )
            if replaced and lower is not None:
                gone = sorted({*os.listdir(lower)}.difference(names))
                yield from (LayerChange(f"{folder}/{name}", REMOVED) for name in gone)

    def _folder(
        self, path: str, new: os.stat_result, old: os.stat_result | None, upper: int, *, replaced: bool
    ) -> Iterator[LayerChange]:
        if old is None or not stat.S_ISDIR(old.st_mode):
            yield LayerChange(path, MADE if old is None else CHANGED, new.st_mode)
        elif new.st_mode != old.st_mode:
            yield LayerChange(path, ATTRIBUTES, new.st_mode)
        name = os.path.basename(path)
        os.chmod(name, 0o700, dir_fd=upper)
        notes = os.listxattr(f"/proc/self/fd/{upper}/{name}", follow_symlinks=False)
        yield from self.changes(path, replaced=replaced or self._opaque in notes)


class Carrying:
    """All that is left to do for a command whose processes are gone."""

    def __init__(self, jail: Jail, layers: list[Layer], *, since: int, note: str) -> None:
        """Files that changed after `since` (nanoseconds) are somebody else's. `note` is the file for the list."""
        self._declared = Declarations(jail, [layer.root for layer in layers])
        self._layers = layers
        self._since = since
        self._note = note
        self._read: list[tuple[Layer, LayerChange]] = []
        self._rest = ((layer, change) for layer in layers for change in layer.changes())
        self._token = os.urandom(6).hex()
        self._changed: Changed = {"done": [], "dropped": [], "failed": [], "refused": [], "totals": {}}

    def is_short(self) -> bool:
        """Whether nobody will wait long for it."""
        self._read = list(islice(self._rest, FEW))
        copied = sum(change.size for layer, change in self._read if layer.in_memory)
        return len(self._read) < FEW and copied < LITTLE

    def carry(self) -> Changed:
        """Removals last: a move that is cut short leaves two files."""
        wanted = [one for one in (*self._read, *self._rest) if self._sort_out(*one)]
        if wanted:
            self._take_down(wanted)
            removed = [one for one in reversed(wanted) if one[1].kind == REMOVED]
            folders: list[tuple[Layer, LayerChange]] = []
            for layer, change in [one for one in wanted if one[1].kind != REMOVED] + removed:
                if self._carry(layer, change) and stat.S_ISDIR(change.mode):
                    folders.append((layer, change))
            for layer, change in reversed(folders):  # one that may not be written is filled by now
                with _open(layer.lower, change.path) as folder:
                    if folder is not None:
                        os.fchmod(folder, change.mode & KEPT_FOLDER_MODE)
            os.unlink(self._note)
        self.close()
        return self._changed

    def close(self) -> None:
        for layer in self._layers:
            layer.close()

    def _sort_out(self, layer: Layer, change: LayerChange) -> bool:
        """Whether it is to be carried over; if not, it is reported, unless nothing changed."""
        path = os.path.join(layer.root, change.path)
        makes_folder = change.kind == MADE and stat.S_ISDIR(change.mode)
        allowed = self._declared.allow(path, makes_folder=makes_folder)
        if allowed and stat.S_IFMT(change.mode) in ORDINARY:
            return True
        if not change.untouched and self._count("dropped"):
            self._changed["dropped"].append(path)
        return False

    def _take_down(self, wanted: list[tuple[Layer, LayerChange]]) -> None:
        paths = (os.path.join(layer.root, change.path) for layer, change in wanted)
        with open(self._note, "xb") as file:
            file.write(b"\0".join(map(os.fsencode, (self._token, *paths))))

    def _carry(self, layer: Layer, change: LayerChange) -> bool:
        path = os.path.join(layer.root, change.path)
        try:
            self._carry_one(layer, change, path)
        except (OSError, RecursionError) as error:
            if self._count("failed"):
                why = error.strerror if isinstance(error, OSError) else "there is too much below it"
                self._changed["failed"].append((path, why or str(error)))
            return False
        if self._count("done"):
            self._changed["done"].append(path)
        return True

    def _count(self, kind: str) -> bool:
        """Whether there is room to name another one of this kind."""
        totals = self._changed["totals"]
        totals[kind] = totals.get(kind, 0) + 1
        return totals[kind] <= MOST_CHANGES

    def _carry_one(self, layer: Layer, change: LayerChange, path: str) -> None:
        folder, name = os.path.split(change.path)
        with _open(layer.lower, folder) as target, _open(layer.upper, folder) as source:
            if target is None:
                raise OSError(errno.ENOENT, "its folder was not declared, or is gone")
            old = _stat(name, target)
            if old is not None and not stat.S_ISDIR(old.st_mode):
                self._check_time(old)
            if change.kind == REMOVED:
                if old is not None:
                    self._remove(target, name, path)
            elif stat.S_ISDIR(change.mode):
                _make_folder(target, name, old)
            elif source is not None:
                if old is not None and stat.S_ISDIR(old.st_mode):
                    self._remove(target, name, path)
                self._place(source, target, name)

    def _check_time(self, found: os.stat_result) -> None:
        if found.st_ctime_ns > self._since:
            raise OSError(errno.EBUSY, "somebody else changed it meanwhile")

    def _remove(self, target: int, name: str, path: str) -> None:
        """With all in it, or nothing of it: the whole is looked at before anything goes."""
        if self._is_folder(target, name):
            self._look_through(target, name, path)
        _remove_tree(target, name)

    def _look_through(self, target: int, name: str, path: str) -> None:
        with _open(target, name) as folder:
            if folder is None:
                return
            for inner in os.listdir(folder):
                inside = f"{path}/{inner}"
                if self._declared.protect(inside):
                    raise OSError(errno.EPERM, f"{inside} is protected")
                if not self._declared.allow(inside):
                    raise OSError(errno.EPERM, f"{inside} was not declared")
                if self._is_folder(folder, inner):
                    self._look_through(folder, inner, inside)
                elif (found := _stat(inner, folder)) is not None:
                    self._check_time(found)

    @staticmethod
    def _is_folder(target: int, name: str) -> bool:
        return (found := _stat(name, target)) is not None and stat.S_ISDIR(found.st_mode)

    def _place(self, source: int, target: int, name: str) -> None:
        """Moved where the layer lies on the same mount; copied beside the place and moved there otherwise."""
        new = os.stat(name, dir_fd=source, follow_symlinks=False)
        if stat.S_ISREG(new.st_mode):
            _strip(source, name, new.st_mode)
        try:
            return os.rename(name, name, src_dir_fd=source, dst_dir_fd=target)
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
        beside = f".ferrule-{self._token}.tmp"
        try:
            _copy(source, name, target, beside, new)
            os.rename(beside, name, src_dir_fd=target, dst_dir_fd=target)
        except OSError:
            with suppress(OSError):
                os.unlink(beside, dir_fd=target)
            raise


def read_interrupted(note: str) -> list[str]:
    """The names that were being changed when a carrying was cut short; what it left beside them is removed."""
    with open(note, "rb") as file:
        token, *paths = map(os.fsdecode, file.read().split(b"\0"))
    for folder in {os.path.dirname(path) for path in paths}:
        with suppress(OSError):
            os.unlink(os.path.join(folder, f".ferrule-{token}.tmp"))
    return paths


def _same(new: os.stat_result, old: os.stat_result | None) -> bool:
    if old is None:
        return False
    return all(
        getattr(new, mark) == getattr(old, mark) for mark in ("st_mode", "st_uid", "st_gid", "st_size", "st_mtime_ns")
    )


def _make_folder(target: int, name: str, old: os.stat_result | None) -> None:
    """For oneself alone until it is filled; its own mode comes last. One that is there stays."""
    if old is not None and stat.S_ISDIR(old.st_mode):
        return
    if old is not None:
        os.unlink(name, dir_fd=target)
    os.mkdir(name, 0o700, dir_fd=target)


def _remove_tree(target: int, name: str) -> None:
    with suppress(IsADirectoryError):
        os.unlink(name, dir_fd=target)
        return
    with _open(target, name) as folder:
        if folder is not None:
            for inner in os.listdir(folder):
                _remove_tree(folder, inner)
    os.rmdir(name, dir_fd=target)


def _strip(source: int, name: str, mode: int) -> None:
    """Takes away the kernel's own notes and whatever would make the file run as somebody else."""
    path = f"/proc/self/fd/{source}/{name}"
    notes = [key for key in os.listxattr(path) if key.startswith((TRUSTED, USER, RUNS_AS_ANOTHER))]
    if notes:
        os.chmod(path, 0o600)
        for key in notes:
            os.removexattr(path, key)
    if notes or mode & ~KEPT_MODE:
        os.chmod(path, mode & KEPT_MODE)


def _copy(source: int, name: str, target: int, beside: str, new: os.stat_result) -> None:
    """With mode, owner, times and attributes."""
    if stat.S_ISLNK(new.st_mode):
        os.symlink(os.readlink(name, dir_fd=source), beside, dir_fd=target)
        return
    reading = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=source)
    try:
        writing = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600, dir_fd=target)
        try:
            copied = 0
            while part := os.sendfile(writing, reading, copied, CHUNK):
                copied += part
            for key in os.listxattr(reading):
                with suppress(OSError):  # not every file system takes every attribute
                    os.setxattr(writing, key, os.getxattr(reading, key))
            if (new.st_uid, new.st_gid) != (os.geteuid(), os.getegid()):
                os.fchown(writing, new.st_uid, new.st_gid)
            os.fchmod(writing, new.st_mode & KEPT_MODE)
            os.utime(writing, ns=(new.st_atime_ns, new.st_mtime_ns))
        finally:
            os.close(writing)
    finally:
        os.close(reading)


@contextmanager
def _open(folder: int, path: str) -> Generator[int | None]:
    """A folder below another, no link followed; `None` where there is none."""
    try:
        descriptor = open_beneath(folder, path, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
            raise
        yield None
        return
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _stat(name: str, folder: int | None) -> os.stat_result | None:
    if folder is None:
        return None
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None
