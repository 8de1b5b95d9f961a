"""Seccomp user notification: a filter that hands calls to another process, and that process's side of it.

The filter lies on top of the one in `seccomp`, whose refusals come first. What
it hands over waits until the listener answers; with the listener closed, every
such call fails as "Function not implemented".
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import struct
from contextlib import suppress
from functools import lru_cache

from .seccomp import (
    ALLOW,
    FAIL,
    FIRST_ARGUMENT,
    IOCTL,
    JUMP_IF_ABOVE,
    JUMP_IF_EQUAL,
    LOAD_WORD,
    MACHINES,
    METADATA,
    RETURN,
    bpf_line,
    file_ioctl_refusals,
    lines_for_number,
    only_architecture,
)
from .syscalls import syscall

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

# The numbers of each architecture, in the order x86_64, aarch64; 0 for a call that it does not have
OPENING = {"open": (2, 0), "openat": (257, 56)}
"""Handed over where they would write, create or empty something; for some commands always: see `holds_reading`."""
NAMING = {
    "creat": (85, 0),
    "rename": (82, 0),
    "renameat": (264, 38),
    "renameat2": (316, 276),
    "unlink": (87, 0),
    "unlinkat": (263, 35),
    "rmdir": (84, 0),
    "mkdir": (83, 0),
    "mkdirat": (258, 34),
    "mknod": (133, 0),
    "mknodat": (259, 33),
    "link": (86, 0),
    "linkat": (265, 37),
    "symlink": (88, 0),
    "symlinkat": (266, 36),
}
ATTRIBUTES = tuple(name for name in METADATA if "xattr" in name)
CANNOT_BE_CARRIED_OUT = {"openat2": (437, 437), "userfaultfd": (323, 282), "file_setattr": METADATA["file_setattr"]}
"""What `openat2` is to do lies in memory that may change meanwhile; pages of `userfaultfd` make their reader wait."""

SECCOMP = {"x86_64": 317, "aarch64": 277}
SET_MODE_FILTER = 1
NEW_LISTENER, WAIT_KILLABLE = 1 << 3, 1 << 5
"""A call that was taken up is not broken off by a signal, so that nothing is done twice."""
NOTIFY = 0x7FC00000
JUMP_IF_ANY_BIT = 0x45
WRITING = os.O_ACCMODE | os.O_CREAT | os.O_TRUNC
GROUP = 8

RECEIVE, SEND, IS_VALID, ADD_DESCRIPTOR, SET_FLAGS = 0xC0502100, 0xC0182101, 0x40082102, 0x40182103, 0x40082104
CONTINUE = 1
ADD_AND_SEND = 2
WAKE_ON_THE_SAME_CORE = 1
CALL = struct.Struct("=QIIiIQ6Q")
ANSWER = struct.Struct("=QqiI")
HANDED = struct.Struct("=QIIII")


class Notification:
    """One call that waits for its answer. `task` is the thread that made it."""

    __slots__ = ("arguments", "id", "number", "task")

    def __init__(self, content: bytes | bytearray) -> None:
        self.id, self.task, _, self.number, _, _, *self.arguments = CALL.unpack(content)


class Listener:
    """The end that takes calls and answers them."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        with suppress(OSError):  # since Linux 6.6; it only saves time
            fcntl.ioctl(descriptor, SET_FLAGS, WAKE_ON_THE_SAME_CORE)

    def fileno(self) -> int:
        return self._descriptor

    def close(self) -> None:
        os.close(self._descriptor)

    def receive(self) -> Notification | None:
        """The next call; `None` where the one that waited is gone."""
        content = bytearray(CALL.size)
        try:
            fcntl.ioctl(self._descriptor, RECEIVE, content)
        except OSError:
            return None
        return Notification(content)

    def is_valid(self, call: Notification) -> bool:
        """Whether it still waits, so that its thread's number still means this thread."""
        try:
            fcntl.ioctl(self._descriptor, IS_VALID, struct.pack("=Q", call.id))
        except OSError:
            return False
        return True

    def answer(self, call: Notification, error: int) -> None:
        """With an error's number, or 0 for done. One that no longer waits needs no answer."""
        self._send(ANSWER.pack(call.id, 0, -error, 0))

    def let_kernel_decide(self, call: Notification) -> None:
        """The call goes on as if nobody had asked. Its paths may be others by then, so only where Landlock refuses."""
        self._send(ANSWER.pack(call.id, 0, 0, CONTINUE))

    def hand_over(self, call: Notification, descriptor: int, *, closes_on_exec: bool) -> None:
        """A copy of the descriptor becomes the call's result. Raises `OSError` where the caller has no room."""
        flags = os.O_CLOEXEC if closes_on_exec else 0
        try:
            fcntl.ioctl(self._descriptor, ADD_DESCRIPTOR, HANDED.pack(call.id, ADD_AND_SEND, descriptor, 0, flags))
        except OSError as error:
            if error.errno != errno.ENOENT:
                raise

    def _send(self, content: bytes) -> None:
        with suppress(OSError):  # it no longer waits
            fcntl.ioctl(self._descriptor, SEND, content)


