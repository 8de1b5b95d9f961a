"""Files, opened so that nothing can hang and nothing but a file is read."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import stat
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from typing import BinaryIO, cast

from ...core.values import plain_value
from .held_folders import ChangedMeanwhile, hold_folder
from .text_files import NotText, TextDocument

PATIENCE = 1.0
"""Seconds to wait for whoever writes a file in place."""
MOST = 1 << 30
"""Bytes beyond which nothing is loaded: a sparse file or a window into memory can claim any size."""
MOST_UNSIZED = 16 << 20
"""Bytes to take from a file that says it has none, as those the kernel makes up do."""
HEAD = 128 << 10
"""Bytes to look at before it is known what a file holds; read at once, a small file needs no second look."""
STREAMS = frozenset({"/proc/kmsg", "/sys/kernel/tracing/trace_pipe", "/sys/kernel/debug/tracing/trace_pipe"})
"""What looks like a file, and is gone for everybody else once it was read."""
DIGEST = "sha256"
SAFELY = os.O_NONBLOCK | os.O_CLOEXEC | getattr(os, "O_NOCTTY", 0)


@plain_value
class FileIdentity:
    """Which file it was, and what it contained."""

    real_path: str
    device: int
    inode: int
    size: int
    mtime_ns: int
    mode: int
    links: int
    digest: str

    @classmethod
    def of(cls, real_path: str, status: os.stat_result, data: bytes, digest: str = "") -> FileIdentity:
        """`digest` is that of the data, where it is known already."""
        return cls(
            real_path=real_path,
            device=status.st_dev,
            inode=status.st_ino,
            size=len(data),
            mtime_ns=status.st_mtime_ns,
            mode=stat.S_IMODE(status.st_mode),
            links=status.st_nlink,
            digest=digest or digest_of(data),
        )


@plain_value
class OpenFile:
    """A regular file held open, with the beginning of its content."""

    real_path: str
    descriptor: int
    status: os.stat_result
    head: bytes
    complete: bool
    """Whether the head is all there is."""
    interrupted: Callable[[], bool] = bool
    """Asked between two pieces; who goes through a very large file in a thread must be able to stop."""

    def content(self, most: int = MOST) -> bytes:
        """All of it. Raises `NotText` where that is more than `most` bytes."""
        if self.status.st_size > most:
            raise TooLarge(f"it has {self.status.st_size:,} bytes, and at most {most:,} can be loaded")
        if self.complete:
            return self.head
        os.lseek(self.descriptor, 0, os.SEEK_SET)
        return _content(self.descriptor)

    def chunks(self) -> Iterator[bytes]:
        """All of it, a piece at a time, as it is on disk while it is read."""
        yield self.head
        os.lseek(self.descriptor, len(self.head), os.SEEK_SET)
        while chunk := os.read(self.descriptor, HEAD):
            if self.interrupted():
                raise InterruptedError(errno.EINTR, os.strerror(errno.EINTR), self.real_path)
            yield chunk


class TooLarge(NotText):
    """More than is loaded into memory."""


@plain_value
class FileSnapshot:
    document: TextDocument
    identity: FileIdentity


def read_document(path: str, *, judged: str | None = None, most: int = MOST) -> FileSnapshot:
    """The file with what it takes to change it later. Raises `NotText`, `ChangedMeanwhile` or `OSError`.

    Opened without blocking and looked at through the descriptor: a FIFO, a
    device or a directory is refused by what it is, whatever it is called.
    `judged` is the real path that somebody decided about: if `path` leads
    anywhere else by now, nothing is read. Nor is a file of more than `most` bytes: that is `TooLarge`.
    """
    with _open_where_judged(path, judged) as (real_path, descriptor):
        _wait_for_writer(descriptor)
        data = _content(descriptor, most)
        identity = FileIdentity.of(real_path, os.fstat(descriptor), data)
    return FileSnapshot(TextDocument.decode(data), identity)


@contextmanager
def open_file(path: str, *, judged: str | None = None, interrupted: Callable[[], bool] = bool) -> Generator[OpenFile]:
    """The file, to be read a piece at a time. Raises `NotText`, `ChangedMeanwhile` or `OSError`.

    Anything but a file is not even opened: that alone can wake a writer or wind a tape.
    """
    _require_file(os.stat(path))
    with _open_where_judged(path, judged) as (real_path, descriptor):
        status = os.fstat(descriptor)
        _require_file(status)
        if status.st_size:
            head = os.read(descriptor, HEAD)
            complete = len(head) < HEAD and len(head) >= status.st_size
        else:  # empty, or made up by the kernel while it is read
            head, complete = _content(descriptor), True
        yield OpenFile(real_path, descriptor, status, head, complete, interrupted)


@contextmanager
def _open_where_judged(path: str, judged: str | None) -> Generator[tuple[str, int]]:
    real_path = real_path_of(path, judged)
    if real_path in STREAMS:
        raise NotText("it is a stream of the kernel's messages")
    parent, name = os.path.split(real_path)
    with hold_folder(parent) as folder, open_for_reading(name or ".", folder, shown=path) as descriptor:
        yield real_path, descriptor


@contextmanager
def open_for_reading(path: str, folder: int | None = None, *, shown: str = "") -> Generator[int]:
    """A descriptor to read from; in a folder held open, no link is followed."""
    follow = 0 if folder is None else os.O_NOFOLLOW
    try:
        descriptor = os.open(path, os.O_RDONLY | follow | SAFELY, dir_fd=folder)
    except OSError as error:
        if error.errno == errno.ENXIO:  # what cannot be opened at all: a socket
            raise NotText(f"it is {kind_of(os.stat(path, dir_fd=folder).st_mode)}") from None
        if error.errno == errno.ELOOP and folder is not None:
            raise became_a_link(shown) from None
        raise
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _wait_for_writer(descriptor: int) -> None:
    """A file with several links is written in place: who writes it by `writing` holds a lock until it is whole."""
    if os.fstat(descriptor).st_nlink < 2:
        return
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(0.002)
        except OSError:
            return  # a file system without locks
        else:
            return


def _content(descriptor: int, most: int = MOST) -> bytes:
    status = os.fstat(descriptor)
    _require_file(status)
    if status.st_size > most:
        raise TooLarge(f"it has {status.st_size:,} bytes, and at most {most:,} can be loaded")
    with open(descriptor, "rb", closefd=False) as file:
        return file.read() if status.st_size else _read_unsized(file)


def _require_file(status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise NotText(f"it is {kind_of(status.st_mode)}")


def _read_unsized(file: BinaryIO) -> bytes:
    data = cast(bytes | None, file.read(MOST_UNSIZED + 1))
    if data is None or len(data) > MOST_UNSIZED:
        raise NotText("it is a stream")
    return data


def kind_of(mode: int) -> str:
    kinds = {
        stat.S_IFDIR: "a directory",
        stat.S_IFIFO: "a named pipe",
        stat.S_IFSOCK: "a socket",
        stat.S_IFCHR: "a device",
        stat.S_IFBLK: "a device",
    }
    return kinds.get(stat.S_IFMT(mode), "not a regular file")


def real_path_of(path: str, judged: str | None) -> str:
    """Where the path leads, which must be what was `judged` if anything was."""
    real_path = os.path.realpath(path)
    if judged is not None and real_path != judged:
        raise ChangedMeanwhile(
            f"{path} led to {judged} and leads to {real_path} now. Look at it again, then ask again."
        )
    if os.path.islink(real_path):
        raise OSError(errno.ELOOP, "it is a link that leads back to itself", path)
    return real_path


def digest_of(data: bytes) -> str:
    return hashlib.new(DIGEST, data).hexdigest()


def became_a_link(path: str) -> ChangedMeanwhile:
    return ChangedMeanwhile(f"{path} leads elsewhere since this was decided. Look where it leads, then ask again.")
