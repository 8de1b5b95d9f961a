"""What options do: system prompts, settings, pieces of messages, standard error, a budget."""

import asyncio
from pathlib import Path

from ferrule.compat.claude_agent_sdk import (
    AssistantMessage,
    ClaudeAgentOptions,
    ClaudeSDKClient,
    ResultMessage,
    StreamEvent,
    SystemMessage,
    TextBlock,
    query,
)


async def ask(title: str, options: ClaudeAgentOptions) -> None:
    print(f"--- {title}")
    async for message in query(prompt="What is 2 + 2?", options=options):
        if isinstance(message, AssistantMessage):
            for block in message.content:
                if isinstance(block, TextBlock):
                    print(f"Model: {block.text}")
        elif isinstance(message, ResultMessage):
            print(f"Ended: {message.subtype}")


async def pieces() -> None:
    print("--- pieces of messages")
    async with ClaudeSDKClient(ClaudeAgentOptions(include_partial_messages=True)) as client:
        await client.query("Think of three jokes.")
        async for message in client.receive_response():
            if isinstance(message, StreamEvent):
                delta = message.event.get("delta", {})
                if delta.get("type") == "text_delta":
                    print(f"Piece: {delta['text']!r}")


async def sources() -> None:
    print("--- setting sources")
    for chosen in (None, []):
        options = ClaudeAgentOptions(setting_sources=chosen, cwd=Path.cwd())
        async with ClaudeSDKClient(options) as client:
            await client.query("What is 2 + 2?")
            async for message in client.receive_response():
                if isinstance(message, SystemMessage) and message.subtype == "init":
                    print(f"Mode with {chosen}: {message.data['permissionMode']}")


async def main() -> None:
    await ask("no system prompt", ClaudeAgentOptions())
    await ask("one's own", ClaudeAgentOptions(system_prompt="You are a pirate."))
    preset = ClaudeAgentOptions(
        system_prompt={"type": "preset", "preset": "claude_code", "append": "End with a fun fact."}
    )
    await ask("the built-in one with more", preset)
    await pieces()
    await sources()
    lines: list[str] = []
    await ask("standard error", ClaudeAgentOptions(stderr=lines.append, extra_args={"debug-to-stderr": None}))
    print(f"Lines: {len(lines)}")
    await ask("a budget", ClaudeAgentOptions(max_budget_usd=0.0001))


if __name__ == "__main__":
    asyncio.run(main())
