"""What the tests of conversations share: options for a folder of their own, and ways to read."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

from ferrule.app.session_settings import Settings
from ferrule.core.model import ModelEvent, Request, TextDelta
from ferrule.providers.scripted import ScriptedModel
from ferrule.sdk.messages import AssistantMessage, TextBlock, ToolResultBlock, UserMessage
from ferrule.sdk.options import Options
from ferrule.sdk.tools import create_sdk_mcp_server, tool

HANG = 20.0
"""Seconds after which a test that waits for something has failed."""
Kind = TypeVar("Kind")


@tool("add", "Add two numbers.", {"a": float, "b": float})
async def add(args: dict[str, Any]) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": str(args["a"] + args["b"])}]}


@tool("fail", "Fail.", {})
async def fail(args: dict[str, Any]) -> dict[str, Any]:
    raise ValueError("no luck")


CALC = {"calc": create_sdk_mcp_server("calc", tools=[add, fail])}


class EndlessModel:
    """Says its first word and never comes to an end; `asked` is set by then, `left` when nobody listens any more."""

    name = "endless"
    facts = ScriptedModel.facts

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self.left = asyncio.Event()

    @asynccontextmanager
    async def stream(self, request: Request, /) -> AsyncGenerator[AsyncIterator[ModelEvent]]:
        try:
            yield self._words()
        finally:
            self.left.set()

    async def _words(self) -> AsyncIterator[ModelEvent]:
        yield TextDelta("Well")
        self.asked.set()
        await asyncio.Event().wait()


def options(folder: Path, *messages: Sequence[ModelEvent], **more: Any) -> Options:
    """Nothing of the machine's own settings, and a model that plays these messages."""
    base = Settings(cwd=str(folder), state_folder=folder / "state")
    return Options(**{"base": base, "setting_sources": [], "model": ScriptedModel(messages), **more})


async def read(messages: AsyncIterator[Any]) -> list[Any]:
    async with asyncio.timeout(HANG):
        return [message async for message in messages]


def of(kind: type[Kind], messages: Sequence[Any]) -> list[Kind]:
    return [message for message in messages if isinstance(message, kind)]


def texts(messages: Sequence[Any]) -> list[str]:
    """What the model said."""
    blocks = [block for message in of(AssistantMessage, messages) for block in message.content]
    return [block.text for block in blocks if isinstance(block, TextBlock)]


def results(messages: Sequence[Any]) -> list[ToolResultBlock]:
    blocks = [block for message in of(UserMessage, messages) for block in message.content]
    return [block for block in blocks if isinstance(block, ToolResultBlock)]


async def no_task_but_this() -> None:
    """Return when every other task has ended."""
    async with asyncio.timeout(HANG):
        while len(asyncio.all_tasks()) > 1:
            others = asyncio.all_tasks() - {asyncio.current_task()}
            await asyncio.wait(others)
