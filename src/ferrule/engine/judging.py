"""Asking every judge at once, and making one verdict of what they say."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from ..core.ports import Judge, Opinion, Proposal
from ..core.verdicts import Behavior, Verdict

log = logging.getLogger(__name__)

Voice: TypeAlias = Callable[[Proposal], Opinion | Awaitable[Opinion]]


async def opinions(proposal: Proposal, judges: Sequence[Judge]) -> list[Opinion]:
    """What the tool and every judge say. The first DENY ends the wait for the others.

    A judge that answers at once costs a function call; tasks are made only
    where more than one has to wait.
    """
    heard: list[Opinion] = []
    waiting: list[Awaitable[Opinion]] = []
    for voice in _voices(proposal, judges):
        try:
            answer = voice(proposal)
        except Exception as error:  # a judge that fails has said no
            answer = _failed(error)
        if isinstance(answer, Awaitable):
            waiting.append(answer)
        else:
            heard.append(answer)
            if _denies(answer):
                _dismiss(waiting)
                return heard
    if len(waiting) == 1:
        heard.append(await _guarded(waiting[0]))
    elif waiting:
        heard += await _all_at_once(waiting)
    return heard


def rewritten(heard: Iterable[Opinion], arguments: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The arguments somebody wants instead of these, if any; the last one to speak has it."""
    wanted = None
    for opinion in heard:
        if opinion is not None and opinion.updated_arguments is not None and opinion.updated_arguments != arguments:
            wanted = opinion.updated_arguments
    return wanted


def _voices(proposal: Proposal, judges: Sequence[Judge]) -> Iterator[Voice]:
    if proposal.tool.has_opinion:
        yield _tool_opinion
    for judge in judges:
        yield judge.judge


async def _tool_opinion(proposal: Proposal) -> Opinion:
    """A tool speaks under its own name, whatever it signs with: its ALLOW must not count as somebody else's."""
    opinion = await proposal.tool.opinion(proposal.input, proposal.ctx)
    return replace(opinion, source="tool") if opinion else None


async def _guarded(answer: Awaitable[Opinion]) -> Opinion:
    try:
        return await answer
    except Exception as error:  # a judge that fails has said no
        return _failed(error)


def _failed(error: Exception) -> Verdict:
    log.error("a check failed", exc_info=error)
    words = f"a check failed ({type(error).__name__}: {error}), so it is refused"
    return Verdict(behavior=Behavior.DENY, source="default", reason=words)


def _denies(opinion: Opinion) -> bool:
    return opinion is not None and opinion.behavior is Behavior.DENY


async def _all_at_once(waiting: list[Awaitable[Opinion]]) -> list[Opinion]:
    tasks = [asyncio.ensure_future(_guarded(answer)) for answer in waiting]
    pending = set(tasks)
    try:
        while pending:
            finished, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
            if any(_denies(task.result()) for task in finished):
                break
    finally:
        for task in pending:
            task.cancel()
        await asyncio.gather(*pending, return_exceptions=True)
    return [task.result() for task in tasks if task not in pending]


def _dismiss(waiting: list[Awaitable[Opinion]]) -> None:
    """Nobody needs these any more; a coroutine that never ran is closed, so that nothing warns of it."""
    for answer in waiting:
        if isinstance(answer, Coroutine):
            answer.close()
        elif isinstance(answer, asyncio.Future):
            answer.cancel()
