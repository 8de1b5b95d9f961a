"""kimi-cli: its own toolset on kosong, with hooks and the detection of repeated calls."""

from __future__ import annotations

from asyncio import Future
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from kimi_cli.soul.toolset import KimiToolset

from ..timing import Work
from .kosong import Echo, tool_call


@asynccontextmanager
async def one_call() -> AsyncGenerator[dict[str, Work]]:
    tools = KimiToolset()
    tools.add(Echo())

    async def call() -> None:
        tools.begin_step([])  # each call is a message of its own, so none counts as a repetition
        handled = tools.handle(tool_call())
        assert isinstance(handled, Future)
        result = await handled
        assert not result.return_value.is_error, result
        tools.end_step()

    yield {"kimi": call}
