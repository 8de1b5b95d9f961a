"""What a program that runs for long is kept from: the paths that rules deny, as they were on disk when it started.

Covers lie over files, not over names. A file that comes to be later, or that is
replaced, has none; so whoever speaks to the program compares what it is held
from with what there is now, and starts it anew where that is more.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TypeAlias

from ...core.values import named_value

Covered: TypeAlias = tuple[str, int, int]
"""A path, with the device and the number of the file that it was."""


@named_value
class ProgramHold:
    hidden: frozenset[Covered] = frozenset()
    protected: frozenset[Covered] = frozenset()

    @property
    def is_empty(self) -> bool:
        return not (self.hidden or self.protected)

    def covers(self, other: ProgramHold) -> bool:
        """Whether a program that is held so is kept from all that the other hold keeps it from."""
        return other.hidden <= self.hidden and other.protected <= self.hidden | self.protected

    @classmethod
    def of(cls, hidden: Iterable[str], protected: Iterable[str]) -> ProgramHold:
        return cls(hidden=frozenset(_covered(hidden)), protected=frozenset(_covered(protected)))


def _covered(paths: Iterable[str]) -> Iterable[Covered]:
    for path in paths:
        real = os.path.realpath(path)
        try:
            about = os.stat(real)
        except OSError:
            continue
        yield real, about.st_dev, about.st_ino
