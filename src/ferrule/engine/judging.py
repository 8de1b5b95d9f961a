"""Asking every judge at once, and combining their answers into one verdict."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from ..core.ports import Judge, Opinion, Proposal
from ..core.verdicts import Behavior, Verdict
from .error_outcomes import GRACE, from_outside, in_own_task, in_short

log = logging.getLogger(__name__)

Voice: TypeAlias = Callable[[Proposal], Opinion | Awaitable[Opinion]]


def ask_all(proposal: Proposal, judges: Sequence[Judge]) -> tuple[list[Opinion], list[Awaitable[Opinion]]]:
    """What the tool and every judge say at once, and the answers that are still to come.

    The first DENY is enough. A judge that answers at once costs a function
    call; tasks are made only where more than one has to wait.
    """
    heard: list[Opinion] = []
    waiting: list[Awaitable[Opinion]] = []
    for voice in _voices(proposal, judges):
        try:
            answer = voice(proposal)
        except BaseException as error:  # a judge that fails has denied the call
            if from_outside(error):
                _dismiss(waiting)
                raise
            answer = _refusal_of_error(error)
        if answer is not None and not isinstance(answer, Verdict) and isinstance(answer, Awaitable):  # pyright: ignore[reportUnnecessaryIsInstance]
            waiting.append(answer)
            continue
        answer = _check_answer(answer)
        heard.append(answer)
        if _denies(answer):
            _dismiss(waiting)
            return heard, []
    return heard, waiting


async def the_rest(waiting: list[Awaitable[Opinion]]) -> list[Opinion]:
    """The answers that had to be waited for, all at once; a DENY ends the wait for the others."""
    return [await answer_or_refusal(waiting[0])] if len(waiting) == 1 else await _all_at_once(waiting)


def rewriting(heard: Iterable[Opinion], *known: Mapping[str, Any]) -> Verdict | None:
    """The verdict with arguments that somebody wants instead of these, if any; the last takes precedence.

    `known` are the forms of the arguments there are: asking for one of them changes nothing.
    """
    wanted = None
    for opinion in heard:
        if opinion is not None and opinion.updated_arguments is not None and opinion.updated_arguments not in known:
            wanted = opinion
    return wanted


def _voices(proposal: Proposal, judges: Sequence[Judge]) -> list[Voice]:
    voices: list[Voice] = [judge.judge for judge in judges]
    return [_tool_opinion, *voices] if proposal.tool.has_opinion else voices


async def _tool_opinion(proposal: Proposal) -> Opinion:
    """A tool speaks under its own name, whatever it signs with: its ALLOW must not be taken for somebody else's."""
    opinion = await proposal.tool.opinion(proposal.input, proposal.ctx)
    return replace(opinion, source="tool") if opinion else None


async def answer_or_refusal(answer: Awaitable[Opinion]) -> Opinion:
    """The final answer of a judge or an approver; one that fails has denied the call."""
    try:
        return _check_answer(await answer)
    except BaseException as error:  # somebody else's code: whatever it raises is a refusal
        if from_outside(error):
            raise
        return _refusal_of_error(error)


def _check_answer(answer: object) -> Opinion:
    if answer is None or isinstance(answer, Verdict):
        return answer
    return _refusal_of_error(TypeError(f"{type(answer).__name__} is not a verdict"))


def _refusal_of_error(error: BaseException) -> Verdict:
    log.error("a check failed", exc_info=error)
    words = f"a check failed ({in_short(error)}), so it is refused"
    return Verdict(behavior=Behavior.DENY, source="default", reason=words)


def _denies(opinion: Opinion) -> bool:
    return opinion is not None and opinion.behavior is Behavior.DENY


async def _all_at_once(waiting: list[Awaitable[Opinion]]) -> list[Opinion]:
    tasks = [in_own_task(answer, answer_or_refusal) for answer in waiting]
    pending = set(tasks)
    try:
        while pending:
            finished, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
            if any(_denies(task.result()) for task in finished):
                break
    finally:
        for task in pending:
            task.cancel()
        if pending:
            await asyncio.wait(pending, timeout=GRACE)
    return [task.result() for task in tasks if task not in pending]


def _dismiss(waiting: list[Awaitable[Opinion]]) -> None:
    """Nobody needs these any more; a coroutine that never ran is closed, so that nothing warns of it."""
    for answer in waiting:
        if isinstance(answer, Coroutine):
            answer.close()
        elif isinstance(answer, asyncio.Future):
            answer.cancel()
