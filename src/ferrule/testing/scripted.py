"""A scripted model that remembers what it was sent."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager

from ..core.model import ModelEvent, Request, Turn
from ..providers.scripted import ScriptedModel


class RecordingModel(ScriptedModel):
    """`requests` holds each request with the history as it was then."""

    def __init__(self, *messages: Sequence[ModelEvent]) -> None:
        super().__init__(messages)
        self.requests: list[tuple[Request, tuple[Turn, ...]]] = []

    @asynccontextmanager
    async def stream(self, request: Request, /) -> AsyncGenerator[AsyncIterator[ModelEvent]]:
        self.requests.append((request, tuple(request.history)))
        async with super().stream(request) as events:
            yield events
