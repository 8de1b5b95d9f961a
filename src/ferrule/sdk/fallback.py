"""A model with another one behind it, for when its service cannot answer."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Final

from ..core.model import FailureKind, ModelError, ModelEvent, ModelFacts, ModelProvider, Request, Retrying

log = logging.getLogger(__name__)

MOST_TRIES: Final = 2
"""How often the first model is asked for a message: whoever has another one does not want to wait long."""
_OF_THE_SERVICE: Final[frozenset[FailureKind]] = frozenset({"limit", "overload", "network"})
"""What another model may not run into. A request that is refused would be refused again."""


class FallbackModel:
    """Asks the first model for each message, and the second where the first gave nothing of it."""

    def __init__(self, first: ModelProvider, second: ModelProvider) -> None:
        self._first = first
        self._second = second
        self._asked = first

    @property
    def name(self) -> str:
        """Of the one that was asked last."""
        return self._asked.name

    @property
    def facts(self) -> ModelFacts:
        return self._asked.facts

    @asynccontextmanager
    async def stream(self, request: Request, /) -> AsyncGenerator[AsyncIterator[ModelEvent]]:
        self._asked = self._first
        async with AsyncExitStack() as streams:
            yield self._events(request, streams)

    async def _events(self, request: Request, streams: AsyncExitStack) -> AsyncIterator[ModelEvent]:
        has_begun = False
        try:
            async for event in await streams.enter_async_context(self._first.stream(request)):
                if isinstance(event, Retrying) and event.attempt > MOST_TRIES:
                    raise ModelError(event.reason, "overload")
                has_begun = has_begun or not isinstance(event, Retrying)
                yield event
            return
        except ModelError as error:
            if has_begun or error.kind not in _OF_THE_SERVICE:
                raise
            log.warning("%s cannot answer (%s); %s is asked instead", self._first.name, error, self._second.name)
        await streams.aclose()
        self._asked = self._second
        async for event in await streams.enter_async_context(self._second.stream(request)):
            yield event
