"""Work that would block the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import copy_context
from functools import partial
from typing import ParamSpec, TypeVar

from .waiting import wait_at_most

P = ParamSpec("P")
R = TypeVar("R")


async def in_a_thread(function: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
    """A thread cannot be stopped, so a cancelled call is over only when the thread is.

    Whoever cancels waits for a bounded time, and then says that it may still be running.
    """
    # Not a task, as `asyncio.to_thread` would be: a loop that shuts down cancels every task, and the thread runs on.
    in_context: Callable[[], R] = partial(copy_context().run, partial(function, *args, **kwargs))
    work = asyncio.get_running_loop().run_in_executor(None, in_context)
    try:
        return await asyncio.shield(work)
    except asyncio.CancelledError:
        try:
            await wait_at_most(work)
        finally:
            if not work.cancelled():
                work.exception()  # nobody is left to handle it; unread, it would be logged as never retrieved
        raise
