"""What a call occupies while it runs, in a form that two calls can be compared by.

Effects are grounded once (links resolved), then flattened to strings; after
that, comparing two calls never touches the disk.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import assert_never

from ..core.effects import (
    CWD,
    ChangesState,
    Effects,
    Opaque,
    ReachesHost,
    ReadsPath,
    ReadsState,
    RunsCommand,
    Touch,
    WritesPath,
)
from ..core.ports import Paths


def ground(effects: Effects, paths: Paths) -> Effects:
    """The same effects with every path resolved on the links of this moment."""
    for touch in effects.touches:
        if isinstance(touch, ReadsPath | WritesPath):
            return Effects(tuple(_grounded(touch, paths) for touch in effects.touches))
    return effects


def _grounded(touch: Touch, paths: Paths) -> Touch:
    if isinstance(touch, ReadsPath):
        return ReadsPath(touch.path, *paths.resolve(touch.path))
    if isinstance(touch, WritesPath):
        return WritesPath(touch.path, touch.change, *paths.resolve(touch.path))
    return touch


@dataclass(frozen=True, slots=True)
class Footprint:
    """Paths and state keys, read and written. `unknown` stands for all of them."""

    unknown: bool
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    state_reads: frozenset[str]
    state_writes: frozenset[str]

    @property
    def only_reads(self) -> bool:
        return not (self.unknown or self.writes or self.state_writes)

    @property
    def is_empty(self) -> bool:
        return self.only_reads and not (self.reads or self.state_reads)

    @classmethod
    def of(cls, effects: Effects, *, reads_cwd: bool = False) -> Footprint:
        """Of grounded effects. A path counts as written, as resolved, and by each link on the way.

        A call that touches nothing does not depend on the working directory either.
        """
        reads: list[str] = []
        writes: list[str] = []
        state_reads: list[str] = [CWD] if reads_cwd and effects.touches else []
        state_writes: list[str] = []
        unknown = False
        for touch in effects.touches:
            match touch:
                case ReadsPath(path, real, links):
                    reads += (path, real or path, *links)
                case WritesPath(path, _, real, links):
                    writes += (path, real or path)
                    reads += links
                case RunsCommand():
                    unknown = unknown or not touch.accounted
                case ReachesHost(host, sends):
                    (state_writes if sends else state_reads).append(f"host:{host}")
                case ReadsState(key):
                    state_reads.append(key)
                case ChangesState(key):
                    state_writes.append(key)
                case Opaque():
                    unknown = True
                case _:
                    assert_never(touch)
        return cls(
            unknown, tuple(dict.fromkeys(reads)), tuple(dict.fromkeys(writes)), _set(state_reads), _set(state_writes)
        )

    def conflicts(self, other: Footprint) -> bool:
        """Whether the order of the two matters. Nothing conflicts with a call that touches nothing."""
        if self.only_reads and other.only_reads:
            return False
        if self.is_empty or other.is_empty:
            return False
        if self.unknown or other.unknown:
            return True
        if self.state_writes and not (
            self.state_writes.isdisjoint(other.state_writes) and self.state_writes.isdisjoint(other.state_reads)
        ):
            return True
        if not other.state_writes.isdisjoint(self.state_reads):
            return True
        return _overlap(self.writes, other.writes + other.reads) or _overlap(other.writes, self.reads)


_NO_KEYS: frozenset[str] = frozenset()


def _set(keys: list[str]) -> frozenset[str]:
    return frozenset(keys) if keys else _NO_KEYS


def _overlap(some: tuple[str, ...], others: tuple[str, ...]) -> bool:
    return any(_nested(one, other) for one in some for other in others)


def _nested(one: str, other: str) -> bool:
    """Whether the two paths are the same or one contains the other."""
    if len(one) > len(other):
        one, other = other, one
    return other.startswith(one) and (len(one) == len(other) or one.endswith("/") or other[len(one)] == "/")
