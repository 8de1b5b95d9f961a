"""The world as a held command sees it: all read-only, over each workspace folder a layer that takes its changes."""

from __future__ import annotations

import errno
import os

from .namespaces import (
    MS_BIND,
    MS_NODEV,
    MS_NOSUID,
    MS_PRIVATE,
    MS_REC,
    NEW_MOUNTS,
    NEW_PROCESSES,
    NEW_USERS,
    READ_ONLY,
    SHARED_MEMORY,
    change_mount,
    cover_hidden,
    protect,
    stay,
)
from .syscalls import PR_SET_DUMPABLE, detach, fork_into, mount, open_without_links, prctl

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .protocol import Jail

PLAIN_LAYERS = "redirect_dir=nofollow,metacopy=off,index=off,volatile"
"""A layer then says all by itself: whole files, whiteouts, opaque folders. Taking it down writes nothing to disk."""
NO_LAYER_THERE = (errno.EINVAL, errno.ELOOP, errno.EOPNOTSUPP)
"""Where the layer would lie on an overlay itself, or inside what it is to be laid over."""
OWN, MEMORY, UPPER, WORK = "own", "memory", "upper", "work"
LARGEST_SHARE = 4
"""The part of the machine's memory that a layer in memory may take is 1 / this."""


class LayerPlace:
    """Where the layers of one command lie, one for each workspace folder, and its temporary folder beside them."""

    def __init__(self, folder: str, roots: list[str]) -> None:
        self.folder = folder
        self.own = os.path.join(folder, OWN)
        self.memory = os.path.join(folder, MEMORY)
        self.roots = outermost(roots)

    def make(self) -> None:
        """On disk, as far as it is known before the kernel was asked. Raises `OSError`."""
        os.mkdir(self.folder, 0o700)
        for path in (self.own, self.memory):
            os.mkdir(path, 0o700)
        self.make_layers(self.folder)

    def make_layers(self, folder: str) -> None:
        for number in range(len(self.roots)):
            for path in (str(number), f"{number}/{UPPER}", f"{number}/{WORK}"):
                os.mkdir(os.path.join(folder, path), 0o700)

    def layer(self, number: int) -> str:
        """Where it lies on disk."""
        return os.path.join(self.folder, str(number))


def outermost(folders: list[str]) -> list[str]:
    """Those that lie in none of the others."""
    kept: list[str] = []
    for folder in sorted(set(folders)):
        if not any(folder.startswith(one.rstrip("/") + "/") for one in kept):
            kept.append(folder)
    return kept


def fork_inside() -> tuple[int, tuple[int, int] | None]:
    """The first process of a process namespace, in which layers can be mounted: with it all others end.

    Its number, 0 in the process itself; and, where that took a user namespace, the ids to map in it, as user and
    group. Raises `OSError`, in the parent only.
    """
    user, group = os.geteuid(), os.getegid()
    try:
        return fork_into(NEW_MOUNTS | NEW_PROCESSES), None
    except PermissionError:
        return fork_into(NEW_MOUNTS | NEW_PROCESSES | NEW_USERS), (user, group)


def settle(who: tuple[int, int] | None) -> None:
    """In a new user namespace everybody stays who they are. Raises `OSError`: root without powers may not say so."""
    if who is not None:
        prctl("PR_SET_DUMPABLE", PR_SET_DUMPABLE, 1)  # else its own files in /proc are not its own
        stay(*who)


def enter(jail: Jail, place: LayerPlace, home: str, *, as_root: bool) -> tuple[dict[int, int], list[str]]:
    """Makes the mounts. Returns the layers that lie in memory, by number, and what else may be written.

    The working directory, and every descriptor from before, leads past the layers. Raises `OSError`.
    """
    mount("none", "/", "none", MS_REC | MS_PRIVATE)
    own = open_without_links(place.own)
    in_memory = _lay_over(place, as_root=as_root)
    shared = [SHARED_MEMORY] if os.path.isdir(SHARED_MEMORY) else []
    for path in shared:
        mount("tmpfs", path, "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777")
    mount(f"/proc/self/fd/{own}", place.own, "none", MS_BIND)
    change_mount("/", add=READ_ONLY, recursive=True)
    for path in (*place.roots, place.own, *shared):
        change_mount(path, remove=READ_ONLY)
    protect(jail)
    cover_hidden(jail, home)
    return in_memory, shared


