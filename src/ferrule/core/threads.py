"""Work that would keep the event loop waiting."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


async def in_a_thread(function: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
    """A thread cannot be stopped, so a cancelled call is over only when the thread is.

    Whoever cancels waits for a bounded time, and then says that it may still be running.
    """
    work = asyncio.ensure_future(asyncio.to_thread(function, *args, **kwargs))
    try:
        return await asyncio.shield(work)
    except asyncio.CancelledError:
        await asyncio.wait((work,))
        if not work.cancelled():
            work.exception()  # nobody is left to hear of it; unread, it would be logged as forgotten
        raise
