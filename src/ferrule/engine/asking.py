"""A prompt, and the turn that answers it while somebody watches."""

from __future__ import annotations

import asyncio
from contextlib import AbstractContextManager
from types import TracebackType
from typing import TYPE_CHECKING, TypeAlias

from ..core.content import Block
from ..core.model import ModelProvider, UserTurn
from .bus import Subscription
from .error_outcomes import end

if TYPE_CHECKING:
    from .session import Session

Prompt: TypeAlias = str | tuple[Block, ...] | UserTurn


def turn_of(prompt: Prompt) -> UserTurn:
    match prompt:
        case str():
            return UserTurn.saying(prompt)
        case UserTurn():
            return prompt
        case _:
            return UserTurn(prompt)


class Asking:
    """One turn in progress. A context manager and not a generator: whoever enters it also leaves it."""

    def __init__(self, session: Session, prompt: Prompt, model: ModelProvider) -> None:
        self._session = session
        self._prompt = prompt
        self._model = model
        self._subscribed: AbstractContextManager[Subscription] = session.bus.subscribe()
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Subscription:
        if self._session.is_answering:
            raise RuntimeError("This session is already answering a prompt. Wait for it, or open another session.")
        subscription = self._subscribed.__enter__()
        self._session.is_answering = True
        self._task = asyncio.create_task(self._session.converse(self._prompt, self._model))
        self._session.running = self._task
        self._task.add_done_callback(lambda _: subscription.close())
        return subscription

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if self._task is not None and not self._task.done():
                await end(self._task, grace=10.0)
        finally:
            self._session.is_answering = False
            self._subscribed.__exit__(kind, error, trace)
