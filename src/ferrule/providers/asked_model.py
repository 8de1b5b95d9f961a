"""Models that ask others: that of a run, which can be changed, waits for its reader and is timed; one for plans."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from time import monotonic
from typing import TYPE_CHECKING

from ..core.model import LearnsWindow, ModelEvent, ModelFacts, ModelProvider, Request, Stopped

if TYPE_CHECKING:
    from .model_claims import FactSources
    from .service_model import ServiceModel


async def _no_wait() -> None:
    """The default: no reader to wait for."""


class AskedModel:
    def __init__(self, model: ModelProvider) -> None:
        self.model = model
        self.seconds = 0.0
        """How long its messages took in total."""
        self.facts_by_name: dict[str, ModelFacts] = {}
        """Of every model that was asked."""
        self.ready: Callable[[], Awaitable[object]] = _no_wait
        """Awaited before each event: whoever records the conversation sets the pace."""
        self.is_finished: Callable[[], bool] = bool
        """Called before each request; once it is true, the model says nothing more."""

    @property
    def name(self) -> str:
        return self.model.name

    @property
    def facts(self) -> ModelFacts:
        return self.model.facts

    @property
    def key_source(self) -> str:
        """Where its key comes from, for a person."""
        return getattr(self.model, "key_source", "none")

    def learn_window(self, window: int, /) -> None:
        if isinstance(self.model, LearnsWindow):
            self.model.learn_window(window)

    async def close(self) -> None:
        """Closes the connections of a model that has any."""
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
            self.facts_by_name[self.name] = self.facts  # another one may have answered instead
            self.seconds += monotonic() - began

    async def _pace(self, events: AsyncIterator[ModelEvent]) -> AsyncIterator[ModelEvent]:
        async for event in events:
            await self.ready()
            yield event


async def _nothing_more() -> AsyncIterator[ModelEvent]:
    yield Stopped("end")


class PlanningModel:
    """One model makes plans, another carries them out."""

    def __init__(self, planner: ServiceModel, worker: ServiceModel) -> None:
        self._planner = planner
        self._worker = worker
        self._asked = worker
        self.key_source = worker.key_source

    @property
    def name(self) -> str:
        """Of the one that was asked last."""
        return self._asked.name

    @property
    def facts(self) -> ModelFacts:
        return self._asked.facts

    def use_sources(self, service: str, sources: FactSources, environ: Mapping[str, str]) -> None:
        for model in (self._planner, self._worker):
            model.use_sources(service, sources, environ)

    def learn_window(self, window: int, /) -> None:
        self._asked.learn_window(window)

    async def close(self) -> None:
        await self._planner.close()
        await self._worker.close()

    def stream(self, request: Request, /) -> AbstractAsyncContextManager[AsyncIterator[ModelEvent]]:
        self._asked = self._planner if request.planning else self._worker
        return self._asked.stream(request)
