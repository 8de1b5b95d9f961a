"""Our tools as a toolset of pydantic-ai: python examples/pydantic_ai_toolset.py MODEL PROMPT

MODEL is as pydantic-ai writes it, such as `openai-chat:gpt-5`.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from pydantic_ai import Agent, RunContext, ToolDefinition
from pydantic_ai.toolsets import AbstractToolset, ToolsetTool
from pydantic_core import SchemaValidator, core_schema

from ferrule.core.content import plain_text
from ferrule.sdk.toolbox import Toolbox

ANYTHING = SchemaValidator(core_schema.any_schema())
"""The tools check their arguments themselves, and tell the model what is wrong."""


class FerruleToolset(AbstractToolset[Any]):
    def __init__(self, toolbox: Toolbox) -> None:
        self._toolbox = toolbox

    @property
    def id(self) -> str:
        return "ferrule"

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        return {
            spec.name: ToolsetTool(
                toolset=self,
                tool_def=ToolDefinition(
                    name=spec.name, description=spec.description, parameters_json_schema=dict(spec.input_schema)
                ),
                max_retries=0,
                args_validator=ANYTHING,
            )
            for spec in self._toolbox.specs()
        }

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> str:
        return plain_text((await self._toolbox.call(name, tool_args)).content)


async def answer(model: str, prompt: str) -> str:
    async with Toolbox() as toolbox:
        agent = Agent(model, toolsets=[FerruleToolset(toolbox)])
        return (await agent.run(prompt)).output


if __name__ == "__main__":
    print(asyncio.run(answer(*sys.argv[1:])))
