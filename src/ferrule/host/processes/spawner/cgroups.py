"""A control group for all that commands start, where one can be made: a bound that neither root nor a fork escapes.

Where the system gives its user no group of their own, none is used; the
limits of single processes still apply.
"""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

PREFIX = "ferrule-"
TRIES = 3
"""To make a group which a spawner in another process namespace takes for one that was left."""
ROUNDS_OF_KILLING, PAUSE = 200, 0.002
FILES = {"": ("pids.max", "memory.max"), "pids": ("pids.max", ""), "memory": ("", "memory.limit_in_bytes")}
"""By controller, in the old arrangement, or none, in the new one: where processes and bytes are limited."""


def join(processes: int, memory: int) -> list[str]:
    """Groups that this process, and all below it, is in from now on; 0 means no limit."""
    made: list[str] = []
    for controller, place in _own_groups():
        names = FILES.get(controller)
        if names is None:
            continue
        limits = {name: value for name, value in zip(names, (processes, memory), strict=True) if name and value}
        above = [place] if controller or os.path.ismount(place) else [os.path.dirname(place), place]
        attempts = (_join_group(folder, limits) for folder in above for _ in range(TRIES))
        group = next(filter(None, attempts), "") if limits else ""
        made += [group] if group else []
    return made


def leave(groups: list[str]) -> None:
    """Back to the group above; the one that was joined is removed."""
    for group in groups:
        try:
            _write(os.path.join(os.path.dirname(group), "cgroup.procs"), os.getpid())
            os.rmdir(group)
        except OSError:
            continue  # an empty group is nobody's harm; the next spawner removes it


def end(group: str) -> bool:
    """Kills all that is in the group and removes it; whether it is gone. For the group of a spawner that died."""
    with suppress(OSError):
        _write(os.path.join(group, "cgroup.kill"), 1)
    for _ in range(ROUNDS_OF_KILLING):
        try:
            with open(os.path.join(group, "cgroup.procs"), "rb") as file:
                members = [*map(int, file.read().split())]
            if not members:
                os.rmdir(group)
        except FileNotFoundError:
            return True
        except OSError:
            members = []
        for pid in filter(None, members):
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(PAUSE)
    return False


def name_for(pid: int) -> str:
    """Of the group of a spawner: its number means something only where processes are numbered alike."""
    return f"{PREFIX}{os.stat('/proc/self/ns/pid').st_ino}-{pid}"


def _join_group(folder: str, limits: dict[str, int]) -> str:
    """The new group in the folder; an empty text where it could not be made, limited and entered."""
    group = os.path.join(folder, name_for(os.getpid()))
    try:
        _remove_old(folder)
        with suppress(FileExistsError):  # of one with the same number, long ago
            os.mkdir(group)
        for name, value in limits.items():
            _write(os.path.join(group, name), value)
        _write(os.path.join(group, "cgroup.procs"), os.getpid())
    except OSError:
        with suppress(OSError):
            os.rmdir(group)
        return ""
    return group


def _remove_old(folder: str) -> None:
    """Groups of spawners that were killed, with whatever outlived them. One that is alive may not be in its own yet."""
    common = name_for(0)[:-1]
    for name in os.listdir(folder):
        number = name.removeprefix(common)
        if name.startswith(common) and number.isdecimal() and not os.path.exists(f"/proc/{number}"):
            end(os.path.join(folder, name))


def _own_groups() -> Iterator[tuple[str, str]]:
    """Controllers, and where the group of this process lies; an empty name for the new arrangement."""
    mounts = dict(_mounts())
    with open("/proc/self/cgroup", encoding="utf-8", errors="surrogateescape") as file:
        for line in file.read().splitlines():
            _, controllers, path = line.split(":", 2)
            for controller in controllers.split(","):
                if controller in mounts:
                    root, point = mounts[controller]
                    inside = path.removeprefix(root.rstrip("/")) if path.startswith(root) else path
                    yield controller, os.path.normpath(f"{point}/{inside}")


def _mounts() -> Iterator[tuple[str, tuple[str, str]]]:
    with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as file:
        for line in file:
            fields, _, rest = line.partition(" - ")
            root, point = fields.split()[3:5]
            kind, _, options = rest.split(None, 2)
            if kind == "cgroup2":
                yield "", (root, point)
            elif kind == "cgroup":
                for controller in options.split()[0].split(","):
                    yield controller, (root, point)


def _write(path: str, value: int) -> None:
    """To a file that exists: a folder without it is not a group, or not one with this limit."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(descriptor, str(value).encode())
    finally:
        os.close(descriptor)
