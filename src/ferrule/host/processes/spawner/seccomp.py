"""A system call filter, written out as a BPF program: what Landlock lets through.

Landlock says nothing of modes, owners, times and attributes of files, of UDP,
of unix sockets that have a path, and of the calls that make or undo mounts.
A refused call fails as "Operation not permitted".
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
from functools import lru_cache

from .syscalls import PR_SET_SECCOMP, prctl

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

# The numbers of each architecture, in the order x86_64, aarch64; 0 for a call that it does not have
METADATA = {
    "chmod": (90, 0),
    "fchmod": (91, 52),
    "fchmodat": (268, 53),
    "fchmodat2": (452, 452),
    "chown": (92, 0),
    "fchown": (93, 55),
    "lchown": (94, 0),
    "fchownat": (260, 54),
    "utime": (132, 0),
    "utimes": (235, 0),
    "futimesat": (261, 0),
    "utimensat": (280, 88),
    "setxattr": (188, 5),
    "lsetxattr": (189, 6),
    "fsetxattr": (190, 7),
    "removexattr": (197, 14),
    "lremovexattr": (198, 15),
    "fremovexattr": (199, 16),
    "setxattrat": (463, 463),
    "removexattrat": (466, 466),
    "file_setattr": (469, 469),
    "truncate": (76, 45),
}
"""Changes of a file that need no right to write it; `truncate` is Landlock's own only since version 3."""

NEVER = {
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "setns": (308, 268),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "open_tree_attr": (467, 467),
    "open_by_handle_at": (304, 265),
    "io_uring_setup": (425, 425),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "reboot": (169, 142),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "settimeofday": (164, 170),
    "clock_settime": (227, 112),
    "adjtimex": (159, 171),
    "clock_adjtime": (305, 266),
    "sethostname": (170, 161),
    "setdomainname": (171, 162),
    "acct": (163, 89),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "iopl": (172, 0),
    "ioperm": (173, 0),
}
"""What reaches around the sandbox or past this machine's files. io_uring makes calls that no filter sees."""

SHARED = {
    "shmget": (29, 194),
    "shmat": (30, 196),
    "shmctl": (31, 195),
    "shmdt": (67, 197),
    "semget": (64, 190),
    "semop": (65, 193),
    "semctl": (66, 191),
    "semtimedop": (220, 192),
    "msgget": (68, 186),
    "msgsnd": (69, 189),
    "msgrcv": (70, 188),
    "msgctl": (71, 187),
    "mq_open": (240, 180),
    "mq_unlink": (241, 181),
    "mq_timedsend": (242, 182),
    "mq_timedreceive": (243, 183),
    "mq_notify": (244, 184),
    "mq_getsetattr": (245, 185),
}
"""Memory, semaphores and queues that have a name outside all file systems, and outlive who made them."""

SIGNALS = {
    "tkill": (200, 130),
    "tgkill": (234, 131),
    "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240),
    "pidfd_send_signal": (424, 424),
}
"""With `kill`, all ways to signal another process, for kernels whose Landlock knows nothing of signals."""
SIGNALS_SINCE = 6
"""The version of Landlock that does."""

OF_OTHERS = {
    "prlimit64": ((302, 261), {0: 0}),
    "setpriority": ((141, 140), {0: 0, 1: 0}),
    "ioprio_set": ((251, 30), {0: 1, 1: 0}),
    "sched_setparam": ((142, 118), {0: 0}),
    "sched_setscheduler": ((144, 119), {0: 0}),
    "sched_setaffinity": ((203, 122), {0: 0}),
    "sched_setattr": ((314, 274), {0: 0}),
}
"""Calls that change any process of the same user, and what their arguments are where they change the caller."""

SOCKET = (41, 198)
SOCKETPAIR = (53, 199)
IOCTL = (16, 29)
KILL = (62, 129)
FCNTL = (72, 25)

UNIX, INET, INET6, NETLINK = 1, 2, 10, 16
SOCK_TYPE_MASK, SOCK_STREAM, SOCK_SEQPACKET = 0xF, 1, 5
TERMINAL_IOCTLS = (0x5412, 0x541C)
"""TIOCSTI and TIOCLINUX, which put words into somebody's terminal."""
FILE_IOCTL_KINDS = (0x66, 0x76, 0x58)
"""The letters f, v and X: flags, versions, encryption, freezing. Most of them work on a file open for reading."""
READING_IOCTLS = (0x80086601, 0x80046601, 0x80087601, 0x80047601, 0x801C581F, 0xC020660B)
"""Those of these kinds that only read: FS_IOC_GETFLAGS, GETVERSION, FSGETXATTR and FIEMAP."""
SET_LEASE = 1024
"""A lease on a file makes everybody else wait who opens it."""
SET_OWNER, OWNER_IOCTLS = (8, 15), (0x8901, 0x8902)
"""F_SETOWN, F_SETOWN_EX, FIOSETOWN and SIOCSPGRP: who gets a signal when a descriptor is ready."""

MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
"""The column of the tables, and the kernel's name of the architecture."""
X32 = 0x40000000

LOAD_WORD, JUMP_IF_EQUAL, JUMP_IF_ABOVE, JUMP_IF_AT_LEAST = 0x20, 0x15, 0x25, 0x35
AND, SHIFT_RIGHT, RETURN = 0x54, 0x74, 0x06
GROUP = 8
NUMBER, ARCHITECTURE, FIRST_ARGUMENT = 0, 4, 16
ALLOW, FAIL = 0x7FFF0000, 0x00050000
MODE_FILTER = 2


def is_supported() -> bool:
    return os.uname().machine in MACHINES


def prepare() -> None:
    """Writes out the filters that are asked for most, for the forks of this process to find."""
    if is_supported():
        for metadata in (False, True):
            program(os.uname().machine, metadata=metadata, network=False, unix_sockets=False)


def install(*, metadata: bool, network: bool, unix_sockets: bool, signals: bool = True) -> None:
    """For this process and all below it; it must have given up new privileges before.

    With `signals`, the filter does not restrict who may be signalled, which a newer Landlock does better.
    """
    code = program(os.uname().machine, metadata=metadata, network=network, unix_sockets=unix_sockets, signals=signals)
    content = ctypes.create_string_buffer(code, len(code))
    header = struct.pack("HxxxxxxP", len(code) // 8, ctypes.addressof(content))
    prctl("PR_SET_SECCOMP", PR_SET_SECCOMP, MODE_FILTER, header)


@lru_cache
def program(machine: str, *, metadata: bool, network: bool, unix_sockets: bool, signals: bool = True) -> bytes:
    """The filter for an architecture. Raises `OSError` for one whose numbers are not known."""
    if machine not in MACHINES:
        raise OSError(errno.ENOSYS, f"no system call filter is known for {machine}")
    column, architecture = MACHINES[machine]
    tables = [NEVER, *([] if metadata else [METADATA])]
    tables += [*([] if unix_sockets else [SHARED]), *([] if signals else [SIGNALS])]
    refused = sorted(numbers[column] for table in tables for numbers in table.values() if numbers[column])
    return b"".join(
        (
            *only_architecture(architecture, has_x32=machine == "x86_64"),
            *_sockets(column, network=network, unix_sockets=unix_sockets),
            *_ioctls(column, metadata=metadata, signals=signals),
            *_descriptors(column, signals=signals),
            *_others(column),
            *(() if signals else _kills(column)),
            *_refusals(refused),
            bpf_line(RETURN, ALLOW),
        )
    )


def only_architecture(architecture: int, *, has_x32: bool) -> Iterator[bytes]:
    """Calls by another architecture's numbers would mean something else, so they all fail."""
    yield bpf_line(LOAD_WORD, ARCHITECTURE)
    yield bpf_line(JUMP_IF_EQUAL, architecture, then=1)
    yield bpf_line(RETURN, FAIL | errno.ENOSYS)
    yield bpf_line(LOAD_WORD, NUMBER)
    if has_x32:  # the same architecture to the kernel, with a bit set in each number that the tables do not have
        yield bpf_line(JUMP_IF_AT_LEAST, X32, otherwise=1)
        yield bpf_line(RETURN, FAIL | errno.ENOSYS)


def _refusals(numbers: list[int]) -> Iterator[bytes]:
    """In groups, so that few instructions run: the kernel tries every call there is as it installs the filter.

    Each group is: skip the group if the number is larger than its last; one comparison for each number, which jumps
    to the refusal; allow, since the numbers are sorted and a smaller one is in no group to come; refuse.
    """
    for start in range(0, len(numbers), GROUP):
        group = numbers[start : start + GROUP]
        yield bpf_line(JUMP_IF_ABOVE, group[-1], then=len(group) + 2)
        for position, number in enumerate(group):
            yield bpf_line(JUMP_IF_EQUAL, number, then=len(group) - position)
        yield bpf_line(RETURN, ALLOW)
        yield bpf_line(RETURN, FAIL | errno.EPERM)


def _sockets(column: int, *, network: bool, unix_sockets: bool) -> Iterator[bytes]:
    families = [*((INET, INET6, NETLINK) if network else ()), *((UNIX,) if unix_sockets else ())]
    yield from lines_for_number(SOCKET[column], _allowing(families))
    if not unix_sockets:
        yield from lines_for_number(SOCKETPAIR[column], _refuse_unconnected_pairs())


def _allowing(families: Iterable[int]) -> list[bytes]:
    lines = [bpf_line(LOAD_WORD, FIRST_ARGUMENT)]
    for family in families:
        lines += (bpf_line(JUMP_IF_EQUAL, family, otherwise=1), bpf_line(RETURN, ALLOW))
    return [*lines, bpf_line(RETURN, FAIL | errno.EPERM)]


def _refuse_unconnected_pairs() -> list[bytes]:
    """A datagram socket of a pair can still be sent to any address, and a raw one is a datagram socket."""
    return [
        bpf_line(LOAD_WORD, FIRST_ARGUMENT),
        bpf_line(JUMP_IF_EQUAL, UNIX, otherwise=5),
        bpf_line(LOAD_WORD, FIRST_ARGUMENT + 8),
        bpf_line(AND, SOCK_TYPE_MASK),
        bpf_line(JUMP_IF_EQUAL, SOCK_STREAM, then=1),
        bpf_line(JUMP_IF_EQUAL, SOCK_SEQPACKET, otherwise=1),
        bpf_line(RETURN, ALLOW),
        bpf_line(RETURN, FAIL | errno.EPERM),
    ]


def _ioctls(column: int, *, metadata: bool, signals: bool) -> Iterator[bytes]:
    lines = [bpf_line(LOAD_WORD, FIRST_ARGUMENT + 8)]
    for request in (*TERMINAL_IOCTLS, *(() if signals else OWNER_IOCTLS)):
        lines += (bpf_line(JUMP_IF_EQUAL, request, otherwise=1), bpf_line(RETURN, FAIL | errno.EPERM))
    if not metadata:
        lines += file_ioctl_refusals()
    yield from lines_for_number(IOCTL[column], [*lines, bpf_line(RETURN, ALLOW)])


def file_ioctl_refusals() -> Iterator[bytes]:
    """For a request that is loaded: what changes attributes of a file is refused."""
    for request in READING_IOCTLS:
        yield bpf_line(JUMP_IF_EQUAL, request, otherwise=1)
        yield bpf_line(RETURN, ALLOW)
    yield bpf_line(SHIFT_RIGHT, 8)  # bits 8 to 15 of a request are the letter of its kind
    yield bpf_line(AND, 0xFF)
    for kind in FILE_IOCTL_KINDS:
        yield bpf_line(JUMP_IF_EQUAL, kind, otherwise=1)
        yield bpf_line(RETURN, FAIL | errno.EPERM)


def _descriptors(column: int, *, signals: bool) -> Iterator[bytes]:
    lines = [bpf_line(LOAD_WORD, FIRST_ARGUMENT + 8)]
    for request in (SET_LEASE, *(() if signals else SET_OWNER)):
        lines += (bpf_line(JUMP_IF_EQUAL, request, otherwise=1), bpf_line(RETURN, FAIL | errno.EPERM))
    yield from lines_for_number(FCNTL[column], [*lines, bpf_line(RETURN, ALLOW)])


def _others(column: int) -> Iterator[bytes]:
    """Limits, priorities and processors of oneself only."""
    for numbers, own in OF_OTHERS.values():
        lines: list[bytes] = []
        for argument, value in own.items():
            lines += (
                bpf_line(LOAD_WORD, FIRST_ARGUMENT + 8 * argument),
                bpf_line(JUMP_IF_EQUAL, value, then=1),
                bpf_line(RETURN, FAIL | errno.EPERM),
            )
        yield from lines_for_number(numbers[column], [*lines, bpf_line(RETURN, ALLOW)])


def _kills(column: int) -> Iterator[bytes]:
    """Only the caller's own group, which is the command's; or nobody, to see whether a process is there."""
    lines = [
        bpf_line(LOAD_WORD, FIRST_ARGUMENT),
        bpf_line(JUMP_IF_EQUAL, 0, then=2),
        bpf_line(LOAD_WORD, FIRST_ARGUMENT + 8),
        bpf_line(JUMP_IF_EQUAL, 0, otherwise=1),
        bpf_line(RETURN, ALLOW),
        bpf_line(RETURN, FAIL | errno.EPERM),
    ]
    yield from lines_for_number(KILL[column], lines)


def lines_for_number(number: int, lines: list[bytes]) -> Iterator[bytes]:
    """Instructions that end in a verdict, skipped for every other call.

    The call's number must be loaded before. The instructions may load something else, because they always return.
    """
    yield bpf_line(JUMP_IF_EQUAL, number, otherwise=len(lines))
    yield from lines


def bpf_line(code: int, value: int, *, then: int = 0, otherwise: int = 0) -> bytes:
    return struct.pack("=HBBI", code, then, otherwise, value)
