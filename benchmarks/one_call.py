"""One call through the whole path: executor, parse, effects, gate, fifty rules, budget, events."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

from . import subject
from .figures import Figure
from .peers import Peer
from .timing import Work, interleaved

CALLS = 100
"""Calls in one run: long enough for the clock, short enough to slip between the interruptions of a busy machine."""
TARGET_US = 60.0
HALF_OF_KIMI = 0.5


async def measure(peer: Peer | None, *, runs: int) -> list[Figure]:
    session = subject.session()

    async def one() -> None:
        await session.run([subject.call()])

    async def buffered() -> None:
        with session.bus.subscribe():
            for _ in range(CALLS):
                await one()

    async def read_live() -> None:
        async with asyncio.TaskGroup() as group:
            with session.bus.subscribe() as events:

                async def read() -> None:
                    async for _ in events:
                        pass

                group.create_task(read())
                for _ in range(CALLS):
                    await one()

    outcomes = await session.run([subject.call()])
    assert not outcomes[0].is_error, outcomes
    if peer is None:
        timed = await interleaved({"buffered": buffered, "live": read_live}, runs=runs)
        return [
            _figure("one call", timed.seconds["buffered"], timed.calibration, target=TARGET_US),
            _figure("one call, its events read at once", timed.seconds["live"], timed.calibration),
        ]
    async with AsyncExitStack() as stack:
        calls = await stack.enter_async_context(peer.one_call())
        works: dict[str, Work] = {"ferrule": buffered, **{name: _repeated(work) for name, work in calls.items()}}
        timed = await interleaved(works, runs=runs)
    return [
        _figure(
            "one call",
            timed.seconds["ferrule"],
            timed.calibration,
            target=TARGET_US if name == "pydantic-ai, bare" else None,
            target_ratio=HALF_OF_KIMI if name == "kimi" else None,
            beside=name,
            other=timed.seconds[name],
        )
        for name in calls
    ]


def _repeated(work: Work) -> Work:
    async def repeated() -> None:
        for _ in range(CALLS):
            await work()

    return repeated


def _figure(
    what: str,
    seconds: float,
    calibration: float,
    *,
    target: float | None = None,
    target_ratio: float | None = None,
    beside: str = "",
    other: float | None = None,
) -> Figure:
    return Figure(
        benchmark="one_call",
        what=what,
        value=seconds / CALLS * 1e6,
        unit="µs",
        calibration_ms=calibration * 1e3,
        beside=beside,
        other=None if other is None else other / CALLS * 1e6,
        target=target,
        target_ratio=target_ratio,
    )
