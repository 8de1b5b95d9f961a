"""A mount namespace in which all is read-only but what may be written, and what is hidden is covered.

Landlock cannot take back a part of what it grants; a mount on top of it can.
Root makes the namespace directly, anybody else inside a user namespace in
which they stay who they are.
"""

from __future__ import annotations

import errno
import os
import stat
import struct

from .landlock import DEVICES
from .syscalls import AT_FDCWD, mount, open_without_links, syscall, unshare

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .protocol import Jail

NEW_MOUNTS, NEW_USERS, NEW_PROCESSES = 0x00020000, 0x10000000, 0x20000000
MS_NOSUID, MS_NODEV, MS_BIND, MS_REC, MS_PRIVATE = 2, 4, 1 << 12, 1 << 14, 1 << 18
MOUNT_SETATTR = 442  # alike on all architectures
RECURSIVE = 0x8000
READ_ONLY, NO_DEVICES = 1, 4
SHARED_MEMORY = "/dev/shm"
NOWHERE, NOTHING = "nowhere", "nothing"


def make_covers(home: str) -> None:
    """An empty folder and an empty file that nobody may open, to lay over what is hidden."""
    if not os.path.exists(os.path.join(home, NOWHERE)):
        os.mkdir(os.path.join(home, NOWHERE), 0)
        os.close(os.open(os.path.join(home, NOTHING), os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0))


def enter(jail: Jail, scratch: str, home: str) -> list[str]:
    """What else may be written. The working directory must be entered again: the old one leads past the covers."""
    as_root = new_mounts()
    mount("none", "/", "none", MS_REC | MS_PRIVATE)
    everywhere = "/" in jail["writable"]
    if not everywhere:
        change_mount("/", add=READ_ONLY, recursive=True)
    if as_root and jail["hidden"]:
        _close_devices()
    for path in () if everywhere else (scratch, *jail["writable"]):
        _rebind(path, read_only=False)
    own_memory = [SHARED_MEMORY] if jail["metadata"] and not everywhere and os.path.isdir(SHARED_MEMORY) else []
    for folder in own_memory:
        mount("tmpfs", folder, "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777")
    protect(jail)
    cover_hidden(jail, home)
    return own_memory


def protect(jail: Jail) -> None:
    """What is protected is read-only, though it lies in something writable; what is reopened is not."""
    for path in jail["protected"]:
        _rebind(path, read_only=True)
    for path in jail["reopened"]:
        _rebind(path, read_only=False)


def cover_hidden(jail: Jail, home: str) -> None:
    if jail["hidden"]:
        covers = [f"/proc/self/fd/{open_without_links(os.path.join(home, name))}" for name in (NOWHERE, NOTHING)]
        for path in jail["hidden"]:
            _cover(path, *covers)


def new_mounts() -> bool:
    """Whether it needed no user namespace; in one, everybody stays who they are."""
    try:
        unshare(NEW_MOUNTS)
    except PermissionError:
        user, group = os.geteuid(), os.getegid()
        unshare(NEW_MOUNTS | NEW_USERS)
        stay(user, group)
        return False
    return True


def stay(user: int, group: int) -> None:
    """In a new user namespace, of which nobody knows yet who is who."""
    _write("/proc/self/setgroups", "deny")
    _write("/proc/self/uid_map", f"{user} {user} 1")
    _write("/proc/self/gid_map", f"{group} {group} 1")


def _close_devices() -> None:
    """Root could read what is hidden from the disk itself, so only the harmless devices stay open."""
    change_mount("/", add=NO_DEVICES, recursive=True)
    for device in DEVICES:
        if (place := _exact(device)) is not None:
            mount(place, place, "none", MS_BIND)
            change_mount(device, remove=NO_DEVICES)


def change_mount(path: str, *, add: int = 0, remove: int = 0, recursive: bool = False) -> None:
    change = struct.pack("=QQQQ", add, remove, 0, 0)
    flags = RECURSIVE if recursive else 0
    syscall(f"mount_setattr of {path}", MOUNT_SETATTR, AT_FDCWD, os.fsencode(path), flags, change, len(change))


def _rebind(path: str, *, read_only: bool) -> None:
    """The path mounted on itself. What is mounted below one that may be written stays read-only."""
    if (place := _exact(path)) is None:
        return
    mount(place, place, "none", MS_BIND | MS_REC)
    if read_only:
        change_mount(path, add=READ_ONLY, recursive=True)
    else:
        change_mount(path, remove=READ_ONLY)


def _cover(path: str, nowhere: str, nothing: str) -> None:
    if (place := _exact(path)) is None:
        return
    mount(nowhere if stat.S_ISDIR(os.stat(place).st_mode) else nothing, place, "none", MS_BIND)
    change_mount(path, add=READ_ONLY)


def _exact(path: str) -> str | None:
    """A name of the path that no swap of a link can redirect; `None` where there is nothing."""
    try:
        return f"/proc/self/fd/{open_without_links(path)}"
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR):
            return None
        raise


def _write(path: str, text: str) -> None:
    with open(path, "w", encoding="ascii") as file:
        file.write(text)