def prepare() -> None:
    """Writes out the filter and its table for the forks of this process to find."""
    machine = os.uname().machine
    if machine in MACHINES:
        notification_program(machine, reading=False)
        names_by_number(machine)


def install_listener(*, reading: bool) -> int:
    """Puts the filter on this process and all below it; the descriptor is for whoever answers."""
    machine = os.uname().machine
    code = notification_program(machine, reading=reading)
    content = ctypes.create_string_buffer(code, len(code))
    header = struct.pack("HxxxxxxP", len(code) // 8, ctypes.addressof(content))
    return syscall("seccomp", SECCOMP[machine], SET_MODE_FILTER, NEW_LISTENER | WAIT_KILLABLE, header)


@lru_cache
def names_by_number(machine: str) -> dict[int, str]:
    """What is handed over, by the number that the kernel gives."""
    column = MACHINES[machine][0]
    metadata = {name: numbers for name, numbers in METADATA.items() if not _is_refused(name)}
    tables = (OPENING, NAMING, metadata)
    return {numbers[column]: name for table in tables for name, numbers in table.items() if numbers[column]}


@lru_cache
def notification_program(machine: str, *, reading: bool) -> bytes:
    """The filter for an architecture, with opening for reading or without. Raises `OSError` for an unknown one."""
    if machine not in MACHINES:
        raise OSError(errno.ENOSYS, f"no system call filter is known for {machine}")
    column, architecture = MACHINES[machine]
    opening = {numbers[column]: name for name, numbers in OPENING.items() if numbers[column]}
    answers = {number: NOTIFY for number in names_by_number(machine) if reading or number not in opening}
    answers |= {METADATA[name][column]: FAIL | errno.ENOTSUP for name in ATTRIBUTES}
    answers |= {numbers[column]: FAIL | errno.ENOSYS for numbers in CANNOT_BE_CARRIED_OUT.values()}
    return b"".join(
        (
            *only_architecture(architecture, has_x32=machine == "x86_64"),
            *(line for number, name in opening.items() if not reading for line in _where_writing(number, name)),
            *_without_attributes(IOCTL[column]),
            *_answers(sorted(answers.items())),
            bpf_line(RETURN, ALLOW),
        )
    )


def _is_refused(name: str) -> bool:
    return name in ATTRIBUTES or name in CANNOT_BE_CARRIED_OUT


def _where_writing(number: int, name: str) -> Iterator[bytes]:
    flags = FIRST_ARGUMENT + 8 * (1 if name == "open" else 2)
    lines = [
        bpf_line(LOAD_WORD, flags),
        bpf_line(JUMP_IF_ANY_BIT, WRITING, otherwise=1),
        bpf_line(RETURN, NOTIFY),
        bpf_line(RETURN, ALLOW),
    ]
    return lines_for_number(number, lines)


def _without_attributes(number: int) -> Iterator[bytes]:
    loading = bpf_line(LOAD_WORD, FIRST_ARGUMENT + 8)
    return lines_for_number(number, [loading, *file_ioctl_refusals(), bpf_line(RETURN, ALLOW)])


def _answers(answers: list[tuple[int, int]]) -> Iterator[bytes]:
    """In groups, so that few instructions run for a call that is not among them."""
    for start in range(0, len(answers), GROUP):
        group = answers[start : start + GROUP]
        yield bpf_line(JUMP_IF_ABOVE, group[-1][0], then=2 * len(group) + 1)
        for number, answer in group:
            yield bpf_line(JUMP_IF_EQUAL, number, otherwise=1)
            yield bpf_line(RETURN, answer)
        yield bpf_line(RETURN, ALLOW)
