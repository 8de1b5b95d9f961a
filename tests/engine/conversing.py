"""Turns and models for the tests of conversations."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from ferrule.core.content import Text
from ferrule.core.events import Event
from ferrule.core.model import ModelEvent, ModelFacts, Request, ToolResult, Turn
from ferrule.engine.session import Prompt
from ferrule.engine.transcript_entries import kind_of
from ferrule.providers.scripted import says

from .stage import Stage


async def ask(at: Stage, prompt: Prompt, model: Any) -> list[Event]:
    async with at.session.ask(prompt, model) as events:
        return [envelope.event async for envelope in events]


def sums(text: str) -> list[ModelEvent]:
    """A message with a summary of the form that is asked for."""
    return says(f"# Task\nThe work that the user asked for.\n\n# State\n{text}")


def result(id: str, text: str, *, is_error: bool = False) -> ToolResult:
    return ToolResult(id, (Text(text),), is_error)


class Stream:
    """A model that gives these events and then does what `ending` does."""

    name = "of a test"
    facts = ModelFacts()

    def __init__(self, *events: ModelEvent, ending: BaseException | asyncio.Event | None = None) -> None:
        self.closed = False
        self._events = events
        self._ending = ending

    @asynccontextmanager
    async def stream(self, request: Request, /) -> AsyncGenerator[AsyncIterator[ModelEvent]]:
        events = self._play()
        try:
            yield events
        finally:
            await events.aclose()
            self.closed = True

    async def _play(self) -> AsyncGenerator[ModelEvent]:
        for event in self._events:
            yield event
            await asyncio.sleep(0)
        if isinstance(self._ending, BaseException):
            raise self._ending
        if self._ending is not None:
            await self._ending.wait()


Script = Sequence[ModelEvent | BaseException]


class Faulty:
    """Plays a script of messages in which an exception is raised where it stands, and remembers each request."""

    name = "of a test"

    def __init__(self, *messages: Script, facts: ModelFacts | None = None) -> None:
        self.facts = facts or ModelFacts()
        self.requests: list[tuple[Request, tuple[Turn, ...]]] = []
        self._messages = messages

    @asynccontextmanager
    async def stream(self, request: Request, /) -> AsyncGenerator[AsyncIterator[ModelEvent]]:
        self.requests.append((request, tuple(request.history)))
        events = self._play(self._messages[len(self.requests) - 1])
        try:
            yield events
        finally:
            await events.aclose()

    async def _play(self, message: Script) -> AsyncGenerator[ModelEvent]:
        for event in message:
            if isinstance(event, BaseException):
                raise event
            yield event


@dataclass
class InMemory:
    """A store without a disk, which notes when it was synced."""

    lines: list[bytes] = field(default_factory=list[bytes])
    synced: int = 0

    def append(self, line: bytes, /) -> None:
        self.lines.append(line)

    def sync(self) -> None:
        self.synced = len(self.lines)

    def entries(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.lines]

    def kinds(self) -> list[str]:
        return [kind_of(entry) for entry in self.entries()]
