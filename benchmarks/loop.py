"""A scripted conversation, one call a turn: what a turn costs, and whether it costs more later on."""

from __future__ import annotations

import gc
import math
from collections.abc import Sequence
from contextlib import AsyncExitStack
from functools import partial
from itertools import pairwise
from statistics import median

from . import subject
from .figures import Figure
from .peers import Peer
from .timing import calibrated, interleaved

TURNS = 2_050
EARLY, LATE = 20, 2_000
WINDOW = 15
"""Turns on each side of EARLY and LATE that the median is taken over."""
BESIDE_PEERS = (20, 200)
TARGET_MS = 0.3
TARGET_GROWTH = 1.2


async def measure(peer: Peer | None, *, runs: int) -> list[Figure]:
    return await (_alone(runs) if peer is None else _beside(peer, runs))


async def _alone(runs: int) -> list[Figure]:
    session = subject.session()
    messages = subject.script(turns=TURNS)
    await subject.converse(session, messages)
    calibration = whole = early = late = math.inf
    for _ in range(runs):
        gc.collect()
        calibration = min(calibration, calibrated())
        stamps = await subject.converse(session, messages)
        whole = min(whole, (stamps[-1] - stamps[0]) / TURNS)
        early = min(early, _median_turn(stamps, EARLY))
        late = min(late, _median_turn(stamps, LATE))
    return [
        Figure(
            benchmark="loop",
            what=f"a turn, mean of {TURNS:,}",
            value=whole * 1e3,
            unit="ms",
            calibration_ms=calibration * 1e3,
            target=TARGET_MS,
        ),
        Figure(
            benchmark="loop",
            what=f"turn {LATE:,}",
            value=late * 1e3,
            unit="ms",
            calibration_ms=calibration * 1e3,
            beside=f"Ferrule's turn {EARLY}",
            other=early * 1e3,
            target_ratio=TARGET_GROWTH,
        ),
    ]


def _median_turn(stamps: Sequence[float], turn: int) -> float:
    """Of the turns around this one; turns count from 1."""
    around = stamps[turn - 1 - WINDOW : turn + 1 + WINDOW]
    return median(after - before for before, after in pairwise(around))


async def _beside(peer: Peer, runs: int) -> list[Figure]:
    session = subject.session()
    figures: list[Figure] = []
    for turns in BESIDE_PEERS:
        async with AsyncExitStack() as stack:
            converses = await stack.enter_async_context(peer.conversation(turns=turns, calls=1))
            own = partial(subject.converse, session, subject.script(turns=turns))
            timed = await interleaved({"ferrule": own, **converses}, runs=runs)
        figures += (
            Figure(
                benchmark="loop",
                what=f"a turn, mean of {turns}",
                value=timed.seconds["ferrule"] / turns * 1e3,
                unit="ms",
                calibration_ms=timed.calibration * 1e3,
                beside=name,
                other=timed.seconds[name] / turns * 1e3,
                target=TARGET_MS,
            )
            for name in converses
        )
    return figures
