"""Waiting that a cancellation does not cut short."""

from __future__ import annotations

import asyncio
from typing import Any


async def wait_at_most(future: asyncio.Future[Any], seconds: float | None = None) -> bool:
    """Wait until it is done, but not longer. False if it is not.

    A cancellation does not end the wait, and is raised after it: the work behind the future uses resources that
    the caller is about to release. A loop that shuts down cancels all of its tasks, so one that was cancelled
    before is cancelled again.
    """
    loop = asyncio.get_running_loop()
    until = None if seconds is None else loop.time() + seconds
    cancelled: asyncio.CancelledError | None = None
    while not future.done() and (until is None or loop.time() < until):
        try:
            await asyncio.wait((future,), timeout=None if until is None else until - loop.time())
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        raise cancelled
    return future.done()
