"""Our tools in a loop on the `anthropic` package: python examples/anthropic_loop.py MODEL PROMPT"""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from anthropic import AsyncAnthropic

from ferrule.sdk.toolbox import Question, Toolbox


def ask(question: Question) -> bool:
    """Ask on the terminal; without one, the answer is no."""
    return sys.stdin.isatty() and input(f"{question.tool} {question.would}. Allow? [y/N] ").strip().lower() == "y"


async def answer(model: str, prompt: str) -> str:
    messages: list[Any] = [{"role": "user", "content": prompt}]
    async with AsyncAnthropic() as client, Toolbox(ask=ask) as toolbox:
        while True:
            tools: Any = toolbox.definitions("anthropic")
            response = await client.messages.create(model=model, max_tokens=8_000, messages=messages, tools=tools)
            turns = await toolbox.execute(response)
            if not turns:
                return "".join(block.text for block in response.content if block.type == "text")
            messages += turns


if __name__ == "__main__":
    print(asyncio.run(answer(*sys.argv[1:])))
