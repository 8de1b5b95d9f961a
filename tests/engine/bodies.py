"""Effects and bodies of tools for tests of scheduling."""

from __future__ import annotations

import asyncio

from ferrule.core.context import ToolContext
from ferrule.core.effects import Effects, WritesPath
from ferrule.core.state import MovedTo
from ferrule.core.tool import Result

from .stage import Given, steps


def reading(input: Given, ctx: ToolContext) -> Effects:
    return Effects.reading(input.path or ctx.cwd)


def writing(input: Given, ctx: ToolContext) -> Effects:
    return Effects.of(WritesPath(input.path or ctx.cwd))


async def for_ever(input: Given, ctx: ToolContext) -> None:
    await asyncio.Event().wait()


class Held:
    """A body that says it has begun and goes on when it is let."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.let = asyncio.Event()

    async def __call__(self, input: Given, ctx: ToolContext) -> str:
        self.begun.set()
        await self.let.wait()
        return "let go"


async def begun_within(held: Held, turns: int = 20) -> bool:
    await steps(turns)
    return held.begun.is_set()


async def moves(input: Given, ctx: ToolContext) -> Result[str]:
    await asyncio.sleep(0)
    assert input.path is not None
    return Result("moved", changes=(MovedTo(input.path),))
