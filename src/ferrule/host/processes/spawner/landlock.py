"""Landlock by system calls: what may be read and written, and who may be signalled or connected to.

A rule grants below its path and can take nothing back inside. What is hidden
in something readable is therefore left out of the grants (`read_grants`), or
covered by a mount (`namespaces`).
"""

from __future__ import annotations

import os
import stat
import struct

from .syscalls import open_without_links, syscall

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446  # alike on all architectures
ASK_FOR_VERSION = 1
PATH_BENEATH = 1

EXECUTE, WRITE_FILE, READ_FILE = 1 << 0, 1 << 1, 1 << 2
REMOVE_DIR, REMOVE_FILE = 1 << 4, 1 << 5
MAKE_CHAR, MAKE_DIR, MAKE_REG, MAKE_SOCK, MAKE_FIFO, MAKE_BLOCK, MAKE_SYM = (1 << bit for bit in range(6, 13))
REFER, TRUNCATE, IOCTL_DEV = 1 << 13, 1 << 14, 1 << 15
TCP = 1 << 0 | 1 << 1
ABSTRACT_SOCKETS, SIGNALS = 1 << 0, 1 << 1

LATEST = 6
"""The last version that added rights which are used here."""
READS_SINCE = 3
"""Before it a file that may be read could be emptied, so nobody is held to reading by an older one."""
READING = EXECUTE | READ_FILE
"""Contents only. Names, sizes and times of all files can be seen."""
SINCE_VERSION_1 = WRITE_FILE | REMOVE_DIR | REMOVE_FILE | (MAKE_SYM << 1) - MAKE_CHAR
OF_A_FILE = READING | WRITE_FILE | TRUNCATE | IOCTL_DEV

DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty")
"""Devices that every command may read and write: programs fail without them."""


def version() -> int:
    """The version the kernel has; 0 where it has none."""
    try:
        return syscall("landlock_create_ruleset", CREATE_RULESET, None, 0, ASK_FOR_VERSION)
    except OSError:
        return 0


class Rights:
    """What is taken away from a command, unless a rule grants it."""

    __slots__ = ("handled", "reading", "tcp", "version")

    def __init__(self, *, reading: bool, tcp: bool, version: int) -> None:
        """`reading` holds it to what may be read as well. Raises `OSError` where that needs a later version."""
        self.version = min(version, LATEST)
        self.reading = READING if reading else 0
        self.tcp = tcp
        if reading and version < READS_SINCE:
            raise OSError(f"Landlock {version} cannot hold a command to what it may read")
        self.handled = self.reading | file_rights(self.version)


def make_ruleset(
    rights: Rights, *, readable: Iterable[str], writable: Iterable[str], changeable: Iterable[str] = ()
) -> int:
    """A descriptor that `restrict` takes. What is `changeable` can be read only as far as it is `readable`.

    A path that is missing grants nothing.
    """
    ruleset = _new_ruleset(rights)
    for path in readable:
        grant(ruleset, path, rights.reading)
    for path in changeable:
        grant(ruleset, path, rights.handled & ~rights.reading)
    for path in (*DEVICES, *writable):
        grant(ruleset, path, rights.handled)
    return ruleset


def grant(ruleset: int, path: str, allowed: int) -> None:
    """These rights for the path and what lies below it; nothing where the path does not exist."""
    if not allowed:
        return
    try:
        descriptor = open_without_links(path)
    except OSError:
        return
    try:
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISLNK(mode):
            return
        rule = struct.pack("=Qi", allowed if stat.S_ISDIR(mode) else allowed & OF_A_FILE, descriptor)
        syscall("landlock_add_rule", ADD_RULE, ruleset, PATH_BENEATH, rule, 0)
    finally:
        os.close(descriptor)


def restrict(ruleset: int) -> None:
    """From now on, for this process and all below it."""
    syscall("landlock_restrict_self", RESTRICT_SELF, ruleset, 0)
    os.close(ruleset)


def file_rights(version: int) -> int:
    """The rights to change files that a version knows."""
    rights = SINCE_VERSION_1
    for since, right in ((2, REFER), (3, TRUNCATE), (5, IOCTL_DEV)):
        rights |= right if version >= since else 0
    return rights


def _new_ruleset(rights: Rights) -> int:
    words = [rights.handled]
    if rights.version >= 4:
        words.append(0 if rights.tcp else TCP)
    if rights.version >= 6:
        words.append(ABSTRACT_SOCKETS | SIGNALS)
    attributes = struct.pack(f"={len(words)}Q", *words)
    ruleset = syscall("landlock_create_ruleset", CREATE_RULESET, attributes, len(attributes), 0)
    os.set_inheritable(ruleset, False)
    return ruleset
