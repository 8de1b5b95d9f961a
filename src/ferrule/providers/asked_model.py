"""The model of a headless run: another one when somebody says so, no faster than its reader, and timed."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from time import monotonic

from ..core.model import ModelEvent, ModelFacts, ModelProvider, Request, Stopped


async def _no_wait() -> None:
    """Nobody reads along who could be too slow."""


class AskedModel:
    def __init__(self, model: ModelProvider) -> None:
        self.model = model
        self.seconds = 0.0
        """How long its messages took, in all."""
        self.facts_by_name: dict[str, ModelFacts] = {}
        """Of every model that was asked."""
        self.ready: Callable[[], Awaitable[object]] = _no_wait
        """Awaited before each event: whoever writes the conversation down sets the pace."""
        self.is_finished: Callable[[], bool] = bool
        """Asked before each request; once it is true, the model has nothing more to say."""

    @property
    def name(self) -> str:
        return self.model.name

    @property
    def facts(self) -> ModelFacts:
        return self.model.facts

    async def close(self) -> None:
        """Leave the connections of a model that has some."""
        close: Callable[[], Awaitable[None]] | None = getattr(self.model, "close", None)
        if close is not None:
            await close()

    @asynccontextmanager
    async def stream(self, request: Request, /) -> AsyncGenerator[AsyncIterator[ModelEvent]]:
        if self.is_finished():
            yield _nothing_more()
            return
        self.facts_by_name[self.name] = self.facts
        began = monotonic()
        try:
            async with self.model.stream(request) as events:
                yield self._pace(events)
        finally:
            self.facts_by_name[self.name] = self.facts  # another one may have answered in its place
            self.seconds += monotonic() - began

    async def _pace(self, events: AsyncIterator[ModelEvent]) -> AsyncIterator[ModelEvent]:
        async for event in events:
            await self.ready()
            yield event


async def _nothing_more() -> AsyncIterator[ModelEvent]:
    yield Stopped("end")
