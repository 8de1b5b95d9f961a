"""Call any tool of an MCP server by name."""

from __future__ import annotations

import difflib
from typing import Any, Self

from pydantic import Field

from ..core.calls import Refusal, Status
from ..core.content import Block, View, plain_text
from ..core.context import ToolContext
from ..core.effects import Effects
from ..core.inputs import ToolInput
from ..core.tool import Alias, Exposure, ToolError, load_guide
from ..core.values import plain_value
from ..mcp.mcp_tools import McpTool
from ..mcp.servers import McpServers
from . import NO_SERVERS, BuiltinTool, Services


class CallMcpToolInput(ToolInput):
    server: str | None = Field(default=None, description="The server that has the tool.")
    tool: str = Field(min_length=1, description="The tool's name, as its server has it.")
    arguments: dict[str, Any] = Field(default_factory=dict, description="What the tool is given.")


@plain_value
class Called:
    blocks: tuple[Block, ...]
    view: View


class CallMcpTool(BuiltinTool[CallMcpToolInput, Called]):
    name = "CallMcpTool"
    description = load_guide(__file__)
    hint = "call a tool of an MCP server by name"
    input_model = CallMcpToolInput
    needs = "mcp"
    exposure = Exposure.DEFERRED
    aliases = (
        Alias("McpInput", rename={"server_name": "server", "tool_name": "tool", "name": "tool", "input": "arguments"}),
    )
    result_limit = None  # the tool that is called has its own

    def __init__(self, servers: McpServers | None = None) -> None:
        self._servers = servers

    @classmethod
    def from_services(cls, services: Services) -> Self:
        return cls(services.mcp)

    def unavailable(self) -> str | None:
        return None if self._servers and self._servers.names else NO_SERVERS

    def effects(self, input: CallMcpToolInput, ctx: ToolContext) -> Effects:
        """None of its own: the call that it makes is judged and queued separately."""
        return Effects.of()

    async def call(self, input: CallMcpToolInput, ctx: ToolContext) -> Called:
        assert self._servers is not None, "without servers the tool is off"
        tool = _find_tool(input, self._servers)
        outcome = await ctx.invoke(tool.name, input.arguments)
        if outcome.status is not Status.OK:
            raise Refusal(outcome.status, plain_text(outcome.content))  # it ends as the call that it made did
        return Called(outcome.content, outcome.view)

    def to_model(self, output: Called) -> tuple[Block, ...]:
        return output.blocks

    def describe(self, input: CallMcpToolInput) -> str:
        return f"CallMcpTool {input.server or ''} {input.tool}".replace("  ", " ")[:200]

    def show_result(self, input: CallMcpToolInput, output: Called) -> View:
        return output.view


def _find_tool(input: CallMcpToolInput, servers: McpServers) -> McpTool:
    tools = [tool for tool in servers.tools() if input.tool in (tool.info.name, tool.name)]
    if input.server is not None:
        tools = [tool for tool in tools if input.server in (tool.server, tool.part)]
    if len(tools) == 1:
        return tools[0]
    if tools:
        having = ", ".join(tool.server or "" for tool in tools)
        raise ToolError(f"Several servers have a tool `{input.tool}`: {having}. Say which in `server`.")
    near = difflib.get_close_matches(input.tool, [tool.info.name for tool in servers.tools()], n=3)
    guess = f" Did you mean {' or '.join(dict.fromkeys(near))}?" if near else ""
    where = f"The server `{input.server}` has" if input.server is not None else "The servers have"
    raise ToolError(f"{where} no tool `{input.tool}`.{guess} The servers are: {', '.join(servers.names)}.")
