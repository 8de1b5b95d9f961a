"""A server made with the protocol's package: in this process, or over HTTP on a port of this machine."""

from __future__ import annotations

from typing import Any

from mcp.server.mcpserver import Context, MCPServer
from mcp.types import ToolAnnotations


def make() -> MCPServer:
    server = MCPServer("packaged", instructions="From the package.")

    @server.tool(annotations=ToolAnnotations(read_only_hint=True))
    def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    @server.tool()
    async def count(to: int, ctx: Context[Any]) -> str:
        """Count, and report each step."""
        for step in range(to):
            await ctx.report_progress(step + 1, to, f"at {step + 1}")
        return "counted"

    @server.tool(name="odd name/with:signs")
    def odd() -> str:
        """A tool whose name no model's service takes."""
        return "odd"

    @server.tool()
    def broken() -> str:
        """A tool that fails."""
        raise ValueError("it broke")

    @server.resource("note://today")
    def note() -> str:
        """A note."""
        return "buy milk"

    return server
