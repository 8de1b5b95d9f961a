"""A hundred calls in one message, from the request to the last result in the history."""

from __future__ import annotations

from contextlib import AsyncExitStack
from functools import partial

from . import subject
from .figures import Figure
from .peers import Peer
from .timing import Work, interleaved

CALLS = 100
TARGET_MS = 10.0


async def measure(peer: Peer | None, *, runs: int) -> list[Figure]:
    own = partial(subject.converse, subject.session(), subject.script(turns=1, calls=CALLS))
    async with AsyncExitStack() as stack:
        others: dict[str, Work] = {}
        if peer is not None:
            others = await stack.enter_async_context(peer.conversation(turns=1, calls=CALLS))
        timed = await interleaved({"ferrule": own, **others}, runs=runs)
    return [
        Figure(
            benchmark="batch",
            what=f"{CALLS} calls in one message",
            value=timed.seconds["ferrule"] * 1e3,
            unit="ms",
            calibration_ms=timed.calibration * 1e3,
            beside=name,
            other=timed.seconds[name] * 1e3 if name else None,
            target=TARGET_MS,
        )
        for name in (others or [""])
    ]
