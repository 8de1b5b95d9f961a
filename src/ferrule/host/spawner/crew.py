"""Forerunners in waiting: one for anything, and one that already sits in the jail that most commands get."""

from __future__ import annotations

import os

from . import landlock, seccomp
from .launching import Forerunner

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .protocol import Jail


class Crew:
    """None is made before one like it was asked for: many sessions confine nothing."""

    def __init__(self, home: str) -> None:
        self._home = home
        self._made = 0
        self._plain: Forerunner | None = None
        self._confined: Forerunner | None = None
        self._usual = usual_jail()
        self._usual_is_asked_for = False
        self._plain_is_asked_for = False

    @property
    def pids(self) -> set[int]:
        return {one.pid for one in (self._plain, self._confined) if one is not None}

    def replenish(self) -> None:
        """To be done while nobody waits. Raises `OSError` for want of room."""
        if self._plain is None and self._plain_is_asked_for:
            self._plain = self._fresh(None)
        if self._confined is None and self._usual is not None and self._usual_is_asked_for:
            self._confined = self._fresh(self._usual)

    def take(self, jail: Jail | None) -> Forerunner:
        """One that can go into this jail; made now if none waits. Raises `OSError` for want of room."""
        if jail is not None and jail == self._usual:
            self._usual_is_asked_for = True
            if (confined := self._confined) is not None:
                self._confined = None
                return confined
        else:
            self._plain_is_asked_for = True
        plain, self._plain = self._plain, None
        return plain or self._fresh(None)

    def lost(self, pid: int) -> None:
        """One of them ended while it waited."""
        if self._plain is not None and self._plain.pid == pid:
            self._plain = None
        if self._confined is not None and self._confined.pid == pid:
            self._confined = self._usual = None  # going in ahead does not work here: not again

    def _fresh(self, jail: Jail | None) -> Forerunner:
        self._made += 1
        return Forerunner(os.path.join(self._home, str(self._made)), jail)


def usual_jail() -> Jail | None:
    """The read-only profile with nothing hidden, as `host/sandbox.py` asks for it; `None` where there is none."""
    if not (version := landlock.version()) or not seccomp.supported():
        return None
    return {
        "mounts": False,
        "writable": [],
        "hidden": [],
        "protected": [],
        "reopened": [],
        "metadata": False,
        "network": False,
        "unix_sockets": False,
        "landlock": version,
        "readable": None,
        "declared": None,
        "keep": "",
        "workspace": [],
        "protected_names": [],
    }
