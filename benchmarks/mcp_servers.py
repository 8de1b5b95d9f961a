"""One tool on two servers over stdio: ours, as `ferrule serve` runs it, and the package's own (`--bare`).

The bare one has no rules, no effects, no budget, no events and no record.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any


def numbered(file_path: str) -> str:
    """The lines of a file with their numbers."""
    lines = Path(file_path).read_text(encoding="utf-8").split("\n")
    return "\n".join(f"{number:6}\t{line}" for number, line in enumerate(lines, 1))


async def bare() -> None:
    from mcp import types
    from mcp.server.lowlevel.server import Server
    from mcp.server.stdio import stdio_server

    schema = {"type": "object", "properties": {"file_path": {"type": "string"}}, "required": ["file_path"]}

    async def list_tools(ctx: Any, params: Any) -> types.ListToolsResult:
        tool = types.Tool(name="numbered", description=numbered.__doc__, input_schema=schema)
        return types.ListToolsResult(tools=[tool])

    async def call_tool(ctx: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        text = numbered(**(params.arguments or {}))
        return types.CallToolResult(content=[types.TextContent(text=text)])

    server: Server[Any] = Server("bare", on_list_tools=list_tools, on_call_tool=call_tool)
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())


async def ours() -> None:
    from ferrule.app.build import Settings, open_session
    from ferrule.cli.stdio import InputLines, StdoutWriter
    from ferrule.core.effects import Effects
    from ferrule.core.functions import tool
    from ferrule.server.desk import Desk
    from ferrule.server.stdio_server import serve_stdio

    @tool(name="numbered", effects=lambda file_path: Effects.reading(file_path))  # noqa: PLW0108 - called by name
    async def served(file_path: str) -> str:
        """The lines of a file with their numbers."""
        return numbered(file_path)

    desk = Desk(lambda person: open_session(Settings(), tools=(served,), person=person))
    await serve_stdio(desk, desk.server(), InputLines(), StdoutWriter())


if __name__ == "__main__":
    asyncio.run(bare() if "--bare" in sys.argv else ours())
