"""Landlock by system calls: where files may be written, and who may be signalled or connected to.

Only rights to change something are taken away; reading stays as it was. A rule
grants below its path and can take nothing back inside, so what is to be hidden
or protected in a granted tree needs `namespaces`.
"""

from __future__ import annotations

import os
import stat
import struct

from .syscalls import opened_without_links, syscall

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446  # alike on all architectures
ASK_FOR_VERSION = 1
PATH_BENEATH = 1

WRITE_FILE = 1 << 1
REMOVE_DIR, REMOVE_FILE = 1 << 4, 1 << 5
MAKE_CHAR, MAKE_DIR, MAKE_REG, MAKE_SOCK, MAKE_FIFO, MAKE_BLOCK, MAKE_SYM = (1 << bit for bit in range(6, 13))
REFER, TRUNCATE, IOCTL_DEV = 1 << 13, 1 << 14, 1 << 15
TCP = 1 << 0 | 1 << 1
ABSTRACT_SOCKETS, SIGNALS = 1 << 0, 1 << 1

LATEST = 6
"""The last version that brought rights which are used here."""
SINCE_VERSION_1 = WRITE_FILE | REMOVE_DIR | REMOVE_FILE | (MAKE_SYM << 1) - MAKE_CHAR
OF_A_FILE = WRITE_FILE | TRUNCATE | IOCTL_DEV

DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty")
"""What may be written though it is nobody's: programs fail without them."""


def version() -> int:
    """The version the kernel has; 0 where it has none."""
    try:
        return syscall("landlock_create_ruleset", CREATE_RULESET, None, 0, ASK_FOR_VERSION)
    except OSError:
        return 0


class Prepared:
    """A set of rules with all that is alike for most commands, made while nobody waits."""

    __slots__ = ("ruleset", "tcp", "version")

    def __init__(self, *, tcp: bool, version: int) -> None:
        self.tcp = tcp
        self.version = version
        self.ruleset = _ruleset(file_rights(version), tcp=tcp, version=version)
        for device in DEVICES:
            _grant(self.ruleset, device, file_rights(version))


def prepared() -> Prepared | None:
    """For the usual case: no network, all that the kernel has."""
    return Prepared(tcp=False, version=min(kernel, LATEST)) if (kernel := version()) else None


def confine(writable: Iterable[str], *, tcp: bool, version: int, prepared: Prepared | None) -> None:
    """From now on, for this process and all below it. A path that does not exist grants nothing."""
    version = min(version, LATEST)
    if prepared is None or (prepared.tcp, prepared.version) != (tcp, version):
        prepared = Prepared(tcp=tcp, version=version)
    for path in writable:
        _grant(prepared.ruleset, path, file_rights(version))
    syscall("landlock_restrict_self", RESTRICT_SELF, prepared.ruleset, 0)
    os.close(prepared.ruleset)


def file_rights(version: int) -> int:
    rights = SINCE_VERSION_1
    for since, right in ((2, REFER), (3, TRUNCATE), (5, IOCTL_DEV)):
        rights |= right if version >= since else 0
    return rights


def _ruleset(handled: int, *, tcp: bool, version: int) -> int:
    words = [handled]
    if version >= 4:
        words.append(0 if tcp else TCP)
    if version >= 6:
        words.append(ABSTRACT_SOCKETS | SIGNALS)
    attributes = struct.pack(f"={len(words)}Q", *words)
    ruleset = syscall("landlock_create_ruleset", CREATE_RULESET, attributes, len(attributes), 0)
    os.set_inheritable(ruleset, False)
    return ruleset


def _grant(ruleset: int, path: str, handled: int) -> None:
    try:
        descriptor = opened_without_links(path)
    except OSError:
        return
    is_folder = stat.S_ISDIR(os.fstat(descriptor).st_mode)
    rule = struct.pack("=Qi", handled if is_folder else handled & OF_A_FILE, descriptor)
    syscall("landlock_add_rule", ADD_RULE, ruleset, PATH_BENEATH, rule, 0)
    os.close(descriptor)
