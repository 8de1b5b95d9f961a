"""Timing that survives a noisy machine: works taken in turns, minima kept, a known loop beside them.

A ratio is honest only if both sides saw the same weather, so every round runs
each work once before any runs again. An absolute time is given with that of a
fixed pure-Python loop of the same rounds, so that two machines can be compared.
"""

from __future__ import annotations

import gc
import math
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from time import perf_counter
from typing import TypeAlias

CALIBRATION_STEPS = 100_000

Work: TypeAlias = Callable[[], Awaitable[object]]


@dataclass(frozen=True, slots=True)
class Timed:
    """The least seconds of each work, and of the calibration loop between them."""

    seconds: Mapping[str, float]
    calibration: float


async def interleaved(works: Mapping[str, Work], *, runs: int) -> Timed:
    """Run A, B, A, B …, `runs` times each, after one round that does not count."""
    for work in works.values():
        await work()
    best = dict.fromkeys(works, math.inf)
    calibration = math.inf
    for _ in range(runs):
        calibration = min(calibration, calibrated())
        for name, work in works.items():
            gc.collect()  # nobody pays for what another left behind
            start = perf_counter()
            await work()
            best[name] = min(best[name], perf_counter() - start)
    return Timed(best, calibration)


def calibrated() -> float:
    """Seconds of a fixed amount of plain Python: arithmetic, a branch, a dict and a list."""
    start = perf_counter()
    seen: dict[int, int] = {}
    kept: list[int] = []
    for step in range(CALIBRATION_STEPS):
        key = step * 7 % 1_009
        if key in seen:
            seen[key] += step
        else:
            seen[key] = step
            kept.append(key)
    return perf_counter() - start
