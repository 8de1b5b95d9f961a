"""A conversation with each strict service: what every wire has to pass, whoever answers."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from ferrule.core.calls import ToolCall
from ferrule.core.content import Block, Text
from ferrule.core.model import (
    AssistantPart,
    AssistantTurn,
    CallReady,
    ModelEvent,
    ModelProvider,
    Request,
    ResultTurn,
    Stopped,
    TextDelta,
    ThoughtReady,
    ToolResult,
    Turn,
    UserTurn,
)
from ferrule.host.http.http_client import HttpClient
from ferrule.providers.model_catalog import open_model
from ferrule.providers.retry import Retries
from ferrule.testing.model_server import ModelServer
from ferrule.testing.services import SERVICES, StrictService, open_service
from tests.providers.hearing import heard, tools

ROOM = 200_000
"""Tokens: more than any conversation here has."""
SYSTEM = "You help."


def every_service(failing: Mapping[str, str] | None = None) -> pytest.MarkDecorator:
    """Each service by name. One that fails for a known finding must be taken off the list when it passes."""
    known = failing or {}
    params = [
        pytest.param(name, marks=pytest.mark.xfail(strict=True, reason=known[name])) if name in known else name
        for name in SERVICES
    ]
    return pytest.mark.parametrize("name", params)


@dataclass
class Conversation:
    """Asks until there are no more calls, as the loop does; answers each call with `reply`."""

    service: StrictService
    server: ModelServer
    model: ModelProvider
    history: list[Turn] = field(default_factory=list[Turn])
    events: list[ModelEvent] = field(default_factory=list[ModelEvent])

    async def say(self, *prompt: Block | str, reply: Callable[[ToolCall], tuple[Block, ...]], note: str = "") -> str:
        """The words of the last message; `note` follows the results, as the engine's notes do."""
        blocks = tuple(Text(block) if isinstance(block, str) else block for block in prompt)
        self.history.append(UserTurn(blocks))
        while True:
            request = Request(self.history, tools(2), 2, SYSTEM, max_tokens=8000, thinking_tokens=2000)
            events = await heard(self.model, request)
            self.events += events
            turn = turn_of(events)
            self.history.append(turn)
            if not turn.calls:
                return turn.text
            results = tuple(ToolResult(call.id, reply(call), is_error=False) for call in turn.calls)
            self.history.append(ResultTurn(results, (note,) if note else ()))

    def check(self) -> None:
        """Nothing is refused twice: what a service does not take is learned at once, if it was not known."""
        bodies = [json.dumps(refusal.body) for refusal in self.server.refusals]
        assert len(set(bodies)) == len(bodies) <= 2, bodies


def turn_of(events: list[ModelEvent]) -> AssistantTurn:
    """What the loop keeps of a message."""
    assert isinstance(events[-1], Stopped), events[-1]
    parts: list[AssistantPart] = []
    for event in events:
        match event:
            case ThoughtReady(thought):
                parts.append(thought)
            case TextDelta(text) if parts and isinstance(parts[-1], Text):
                parts[-1] = Text(parts[-1].text + text)
            case TextDelta(text):
                parts.append(Text(text))
            case CallReady(call):
                parts.append(call)
            case _:
                pass
    return AssistantTurn(tuple(parts))


@asynccontextmanager
async def conversing(
    name: str, *turns: Mapping[str, Any], window: int = ROOM, retries: Retries | None = None
) -> AsyncGenerator[Conversation]:
    service = open_service(name, window=window)
    async with ModelServer.playing({"turns": list(turns)}, service=service) as server, HttpClient({}) as client:
        model = open_model(service.model, server.environ, client=client, retries=retries or AT_ONCE)
        yield Conversation(service, server, model)


async def _no_pause(seconds: float) -> None:
    """A test does not wait."""


AT_ONCE = Retries(sleep=_no_pause)


def texts_sent(body: Any) -> list[str]:
    """All texts in a request, wherever the format has them."""
    match body:
        case str():
            return [body]
        case dict():
            return [text for value in cast(dict[str, Any], body).values() for text in texts_sent(value)]
        case list():
            return [text for value in cast(list[Any], body) for text in texts_sent(value)]
        case _:
            return []
