"""What the tests of conversations share: options for a folder of their own, and ways to read."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

from ferrule.app.settings import Settings
from ferrule.core.model import ModelEvent
from ferrule.providers.scripted import ScriptedModel
from ferrule.sdk.messages import AssistantMessage, TextBlock, ToolResultBlock, UserMessage
from ferrule.sdk.options import Options

HANG = 20.0
"""Seconds after which a test that waits for something has failed."""
Kind = TypeVar("Kind")


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
