"""fastmcp: a client connected to a server in the same process. Its client takes arguments parsed."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from fastmcp import Client, FastMCP

from ..subject import ARGUMENTS
from ..timing import Work

server = FastMCP("benchmark")


@server.tool
async def echo(text: str) -> str:
    """Say it back."""
    return text


@asynccontextmanager
async def one_call() -> AsyncGenerator[dict[str, Work]]:
    async with Client(server) as client:

        async def call() -> None:
            await client.call_tool("echo", json.loads(ARGUMENTS))

        yield {"fastmcp, in memory": call}
