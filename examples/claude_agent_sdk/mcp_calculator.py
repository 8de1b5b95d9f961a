"""Tools of one's own: a calculator as a server in the same process."""

import asyncio
import math
from typing import Any

from ferrule.compat.claude_agent_sdk import (
    AssistantMessage,
    ClaudeAgentOptions,
    ClaudeSDKClient,
    ResultMessage,
    TextBlock,
    ToolResultBlock,
    ToolUseBlock,
    UserMessage,
    create_sdk_mcp_server,
    tool,
)


def says(text: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}]}


@tool("add", "Add two numbers", {"a": float, "b": float})
async def add(args: dict[str, Any]) -> dict[str, Any]:
    return says(f"{args['a']} + {args['b']} = {args['a'] + args['b']}")


@tool("divide", "Divide one number by another", {"a": float, "b": float})
async def divide(args: dict[str, Any]) -> dict[str, Any]:
    if args["b"] == 0:
        return {**says("There is no division by zero."), "is_error": True}
    return says(f"{args['a']} / {args['b']} = {args['a'] / args['b']}")


@tool("sqrt", "The square root of a number", {"n": float})
async def square_root(args: dict[str, Any]) -> dict[str, Any]:
    return says(f"{math.sqrt(args['n'])}")  # a negative one raises, and the model is told


async def main() -> None:
    calculator = create_sdk_mcp_server(name="calculator", version="2.0.0", tools=[add, divide, square_root])
    options = ClaudeAgentOptions(
        mcp_servers={"calc": calculator},
        allowed_tools=["mcp__calc__add", "mcp__calc__divide", "mcp__calc__sqrt"],
    )
    async with ClaudeSDKClient(options=options) as client:
        await client.query("What is 15 + 27, what is 1 / 0, and what is the root of -1?")
        async for message in client.receive_response():
            if isinstance(message, AssistantMessage | UserMessage):
                for block in message.content:
                    if isinstance(block, TextBlock):
                        print(f"Model: {block.text}")
                    elif isinstance(block, ToolUseBlock):
                        print(f"Uses {block.name}: {block.input}")
                    elif isinstance(block, ToolResultBlock):
                        print(f"Result{' (error)' if block.is_error else ''}: {block.content}")
            elif isinstance(message, ResultMessage):
                print(f"Ended: {message.subtype}")


if __name__ == "__main__":
    asyncio.run(main())
