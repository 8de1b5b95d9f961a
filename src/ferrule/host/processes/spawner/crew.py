"""Processes in waiting: one for anything, one supervised, and one in each jail and on each layer asked for lately."""

from __future__ import annotations

import os
import select

from .becoming import files_to_start
from .enclosure import Enclosure
from .launching import Forerunner
from .overlay_layers import LayerPlace
from .rulesets import Rulesets
from .supervised import SupervisedShell

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .protocol import Jail, Start
    from .rulesets import Ruleset

    Wanted = tuple[Jail, str]

MOST_CONFINED, MOST_ENCLOSED = 3, 2
"""Jails, and workspaces, for which somebody waits."""


class Crew:
    """None is made before one like it was asked for: many sessions confine nothing."""

    def __init__(self, home: str) -> None:
        self._home = home
        self._made = 0
        self._rulesets = Rulesets(home)
        self._mounts = MountTable()
        self._plain: Forerunner | None = None
        self._plain_is_wanted = False
        self._confined: list[Forerunner] = []
        self._confined_wanted: list[Wanted] = []
        self._enclosed: list[Enclosure] = []
        self._enclosed_wanted: list[Wanted] = []
        self._supervised: SupervisedShell | None = None
        self._supervised_wanted: Wanted | None = None
        self.unwanted: list[Enclosure] = []
        """Made ahead, and now useless; to be cleared away."""

    @property
    def pids(self) -> set[int]:
        plain = [one.pid for one in (self._plain, self._supervised) if one is not None]
        return {*plain, *(one.pid for one in self._confined), *(one.pid for one in self._enclosed)}

    def replenish(self) -> bool:
        """To be done while nobody waits; whether one was made. Raises `OSError` for want of room."""
        if self._plain is None and self._plain_is_wanted:
            self._plain = Forerunner(None, None)
            return True
        for jail, program in self._confined_wanted:
            if not any(one.jail == jail for one in self._confined):
                self._confined.append(self._fresh_confined(jail, program))
                return True
        for jail, program in self._enclosed_wanted:
            if not any(one.suits(jail, program) for one in self._enclosed):
                enclosed = self._fresh_enclosure(jail, program)
                enclosed.is_fresh = False
                self._enclosed.append(enclosed)
                return True
        if self._supervised is None and self._supervised_wanted is not None:
            self._supervised = self._fresh_supervised(*self._supervised_wanted)
            return True
        return False

    def make_folder(self, above: str) -> str:
        """A new folder for one command. Raises `OSError`."""
        os.mkdir(folder := self.next_folder(above), 0o700)
        return folder

    def next_folder(self, above: str) -> str:
        """The path of a new folder, not made yet."""
        self._made += 1
        return os.path.join(above, str(self._made))

    def ruleset(self, jail: Jail, program: str) -> Ruleset:
        return self._rulesets.take(jail, files_to_start(program))

    def give_back(self, ruleset: Ruleset) -> None:
        self._rulesets.give_back(ruleset)

    def take(self, start: Start) -> tuple[Forerunner, Ruleset | None]:
        """One that can go into this jail, made now if none waits, and the rules it is held to.

        There are none where covers are needed, since they are made inside. Raises `OSError`.
        """
        jail, program = start["jail"], start["program"]
        ruleset = None
        if jail is not None and not jail["mounts"]:
            _want(self._confined_wanted, (jail, program), MOST_CONFINED)
            for confined in [one for one in self._confined if one.jail == jail]:
                self._confined.remove(confined)
                if confined.ruleset is not None and confined.ruleset.grants.is_current():
                    return confined, confined.ruleset
                self._dismiss(confined)
            for other in [
                one for one in self._confined if all(one.jail != wanted for wanted, _ in self._confined_wanted)
            ]:
                self._confined.remove(other)
                self._dismiss(other)
            ruleset = self.ruleset(jail, program)
        self._plain_is_wanted = True
        plain, self._plain = self._plain, None
        return plain or Forerunner(None, None), ruleset

    def take_enclosure(self, jail: Jail, program: str) -> Enclosure:
        """Raises `OSError`."""
        _want(self._enclosed_wanted, (jail, program), MOST_ENCLOSED)
        if self._mounts.has_changed():
            self.unwanted += self._enclosed
            self._enclosed.clear()
        found = None
        for enclosed in [*self._enclosed]:
            suits = found is None and enclosed.suits(jail, program)
            if suits or not any(enclosed.suits(*wanted) for wanted in self._enclosed_wanted):
                self._enclosed.remove(enclosed)
            if suits and enclosed.is_current():
                found = enclosed
            elif enclosed not in self._enclosed:
                self.unwanted.append(enclosed)
        found = found or self._fresh_enclosure(jail, program)
        found.jail = jail
        return found

    def take_supervised(self, jail: Jail, program: str) -> SupervisedShell:
        """Raises `OSError`."""
        self._supervised_wanted = jail, program
        supervised, self._supervised = self._supervised, None
        if supervised is not None:
            if supervised.fits(jail):
                return supervised
            supervised.close()
            self.give_back(supervised.ruleset)
        return self._fresh_supervised(jail, program)

    def note_lost(self, pid: int) -> None:
        """One of them ended while it waited."""
        if self._plain is not None and self._plain.pid == pid:
            self._plain = None
        for confined in [one for one in self._confined if one.pid == pid]:
            self._confined.remove(confined)
            self._confined_wanted.clear()  # going in ahead does not work here: not again, before it is asked for
        for enclosed in [one for one in self._enclosed if one.pid == pid]:
            self._enclosed.remove(enclosed)
            self.unwanted.append(enclosed)
            self._enclosed_wanted.clear()
        if self._supervised is not None and self._supervised.pid == pid:
            self._supervised = self._supervised_wanted = None

    def forget_enclosures(self) -> None:
        """Making one ahead does not work here: not again, before it is asked for."""
        self._enclosed_wanted.clear()

    def _fresh_confined(self, jail: Jail, program: str) -> Forerunner:
        ruleset = self.ruleset(jail, program)
        forerunner = Forerunner(jail, ruleset)
        forerunner.scratch = self.make_folder(ruleset.folder)
        return forerunner

    def _fresh_supervised(self, jail: Jail, program: str) -> SupervisedShell:
        return SupervisedShell(jail, self.ruleset(jail, program), self._home)

    def _fresh_enclosure(self, jail: Jail, program: str) -> Enclosure:
        return Enclosure(jail, program, LayerPlace(self.next_folder(self._home), jail["workspace"]), self._home)

    def _dismiss(self, confined: Forerunner) -> None:
        confined.dismiss()
        os.rmdir(confined.scratch)
        if confined.ruleset is not None:
            self.give_back(confined.ruleset)


def _want(wanted: list[Wanted], what: Wanted, most: int) -> None:
    """The latest first, and no more than `most`."""
    jail, program = what
    alike = {**jail, "declared": None}
    wanted[:] = [what, *(one for one in wanted if one[1] != program or {**one[0], "declared": None} != alike)][:most]


class MountTable:
    """Tells whether anything was mounted or taken down since it was last asked."""

    def __init__(self) -> None:
        self._table = os.open("/proc/self/mountinfo", os.O_RDONLY | os.O_CLOEXEC)
        self._poll = select.poll()
        self._poll.register(self._table, select.POLLPRI)

    def has_changed(self) -> bool:
        return bool(self._poll.poll(0))
