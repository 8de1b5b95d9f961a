"""What was fetched lately, so that asking twice is one fetch."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Final, Generic, TypeVar

SECONDS: Final = 15 * 60.0
MOST_ENTRIES: Final = 100
MOST_WEIGHT: Final = 32 << 20
"""Characters and bytes of all entries together."""

T = TypeVar("T")


class Recent(Generic[T]):
    """Values by key, for a while, and never more than fit; the oldest give way."""

    def __init__(
        self,
        *,
        seconds: float = SECONDS,
        most_entries: int = MOST_ENTRIES,
        most_weight: int = MOST_WEIGHT,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._seconds = seconds
        self._most_entries = most_entries
        self._most_weight = most_weight
        self._clock = clock
        self._entries: OrderedDict[str, tuple[float, int, T]] = OrderedDict()
        self._weight = 0

    def get(self, key: str) -> T | None:
        self._forget_old()
        entry = self._entries.get(key)
        return entry[2] if entry is not None else None

    def put(self, key: str, value: T, weight: int) -> None:
        self._drop(key)
        if weight > self._most_weight:
            return
        self._entries[key] = (self._clock(), weight, value)
        self._weight += weight
        while len(self._entries) > self._most_entries or self._weight > self._most_weight:
            self._drop(next(iter(self._entries)))

    def _forget_old(self) -> None:
        """Entries stand in the order in which they came, so the old ones are in front."""
        oldest = self._clock() - self._seconds
        while self._entries and next(iter(self._entries.values()))[0] <= oldest:
            self._drop(next(iter(self._entries)))

    def _drop(self, key: str) -> None:
        entry = self._entries.pop(key, None)
        if entry is not None:
            self._weight -= entry[1]
