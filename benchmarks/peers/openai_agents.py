"""openai-agents: a function tool invoked as its runner does, without its guardrails and tracing."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from agents import function_tool
from agents.tool_context import ToolContext

from ..subject import ARGUMENTS
from ..timing import Work


@function_tool
async def echo(text: str) -> str:
    """Say it back."""
    return text


@asynccontextmanager
async def one_call() -> AsyncGenerator[dict[str, Work]]:
    async def call() -> None:
        context = ToolContext(None, tool_name="echo", tool_call_id="0", tool_arguments=ARGUMENTS)
        await echo.on_invoke_tool(context, ARGUMENTS)

    yield {"openai-agents": call}
