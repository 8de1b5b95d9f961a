"""Ferrule as it is measured: one small tool, fifty rules, one subscriber, and a scripted model."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from time import perf_counter

from ferrule import Behavior, Effects, Session, Settings, ToolCall, open_session, tool
from ferrule.core.model import ModelEvent, Request
from ferrule.permissions.rules import parse_rules
from ferrule.providers.scripted import ScriptedModel, says

RULES = 50
ARGUMENTS = '{"text": "hi"}'
"""As text, because that is how every model sends them; a peer that takes text is given the same."""


@tool(effects=Effects.of())
async def echo(text: str) -> str:
    """Say it back."""
    return text


def session() -> Session:
    """Fifty rules, one of which allows the tool that is called."""
    names = [*(f"Tool{number}" for number in range(RULES - 1)), "echo"]
    rules = parse_rules(names, Behavior.ALLOW, "benchmark")
    return open_session(Settings(rules=rules), tools=[echo])


def call(number: int = 0) -> ToolCall:
    return ToolCall.from_text(str(number), "echo", ARGUMENTS)


def script(*, turns: int, calls: int = 1) -> list[list[ModelEvent]]:
    """Messages of `calls` calls each, and a last one that ends the turn."""
    working = [says("", *(call(turn * calls + number) for number in range(calls))) for turn in range(turns)]
    return [*working, says("done")]


async def converse(with_session: Session, messages: Sequence[Sequence[ModelEvent]]) -> list[float]:
    """Play the script in an empty conversation, reading every event. The moment of each request is returned."""
    with_session.history.clear()
    model = _StampedModel(messages)
    async with with_session.ask("go", model) as events:
        async for _ in events:
            pass
    assert len(model.stamps) == len(messages), "the conversation ended early"
    return model.stamps


class _StampedModel(ScriptedModel):
    """Notes when each request came: the time between two of them is one turn, whole."""

    def __init__(self, messages: Sequence[Sequence[ModelEvent]]) -> None:
        super().__init__(messages)
        self.stamps: list[float] = []

    @asynccontextmanager
    async def stream(self, request: Request, /) -> AsyncGenerator[AsyncIterator[ModelEvent]]:
        self.stamps.append(perf_counter())
        async with super().stream(request) as events:
            yield events
