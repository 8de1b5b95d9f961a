"""Who descends from whom, read from /proc."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


KERNEL_LISTS_CHILDREN = os.path.exists("/proc/thread-self/children")


def children_of(pid: int) -> list[int]:
    """Those of every thread. Zombies are among them."""
    if not KERNEL_LISTS_CHILDREN:
        return [child for child in all_pids() if _parent_of(child) == pid]
    found: list[int] = []
    for path in _lists_of_children(pid):
        try:
            with open(path, "rb", buffering=0) as file:
                found += map(int, file.read().split())
        except OSError:  # the thread ended meanwhile
            continue
    return found


def descendants_of(roots: Iterable[int]) -> list[int]:
    """The roots and all below them, parents first; what is made meanwhile may be missing."""
    ahead, found = list(roots), list[int]()
    seen = set(ahead)
    while ahead:
        pid = ahead.pop()
        found.append(pid)
        fresh = [child for child in children_of(pid) if child not in seen]
        seen.update(fresh)
        ahead += fresh
    return found


def all_pids() -> Iterator[int]:
    return (int(name) for name in os.listdir("/proc") if name.isdecimal())


def session_of(pid: int) -> int:
    try:
        return os.getsid(pid)
    except OSError:
        return 0


def has_variable(pid: int, variable: bytes) -> bool:
    """Whether a variable of its first environment starts so; `False` where nobody may look."""
    try:
        with open(f"/proc/{pid}/environ", "rb", buffering=0) as file:
            return b"\0" + variable in b"\0" + _whole(file.fileno())
    except OSError:
        return False


def name_of(pid: int) -> str:
    try:
        with open(f"/proc/{pid}/comm", "rb", buffering=0) as file:
            return file.read().decode("utf-8", "replace").strip()
    except OSError:
        return ""


def is_alive(pid: int) -> bool:
    """Neither gone nor a zombie."""
    return _stat(pid)[:1] not in (b"", b"Z", b"X")


def _lists_of_children(pid: int) -> Iterator[str]:
    try:
        threads = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return
    for thread in threads:
        yield f"/proc/{pid}/task/{thread}/children"


def _parent_of(pid: int) -> int:
    return int((_stat(pid).split()[1:2] or [b"0"])[0])


def _stat(pid: int) -> bytes:
    """What follows the name, which may hold anything: the state, the parent and so on."""
    try:
        with open(f"/proc/{pid}/stat", "rb", buffering=0) as file:
            return file.read().rpartition(b") ")[2]
    except OSError:
        return b""


def _whole(descriptor: int) -> bytes:
    parts: list[bytes] = []
    while part := os.read(descriptor, 1 << 16):
        parts.append(part)
    return b"".join(parts)
