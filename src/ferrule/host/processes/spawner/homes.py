"""The folders of spawners: each is locked while its spawner lives, and what is left of a dead one is cleared away."""

from __future__ import annotations

import fcntl
import os
import time
from contextlib import suppress

from . import cgroups
from .carriers import NOTE
from .carrying import read_interrupted
from .clearing import spawn_removal
from .temporaries import has_lists, remove_left_behind

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

PREFIX = "ferrule-run-"
GROUPS = "groups"
"""The file that names the control groups of the spawner's commands."""
NEW = 60.0
"""Seconds for which a folder may be on its way to its lock."""


def lock(home: str) -> int:
    """A descriptor that says, for as long as anybody has it open, that the folder is in use."""
    descriptor = os.open(home, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    return descriptor


def note_groups(home: str, groups: Iterable[str]) -> None:
    with open(os.path.join(home, GROUPS), "wb") as file:
        file.write(b"\0".join(map(os.fsencode, groups)))


def end_groups(home: str) -> None:
    """Whatever the spawner of this folder started, and is still in its groups, is killed."""
    try:
        with open(os.path.join(home, GROUPS), "rb") as file:
            groups = [os.fsdecode(group) for group in file.read().split(b"\0") if group]
    except OSError:
        return
    for group in groups:
        if os.path.basename(group).startswith(cgroups.PREFIX):
            cgroups.end(group)


def cut_short(home: str) -> list[str]:
    """The names that were being changed for a command when the spawner died."""
    found: list[str] = []
    with suppress(OSError):
        for name in os.listdir(home):
            if name.endswith(NOTE):
                found += read_interrupted(os.path.join(home, name))
    return found


def clear_dead(beside: str) -> None:
    """What spawners that were killed together with their owners left beside this folder."""
    above = os.path.dirname(beside)
    with os.scandir(above) as entries:
        found = [entry for entry in entries if entry.name.startswith(PREFIX) and entry.path != beside]
    for entry in found:
        with suppress(OSError):
            about = entry.stat(follow_symlinks=False)
            if entry.is_dir(follow_symlinks=False) and about.st_uid == os.geteuid() and _is_dead(entry.path, about):
                cut_short(entry.path)
                end_groups(entry.path)
                remove_left_behind(entry.path)
                spawn_removal(entry.path)


def _is_dead(home: str, about: os.stat_result) -> bool:
    if time.time() - about.st_ctime < NEW and not has_lists(home):
        return False
    descriptor = os.open(home, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(descriptor)
    return True
