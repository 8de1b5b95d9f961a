"""Our tools as a list of LangChain tools, for any chat model or agent that takes such a list."""

from __future__ import annotations

from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.tools import BaseTool, StructuredTool

from ferrule.core.content import plain_text
from ferrule.core.tool import ToolSpec
from ferrule.sdk.toolbox import Toolbox


def langchain_tools(toolbox: Toolbox) -> list[BaseTool]:
    return [_langchain_tool(toolbox, spec) for spec in toolbox.specs()]


def _langchain_tool(toolbox: Toolbox, spec: ToolSpec) -> BaseTool:
    async def call(**arguments: Any) -> str:
        return plain_text((await toolbox.call(spec.name, arguments)).content)

    return StructuredTool(
        name=spec.name, description=spec.description, args_schema=dict(spec.input_schema), coroutine=call
    )


async def answer(model: BaseChatModel, prompt: str) -> str:
    messages: list[BaseMessage] = [HumanMessage(prompt)]
    async with Toolbox() as toolbox:
        tools = {tool.name: tool for tool in langchain_tools(toolbox)}
        bound = model.bind_tools(list(tools.values()))
        while True:
            reply = await bound.ainvoke(messages)
            assert isinstance(reply, AIMessage)
            if not reply.tool_calls:
                return str(reply.content)
            messages.append(reply)
            for call in reply.tool_calls:
                result = await tools[call["name"]].ainvoke(call)
                assert isinstance(result, ToolMessage)
                messages.append(result)
