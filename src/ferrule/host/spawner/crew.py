"""Processes in waiting: one for anything, one in the jail that was asked for last, one on a layer."""

from __future__ import annotations

import os
import select

from .becoming import needed_to_start
from .enclosure import Enclosure
from .launching import Forerunner
from .layers import Place
from .rulesets import Rulesets

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .protocol import Jail, Start
    from .rulesets import Ruleset


class Crew:
    """None is made before one like it was asked for: many sessions confine nothing."""

    def __init__(self, home: str) -> None:
        self._home = home
        self._made = 0
        self._rulesets = Rulesets(home)
        self._plain: Forerunner | None = None
        self._confined: Forerunner | None = None
        self._enclosed: Enclosure | None = None
        self._plain_is_asked_for = False
        self._last: tuple[Jail, str] | None = None
        self._last_enclosed: tuple[Jail, str] | None = None
        self._mounts = MountTable()
        self.unwanted: list[Enclosure] = []
        """Made ahead, and then something else was asked for; to be cleared away."""

    @property
    def pids(self) -> set[int]:
        return {one.pid for one in (self._plain, self._confined, self._enclosed) if one is not None}

    def replenish(self) -> bool:
        """To be done while nobody waits; whether one was made. Raises `OSError` for want of room."""
        if self._plain is None and self._plain_is_asked_for:
            self._plain = Forerunner(None, None)
        elif self._confined is None and self._last is not None:
            jail, program = self._last
            self._confined = Forerunner(jail, self.ruleset(jail, program))
        elif self._enclosed is None and self._last_enclosed is not None:
            self._mounts.has_changed()
            self._enclosed = self._fresh_enclosure(*self._last_enclosed)
            self._enclosed.is_fresh = False
        else:
            return False
        return True

    def next_folder(self, above: str) -> str:
        """The path of a new folder for one command, not made yet."""
        self._made += 1
        return os.path.join(above, str(self._made))

    def ruleset(self, jail: Jail, program: str) -> Ruleset:
        return self._rulesets.take(jail, needed_to_start(program))

    def give_back(self, ruleset: Ruleset) -> None:
        self._rulesets.give_back(ruleset)

    def take(self, start: Start) -> tuple[Forerunner, Ruleset | None]:
        """One that can go into this jail, made now if none waits, and the rules it is held to.

        There are none where covers are needed, since they are made inside. Raises `OSError`.
        """
        jail, program = start["jail"], start["program"]
        ruleset = None
        if jail is not None and not jail["mounts"]:
            self._last = jail, program
            confined, self._confined = self._confined, None
            if confined is not None and confined.ruleset is not None:
                if confined.jail == jail and confined.ruleset.grants.is_current():
                    return confined, confined.ruleset
                confined.dismiss()
                self.give_back(confined.ruleset)
            ruleset = self.ruleset(jail, program)
        self._plain_is_asked_for = True
        plain, self._plain = self._plain, None
        return plain or Forerunner(None, None), ruleset

    def take_enclosure(self, jail: Jail, program: str) -> Enclosure:
        """Raises `OSError`."""
        self._last_enclosed = jail, program
        enclosed, self._enclosed = self._enclosed, None
        if enclosed is not None:
            same = enclosed.jail == jail and enclosed.program == program
            if same and not self._mounts.has_changed() and enclosed.is_current():
                return enclosed
            self.unwanted.append(enclosed)
        return self._fresh_enclosure(jail, program)

    def lost(self, pid: int) -> None:
        """One of them ended while it waited."""
        if self._plain is not None and self._plain.pid == pid:
            self._plain = None
        if self._confined is not None and self._confined.pid == pid:
            self._confined = self._last = None  # going in ahead does not work here: not again
        if self._enclosed is not None and self._enclosed.pid == pid:
            self.unwanted.append(self._enclosed)
            self._enclosed = self._last_enclosed = None

    def forget_enclosures(self) -> None:
        """Making one ahead does not work here: not again, before it is asked for."""
        self._last_enclosed = None

    def _fresh_enclosure(self, jail: Jail, program: str) -> Enclosure:
        place = Place(self.next_folder(self._home), jail["workspace"])
        return Enclosure(jail, program, place, self._home)


class MountTable:
    """Tells whether anything was mounted or taken down since it was last asked."""

    def __init__(self) -> None:
        self._table = os.open("/proc/self/mountinfo", os.O_RDONLY | os.O_CLOEXEC)
        self._poll = select.poll()
        self._poll.register(self._table, select.POLLPRI)

    def has_changed(self) -> bool:
        return bool(self._poll.poll(0))
