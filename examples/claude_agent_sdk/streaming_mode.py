"""A client: several turns, an interrupt, prompts as a stream, and what can be asked about the conversation."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from ferrule.compat.claude_agent_sdk import (
    AssistantMessage,
    ClaudeSDKClient,
    CLIConnectionError,
    Message,
    ResultMessage,
    TextBlock,
    ToolResultBlock,
    ToolUseBlock,
    UserMessage,
)


def display(message: Message) -> None:
    match message:
        case AssistantMessage(content=blocks) | UserMessage(content=list(blocks)):
            for block in blocks:
                match block:
                    case TextBlock(text):
                        print(f"Model: {text}")
                    case ToolUseBlock(name=name, input=input):
                        print(f"Uses {name}: {input}")
                    case ToolResultBlock(content=content):
                        print(f"Result: {content}")
                    case _:
                        pass
        case ResultMessage(subtype=subtype):
            print(f"Ended: {subtype}")
        case _:
            pass


async def several_turns() -> None:
    async with ClaudeSDKClient() as client:
        for prompt in ("What is the capital of France?", "How many people live there?"):
            await client.query(prompt)
            async for message in client.receive_response():
                display(message)


async def with_an_interrupt() -> None:
    async with ClaudeSDKClient() as client:
        await client.query("Count slowly to a hundred.")
        reading = asyncio.create_task(read_response(client))
        await client.interrupt()
        await reading
        await client.query("Never mind. Tell me a joke.")
        await read_response(client)


async def read_response(client: ClaudeSDKClient) -> None:
    async for message in client.receive_response():
        display(message)


async def prompts() -> AsyncIterator[dict[str, Any]]:
    for text in ("What is the capital of Japan?", "What is 15% of 200?"):
        yield {
            "type": "user",
            "message": {"role": "user", "content": text},
            "parent_tool_use_id": None,
            "session_id": "questions",
        }


async def a_stream_of_prompts() -> None:
    async with ClaudeSDKClient() as client:
        await client.query(prompts())
        await read_response(client)
        await read_response(client)


async def a_command() -> None:
    async with ClaudeSDKClient() as client:
        await client.query("List the files here.")
        async for message in client.receive_messages():
            display(message)
            if isinstance(message, ResultMessage):
                break
        info = await client.get_server_info()
        print(f"Output style: {info['output_style']}")


async def not_connected() -> None:
    client = ClaudeSDKClient()
    try:
        await client.query("Is anybody there?")
    except CLIConnectionError as error:
        print(f"Not connected: {error}")
    finally:
        await client.disconnect()


async def main() -> None:
    for example in (several_turns, with_an_interrupt, a_stream_of_prompts, a_command, not_connected):
        print(f"--- {example.__name__}")
        await example()


if __name__ == "__main__":
    asyncio.run(main())