def show_own_processes() -> None:
    """In the first process of the namespace. A container that masks its /proc gets no new one."""
    try:
        mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | READ_ONLY)
    except PermissionError:
        return


def _lay_over(place: LayerPlace, *, as_root: bool) -> dict[int, int]:
    """A layer over each folder. Returns those that had to lie in memory, by the folder's number."""
    below = [one for root in place.roots for one in _mounts_below(root)]
    lowers = [open_without_links(root) for root in place.roots]
    on_disk = open_without_links(place.folder)
    memory: int | None = None
    uppers: dict[int, int] = {}
    for number, (root, lower) in enumerate(zip(place.roots, lowers, strict=True)):
        try:
            _mount_layer(lower, root, on_disk, number, as_root=as_root)
        except OSError as error:
            if error.errno not in NO_LAYER_THERE:
                raise
            memory = _memory_for(place) if memory is None else memory
            uppers[number] = os.open(f"{number}/{UPPER}", os.O_RDONLY | os.O_DIRECTORY, dir_fd=memory)
            _mount_layer(lower, root, memory, number, as_root=as_root)
    if (
        memory is not None
    ):  # nobody reaches it by its path then, and it stays writable for who carries over what is there
        detach(f"/proc/self/fd/{memory}")
    for path, descriptor in below:
        mount(f"/proc/self/fd/{descriptor}", path, "none", MS_BIND | MS_REC)
    return uppers


def _memory_for(place: LayerPlace) -> int:
    size = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // LARGEST_SHARE
    mount("tmpfs", place.memory, "tmpfs", MS_NOSUID | MS_NODEV, f"size={size},mode=700")
    place.make_layers(place.memory)
    return open_without_links(place.memory)


def _mount_layer(lower: int, root: str, folder: int, number: int, *, as_root: bool) -> None:
    upper, work = (os.open(f"{number}/{name}", os.O_PATH | os.O_DIRECTORY, dir_fd=folder) for name in (UPPER, WORK))
    about = os.stat(lower)
    os.chmod(f"/proc/self/fd/{upper}", about.st_mode & 0o7777)
    if as_root:
        os.chown(f"/proc/self/fd/{upper}", about.st_uid, about.st_gid)
    folders = f"lowerdir=/proc/self/fd/{lower},upperdir=/proc/self/fd/{upper},workdir=/proc/self/fd/{work}"
    notes = "" if as_root else ",userxattr"
    try:
        mount("overlay", root, "overlay", MS_NOSUID | MS_NODEV, f"{folders},{PLAIN_LAYERS}{notes}")
    finally:
        os.close(upper)
        os.close(work)


def _mounts_below(folder: str) -> list[tuple[str, int]]:
    """What is mounted below, which a layer would cover; it comes back, and is read-only then."""
    with open("/proc/self/mountinfo", "rb", buffering=0) as file:
        table = b"".join(iter(lambda: file.read(1 << 16), b""))
    start = b" " + _escape(folder.rstrip("/") + "/")
    if start not in table:
        return []
    points = [_unescape(point) for line in table.splitlines() if (b" " + (point := line.split()[4])).startswith(start)]
    return [(point, open_without_links(point)) for point in outermost(points)]


def _escape(path: str) -> bytes:
    """As the kernel writes it in its tables."""
    return b"".join(b"\\%03o" % byte if byte in b" \t\n\\" else bytes([byte]) for byte in os.fsencode(path))


def _unescape(point: bytes) -> str:
    return os.fsdecode(point.decode("unicode_escape").encode("latin-1"))
