"""pydantic-ai: its tool manager for one call, its agent with a scripted model for conversations."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from pydantic_ai import Agent, RunContext
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.test import TestModel
from pydantic_ai.tool_manager import ToolManager
from pydantic_ai.toolsets import FunctionToolset
from pydantic_ai.usage import RunUsage, UsageLimits

from ..subject import ARGUMENTS
from ..timing import Work


async def echo(text: str) -> str:
    """Say it back."""
    return text


@asynccontextmanager
async def one_call() -> AsyncGenerator[dict[str, Work]]:
    """Bare, and as an agent runs it: with the hook stages of its capabilities."""
    context = RunContext(deps=None, model=TestModel(), usage=RunUsage())
    bare = await ToolManager(FunctionToolset([echo])).for_run_step(context)
    running = await _tools_of_a_run()
    yield {"pydantic-ai, bare": _caller(bare), "pydantic-ai, in a run": _caller(running)}


@asynccontextmanager
async def conversation(*, turns: int, calls: int) -> AsyncGenerator[dict[str, Work]]:
    script = [ModelResponse([_part(turn * calls + number) for number in range(calls)]) for turn in range(turns)]
    script.append(ModelResponse([TextPart("done")]))

    async def converse() -> None:
        following = iter(script)

        def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
            return next(following)

        with agent.override(model=FunctionModel(answer)):
            await agent.run("go", usage_limits=UsageLimits(request_limit=None))

    agent = Agent(tools=[echo])
    yield {"pydantic-ai": converse}


def _part(number: int) -> ToolCallPart:
    return ToolCallPart("echo", ARGUMENTS, tool_call_id=str(number))


def _caller(tools: ToolManager[None]) -> Work:
    async def call() -> None:
        await tools.handle_call(_part(0))

    return call


async def _tools_of_a_run() -> ToolManager[None]:
    """The tool manager that an agent gives to its own tools."""
    seen: list[ToolManager[None]] = []

    async def look(ctx: RunContext[None]) -> str:
        assert ctx.tool_manager is not None
        seen.append(ctx.tool_manager)
        return ""

    await Agent(TestModel(), deps_type=type(None), tools=[look, echo]).run("go")
    return seen[0]
