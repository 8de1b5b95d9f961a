"""Ask once; ask with options; ask for something that needs tools."""

import asyncio

from ferrule.compat.claude_agent_sdk import AssistantMessage, ClaudeAgentOptions, ResultMessage, TextBlock, query


async def show(prompt: str, options: ClaudeAgentOptions | None = None) -> None:
    async for message in query(prompt=prompt, options=options):
        if isinstance(message, AssistantMessage):
            for block in message.content:
                if isinstance(block, TextBlock):
                    print(f"Model: {block.text}")
        elif isinstance(message, ResultMessage) and message.total_cost_usd:
            print(f"Cost: ${message.total_cost_usd:.4f}")


async def main() -> None:
    await show("What is 2 + 2?")
    brief = ClaudeAgentOptions(system_prompt="You answer in one sentence.", max_turns=1)
    await show("What is Python?", brief)
    files = ClaudeAgentOptions(allowed_tools=["Read", "Write"], system_prompt="You help with files.")
    await show("Create hello.txt with the words Hello, world.", files)


if __name__ == "__main__":
    asyncio.run(main())
