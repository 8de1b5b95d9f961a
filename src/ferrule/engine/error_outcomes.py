"""Exceptions as outcomes, and ending tasks that ignore cancellation."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from dataclasses import replace
from typing import Any, TypeVar, cast

from ..core.calls import Refusal, Status, ToolCall, ToolOutcome
from ..core.tool import AnyTool, ToolError
from ..core.waiting import wait_at_most

log = logging.getLogger(__name__)

T = TypeVar("T")
R = TypeVar("R")

GRACE = 2.0
"""Seconds a cancelled task has to clean up before it is left behind."""


def outcome_of_error(call: ToolCall, error: BaseException, tool: AnyTool | None = None) -> ToolOutcome:
    """The outcome that an exception means. Raises it again if it is not the call's own.

    A person's interrupt and a cancellation from outside belong to the caller;
    everything else a tool can raise, `SystemExit` included, stays in here.
    """
    if from_outside(error):
        raise error
    status, message = _meaning(call.name, error)
    if status is Status.BROKEN:
        log.error("%s broke its contract", call.name, exc_info=error)
    outcome = ToolOutcome.refused(call, status, message)
    if isinstance(error, Refusal) and error.stops:
        outcome = replace(outcome, stops=error.stops)
    if isinstance(error, ToolError) and error.changes:
        outcome = replace(outcome, changes=error.changes)
    if tool is None:
        return outcome
    try:
        view = tool.show_error(message)
    except Exception:  # drawing an error must not hide it
        log.exception("%s could not show its error", tool.name)
        return outcome
    return replace(outcome, view=view)


def from_outside(error: BaseException) -> bool:
    """Whether it is a person's interrupt or a requested cancellation, not a failure of the code that raised it."""
    if isinstance(error, asyncio.CancelledError):
        return _is_cancel_requested()
    return isinstance(error, KeyboardInterrupt | GeneratorExit)


def in_own_task(work: Awaitable[T], around: Callable[[Awaitable[T]], Coroutine[Any, Any, R]]) -> asyncio.Task[R]:
    """Begin `around(work)`. Ended before its first step it never awaits the work, which is closed then."""
    task = asyncio.create_task(around(work))
    if isinstance(work, Coroutine):
        task.add_done_callback(lambda _: work.close())
    return task


async def contain_exit(work: Awaitable[T]) -> T:
    """For work in a task of its own, where a bare `SystemExit` would end the whole event loop."""
    try:
        return await work
    except SystemExit as error:
        raise BaseExceptionGroup("in a task of its own", [error]) from None


def _meaning(name: str, error: BaseException) -> tuple[Status, str]:
    match error:
        case Refusal():
            return error.status, error.message or f"{name} was refused without a reason."
        case ToolError():
            return Status.FAILED, _words(error) or f"{name} failed and did not say why."
        case MemoryError():
            return Status.FAILED, f"{name} needs more memory than is available. Do it in smaller pieces."
        case BaseExceptionGroup():
            return _meaning_of_group(name, list(_leaves(error)))
        case _:
            return Status.BROKEN, f"{name} failed unexpectedly: {in_short(error)}. This is a bug in the tool."


def _meaning_of_group(name: str, leaves: list[BaseException]) -> tuple[Status, str]:
    """A tool's own task group wraps what it raises; only the inner exceptions matter."""
    meanings = [_meaning(name, leaf) for leaf in leaves if not isinstance(leaf, asyncio.CancelledError)]
    broken = [message for status, message in meanings if status is Status.BROKEN]
    if broken or not meanings:
        return Status.BROKEN, (broken or [f"{name} failed unexpectedly: it was cancelled from inside."])[0]
    return meanings[0][0], "\n".join(dict.fromkeys(message for _, message in meanings))


def _leaves(group: BaseExceptionGroup[Any]) -> Iterator[BaseException]:
    for error in group.exceptions:
        if isinstance(error, BaseExceptionGroup):
            yield from _leaves(cast(BaseExceptionGroup[Any], error))
        else:
            yield error


def in_short(error: BaseException) -> str:
    """Its kind and its words, of a bounded length, whatever its text does."""
    words = _words(error)
    text = f"{type(error).__name__}: {words}" if words else type(error).__name__
    return text if len(text) <= 500 else f"{text[:499]}…"


def _words(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # an exception whose own text fails still has a name
        return ""


def _is_cancel_requested() -> bool:
    """Whether somebody outside asked the running task to stop."""
    try:
        task = asyncio.current_task()
    except RuntimeError:
        return False
    return task is not None and task.cancelling() > 0


async def end(task: asyncio.Future[Any], grace: float = GRACE) -> bool:
    """Cancel and wait for the end, but not for ever. False if it is still running and was left behind."""
    task.cancel()
    try:
        return await wait_at_most(task, grace)
    finally:
        if not task.done():
            log.error("%r ignored its cancellation for %g s and was left behind", task, grace)
        elif not task.cancelled() and task.exception() is not None:
            log.debug("%r raised while it was being ended", task, exc_info=task.exception())
