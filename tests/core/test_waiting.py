from __future__ import annotations

import asyncio
import threading

import pytest

from ferrule.core.threads import in_a_thread
from ferrule.core.waiting import wait_at_most


async def test_a_wait_ends_with_what_is_waited_for() -> None:
    future = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().call_soon(future.set_result, None)

    assert await wait_at_most(future, 20.0)


async def test_a_wait_that_is_too_long_says_so() -> None:
    assert not await wait_at_most(asyncio.get_running_loop().create_future(), 0.01)


async def test_cancellations_are_raised_after_the_wait() -> None:
    future = asyncio.get_running_loop().create_future()
    waiting = asyncio.create_task(wait_at_most(future))
    for _ in range(3):
        await asyncio.sleep(0)
        waiting.cancel()
    await asyncio.sleep(0)
    assert not waiting.done()

    future.set_result(None)
    with pytest.raises(asyncio.CancelledError):
        await waiting


def test_a_loop_that_shuts_down_waits_for_a_thread_at_work() -> None:
    """`asyncio.run` cancels every task at its end, also one that was cancelled before."""
    steps: list[str] = []

    go_on = threading.Event()

    async def main() -> None:
        begun = asyncio.Event()
        loop = asyncio.get_running_loop()

        def work() -> None:
            loop.call_soon_threadsafe(begun.set)
            assert go_on.wait(20.0)
            steps.append("worked")

        async def working() -> None:
            try:
                await in_a_thread(work)
            finally:
                steps.append("left")

        async def let_go() -> None:
            try:
                await asyncio.Event().wait()
            finally:
                go_on.set()

        tasks = [asyncio.create_task(working()), asyncio.create_task(let_go())]
        await begun.wait()
        tasks[0].cancel()

    asyncio.run(main())

    assert steps == ["worked", "left"]
