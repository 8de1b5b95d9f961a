"""Carrying over in the spawner itself where there is little to do, otherwise in a process of its own."""

from __future__ import annotations

import marshal
import os
from contextlib import suppress

from .becoming import restore_signals
from .carrying import Carrying, read_interrupted
from .protocol import MOST_CHANGES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .enclosure import Enclosure
    from .protocol import Changed

NOTE = ".carrying"
"""Ends the name of the file that lists what is about to be changed. It is there only meanwhile."""
CUT_SHORT = "it was interrupted, so some of these names may be unchanged"


class Carrier:
    """What is left to do for a command whose processes are gone."""

    def __init__(self, enclosure: Enclosure) -> None:
        """Begins at once; `changed` is known where it took no time, otherwise when the process `pid` has ended."""
        self._note = enclosure.place.folder + NOTE
        self._result = enclosure.place.folder + ".carried"
        self._roots = enclosure.place.roots
        self.pid = 0
        self.changed: Changed | None = None
        try:
            carrying = Carrying(enclosure.jail, enclosure.layers(), since=enclosure.since, note=self._note)
            if carrying.is_short():
                self.changed = carrying.carry()
            elif (pid := os.fork()) == 0:
                self._carry_and_exit(carrying)
            else:
                self.pid = pid
                carrying.close()
        except (OSError, RecursionError) as error:
            self.changed = self._failure(str(error))

    def finish(self) -> Changed:
        """When the process ended."""
        try:
            with open(self._result, "rb") as file:
                return marshal.load(file)
        except (OSError, EOFError, ValueError):
            return self._failure(CUT_SHORT)

    def _carry_and_exit(self, carrying: Carrying) -> None:
        try:
            restore_signals()
            changed = carrying.carry()
            with open(self._result, "xb") as file:
                marshal.dump(changed, file)  # pyright: ignore[reportArgumentType] - as in `protocol`
        finally:
            os._exit(0)

    def _failure(self, why: str) -> Changed:
        """For all that was about to change, as far as that is known."""
        paths = self._roots
        with suppress(OSError):
            paths = read_interrupted(self._note)
        failed = [(path, why) for path in paths]
        return {
            "done": [],
            "dropped": [],
            "failed": failed[:MOST_CHANGES],
            "refused": [],
            "totals": {"failed": len(failed)},
        }
