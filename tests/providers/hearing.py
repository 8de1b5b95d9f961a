"""Asking a model, and what a conversation of every kind looks like."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from ferrule.core.calls import ToolCall
from ferrule.core.content import Document, Image, Text
from ferrule.core.model import (
    AssistantTurn,
    CallReady,
    ModelError,
    ModelEvent,
    ModelProvider,
    Request,
    ResultTurn,
    TextDelta,
    Thought,
    ToolResult,
    Turn,
    UserTurn,
)
from ferrule.core.tool import ToolSpec
from ferrule.host.http.http_client import HttpClient
from ferrule.host.http.urls import Url
from ferrule.providers.model_catalog import open_model
from ferrule.providers.retry import Retries
from ferrule.providers.service_errors import ServiceAddress
from ferrule.testing.model_server import ModelServer

PICTURE = Image("image/png", "aGVsbG8=")
PAPER = Document("application/pdf", "aGVsbG8=", "a paper")
HELLO = Request([UserTurn.saying("hello")], ())
SERVICE = ServiceAddress(
    name="The service",
    url=Url.parse("http://127.0.0.1/"),
    headers=(),
    model="m",
    key_variable="KEY",
    url_variable="URL",
)


async def heard(model: ModelProvider, request: Request = HELLO) -> list[ModelEvent]:
    async with model.stream(request) as events:
        return [event async for event in events]


async def heard_until_error(model: ModelProvider, request: Request = HELLO) -> tuple[list[ModelEvent], ModelError]:
    events: list[ModelEvent] = []
    try:
        async with model.stream(request) as stream:
            async for event in stream:
                events.append(event)  # noqa: PERF401 - those before the error are wanted
    except ModelError as error:
        return events, error
    raise AssertionError(f"no error came: {events}")


@asynccontextmanager
async def models_at(server: ModelServer, retries: Retries | None = None) -> AsyncIterator[tuple[ModelProvider, ...]]:
    """One for each wire."""
    openai = {"OPENAI_BASE_URL": server.url}
    async with HttpClient({}) as client:
        yield (
            open_model("anthropic:m", {"ANTHROPIC_BASE_URL": server.url}, client=client, retries=retries),
            open_model("openai:m", openai, client=client, retries=retries),
            open_model("openai:m", {**openai, "FERRULE_OPENAI_API": "responses"}, client=client, retries=retries),
        )


def calls_of(events: Sequence[ModelEvent]) -> list[ToolCall]:
    return [event.call for event in events if isinstance(event, CallReady)]


def text_of(events: Sequence[ModelEvent]) -> str:
    return "".join(event.text for event in events if isinstance(event, TextDelta))


def tools(count: int) -> tuple[ToolSpec, ...]:
    schema = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
    return tuple(ToolSpec(f"Tool{number}", f"Tool {number}", "Does things.", schema) for number in range(count))


def long_history() -> list[Turn]:
    """A turn of every kind, with everything in it that can be."""
    return [
        UserTurn((Text("look at this"), PICTURE, PAPER)),
        AssistantTurn(
            (
                Thought("hm", signature="signed"),
                Thought("", redacted="secret"),
                Thought("of another service"),
                Text("I will."),
                ToolCall("call_1", "Tool0", {"path": "ü\ud800", "n": float("nan")}),
                ToolCall("functions.Tool1:0", "Tool1", {}, malformed="{no"),
            )
        ),
        ResultTurn(
            (
                ToolResult("call_1", (Text("done"), PICTURE), is_error=False),
                ToolResult("functions.Tool1:0", (Text(""),), is_error=True),
            ),
            ("<note>\nsomething changed\n</note>",),
        ),
        AssistantTurn((Thought("unsigned only"),)),
        UserTurn((Text(" "),)),
        AssistantTurn((Text("ok"),)),
        UserTurn.saying("go on"),
    ]
