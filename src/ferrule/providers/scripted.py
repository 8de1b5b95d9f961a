"""A model that plays a script: for demos, tests and benchmarks, with no network."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager

from ..core.calls import ToolCall
from ..core.model import CallReady, ModelError, ModelEvent, ModelFacts, Request, Stopped, TextDelta


class ScriptedModel:
    """Answers each request with the next message of the script."""

    name = "scripted"
    facts = ModelFacts()

    def __init__(self, messages: Sequence[Sequence[ModelEvent]], *, seconds_between_words: float = 0.0) -> None:
        self._messages = messages
        self._pause = seconds_between_words
        self._next = 0

    @asynccontextmanager
    async def stream(self, request: Request, /) -> AsyncGenerator[AsyncIterator[ModelEvent]]:
        if self._next >= len(self._messages):
            raise ModelError(f"The script has {len(self._messages)} messages and was asked for one more.", "request")
        self._next += 1
        async with aclosing(self._play(self._messages[self._next - 1])) as events:
            yield events

    async def _play(self, events: Sequence[ModelEvent]) -> AsyncGenerator[ModelEvent]:
        for event in events:
            if self._pause and isinstance(event, TextDelta):
                await asyncio.sleep(self._pause)
            yield event


def says(text: str, *calls: ToolCall) -> list[ModelEvent]:
    """One message: the text word by word, then the calls.

    >>> [type(event).__name__ for event in says("Two words", ToolCall("1", "Read", {}))]
    ['TextDelta', 'TextDelta', 'CallReady', 'Stopped']
    """
    return [*words(text), *(CallReady(call) for call in calls), Stopped("tool_use" if calls else "end")]


def words(text: str) -> list[TextDelta]:
    """The text as a model would stream it.

    >>> words("Two words")
    [TextDelta(text='Two '), TextDelta(text='words')]
    """
    return [TextDelta(piece) for piece in re.findall(r"\S+\s*|\s+", text)]
