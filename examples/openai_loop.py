"""Our tools in a loop on the `openai` package: python examples/openai_loop.py MODEL PROMPT"""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from openai import AsyncOpenAI

from ferrule.sdk.toolbox import Toolbox


async def answer(model: str, prompt: str) -> str:
    messages: list[Any] = [{"role": "user", "content": prompt}]
    async with AsyncOpenAI() as client, Toolbox(allow=["Write", "Edit"]) as toolbox:
        while True:
            tools: Any = toolbox.definitions("openai")
            response = await client.chat.completions.create(model=model, messages=messages, tools=tools)
            turns = await toolbox.execute(response)
            if not turns:
                return response.choices[0].message.content or ""
            messages += turns


if __name__ == "__main__":
    print(asyncio.run(answer(*sys.argv[1:])))
