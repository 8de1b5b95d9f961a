"""Repeats a request after a pause, as long as nothing of the message has arrived."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import TypeAlias

from ..core.model import ModelError, ModelEvent, Retrying, Usage
from ..core.values import named_value
from .service_errors import Trouble

Sleep: TypeAlias = Callable[[float], Awaitable[None]]


def _chance() -> float:
    """From 0 to 1. The module for this takes longer to import than everything else here."""
    return int.from_bytes(os.urandom(4)) / 0xFFFFFFFF


@named_value
class Retries:
    """Pauses double from `first` to `longest`, and vary by a quarter so that clients do not all retry at once."""

    attempts: int = 8
    first: float = 0.5
    longest: float = 30.0
    patience: float = 300.0
    """The longest pause a service may request; if it requests more, the request is not retried."""
    sleep: Sleep = asyncio.sleep
    chance: Callable[[], float] = _chance

    def pause(self, attempt: int, wait: float | None) -> float:
        """Before the attempt with this number, starting at 2."""
        doubled = min(self.longest, self.first * 2 ** (attempt - 2))
        return max(doubled * (0.75 + self.chance() / 2), wait or 0.0)


async def with_retries(ask: Callable[[], AsyncGenerator[ModelEvent]], retries: Retries) -> AsyncGenerator[ModelEvent]:
    """All events of the first successful attempt. Raises `ModelError`; once content has arrived, without a retry."""
    for attempt in range(2, retries.attempts + 2):
        has_begun = False
        try:
            async with aclosing(ask()) as events:
                async for event in events:
                    has_begun = has_begun or not isinstance(event, Usage)
                    yield event
            return
        except Trouble as trouble:
            if has_begun:
                raise _as_cut(trouble) from None
            if not trouble.passing or attempt > retries.attempts or (trouble.wait or 0.0) > retries.patience:
                raise _give_up(trouble, tries=attempt - 1) from None
            pause = retries.pause(attempt, trouble.wait)
            retrying = Retrying(attempt, retries.attempts, pause, str(trouble), trouble.status)
        yield retrying
        await retries.sleep(pause)


def _as_cut(trouble: Trouble) -> ModelError:
    """A retryable error after content has arrived becomes a truncation, for the loop to decide on."""
    kind = "cut" if trouble.passing and trouble.kind != "answer" else trouble.kind
    return ModelError(str(trouble), kind, status=trouble.status, window=trouble.window)


def _give_up(trouble: Trouble, tries: int) -> ModelError:
    text = str(trouble)
    if tries > 1:
        text += f" Tried {tries} times."
    if trouble.wait:
        text += f" It asks to wait for {trouble.wait:.0f} seconds."
    kind = "network" if trouble.kind == "cut" else trouble.kind
    return ModelError(text, kind, status=trouble.status, window=trouble.window)
