"""Agents of the program's own, which the model gives work to."""

import asyncio

from ferrule.compat.claude_agent_sdk import (
    AgentDefinition,
    AssistantMessage,
    ClaudeAgentOptions,
    ResultMessage,
    TextBlock,
    query,
)

OPTIONS = ClaudeAgentOptions(
    agents={
        "code-reviewer": AgentDefinition(
            description="Reviews code for faults and good habits",
            prompt="You review code. Name faults first, then what could be better.",
            tools=["Read", "Grep"],
            model="sonnet",
        ),
        "doc-writer": AgentDefinition(
            description="Writes documentation", prompt="You write short and exact documentation."
        ),
    }
)


async def main() -> None:
    async for message in query(prompt="Let the code reviewer look at this folder.", options=OPTIONS):
        if isinstance(message, AssistantMessage):
            for block in message.content:
                if isinstance(block, TextBlock):
                    print(f"Model: {block.text}")
        elif isinstance(message, ResultMessage):
            print(f"Ended: {message.subtype}")


if __name__ == "__main__":
    asyncio.run(main())
