"""kosong: its simple toolset for one call, its `step` over a scripted provider for conversations."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import kosong
from kosong.chat_provider.mock import MockChatProvider
from kosong.message import Message, TextPart, ToolCall
from kosong.tooling import CallableTool2, ToolOk, ToolReturnValue
from kosong.tooling.simple import SimpleToolset
from pydantic import BaseModel

from ..subject import ARGUMENTS
from ..timing import Work


class EchoParams(BaseModel):
    text: str


class Echo(CallableTool2[EchoParams]):
    name: str = "echo"
    description: str = "Say it back."
    params: type[EchoParams] = EchoParams

    async def __call__(self, params: EchoParams) -> ToolReturnValue:
        return ToolOk(output=params.text)


def tool_call(number: int = 0) -> ToolCall:
    return ToolCall(id=str(number), function=ToolCall.FunctionBody(name="echo", arguments=ARGUMENTS))


@asynccontextmanager
async def one_call() -> AsyncGenerator[dict[str, Work]]:
    tools = SimpleToolset([Echo()])

    async def call() -> None:
        handled = tools.handle(tool_call())
        assert not isinstance(handled, kosong.tooling.ToolResult)
        await handled

    yield {"kosong": call}


@asynccontextmanager
async def conversation(*, turns: int, calls: int) -> AsyncGenerator[dict[str, Work]]:
    """kosong leaves the loop to its user, so this is the one its guide shows: step, remember, repeat."""
    tools = SimpleToolset([Echo()])
    providers = [
        MockChatProvider([tool_call(turn * calls + number) for number in range(calls)]) for turn in range(turns)
    ]
    providers.append(MockChatProvider([TextPart(text="done")]))

    async def converse() -> None:
        history = [Message(role="user", content="go")]
        for provider in providers:
            step = await kosong.step(provider, "", tools, history)
            history.append(step.message)
            for result in await step.tool_results():
                output = result.return_value.output
                history.append(Message(role="tool", tool_call_id=result.tool_call_id, content=output))

    yield {"kosong": converse}
