"""Read a resource of an MCP server."""

from __future__ import annotations

import os
from typing import Final, Self
from urllib.parse import unquote, urlsplit

from pydantic import Field

from ..core.content import Block, Line, View
from ..core.context import ToolContext
from ..core.effects import Effects, ReachesHost, ReadsPath, ReadsState
from ..core.inputs import ToolInput
from ..core.threads import in_a_thread
from ..core.tool import Alias, Exposure, ToolError, load_guide
from ..core.values import plain_value
from ..mcp.results import contents_of
from ..mcp.server_context import ServerTrouble
from ..mcp.servers import McpServers
from . import NO_SERVERS, BuiltinTool, Services

NOT_FOUND: Final = (-32002, -32602)
"""The protocol's codes for a missing resource; the second in its newer revisions."""
_NOT_ALLOWED: Final = ("401", "403", "unauthorized", "unauthorised", "forbidden", "permission denied", "access denied")


class ReadMcpResourceInput(ToolInput):
    server: str = Field(min_length=1, description="The server that has it.")
    uri: str = Field(min_length=1, description="Its URI, as ListMcpResources gives it.")


@plain_value
class Content:
    blocks: tuple[Block, ...]


class ReadMcpResource(BuiltinTool[ReadMcpResourceInput, Content]):
    name = "ReadMcpResource"
    description = load_guide(__file__)
    hint = "read a resource of an MCP server"
    input_model = ReadMcpResourceInput
    needs = "mcp"
    exposure = Exposure.DEFERRED
    aliases = (Alias("ReadMcpResourceTool"),)

    def __init__(self, servers: McpServers | None = None) -> None:
        self._servers = servers

    @classmethod
    def from_services(cls, services: Services) -> Self:
        return cls(services.mcp)

    def unavailable(self) -> str | None:
        return None if self._servers and self._servers.names else NO_SERVERS

    def effects(self, input: ReadMcpResourceInput, ctx: ToolContext) -> Effects:
        """A file URI is judged as that file, and a web address as that address."""
        server = ReadsState(f"mcp:{input.server}")
        try:
            parts = urlsplit(input.uri)
            host = parts.hostname
        except ValueError:
            return Effects()
        if parts.scheme == "file":
            path = unquote(parts.path)
            return Effects.of(server, ReadsPath(os.path.normpath(path))) if path.startswith("/") else Effects()
        if parts.scheme in ("http", "https"):
            return Effects.of(server, ReachesHost(host, sends=False)) if host else Effects()
        return Effects.of(server)

    async def call(self, input: ReadMcpResourceInput, ctx: ToolContext) -> Content:
        assert self._servers is not None, "without servers the tool is off"
        try:
            result = await self._servers.get(input.server).read(input.uri)
        except ServerTrouble as trouble:
            raise ToolError(f"{_reason(input, trouble)}{trouble}") from None
        return Content(await in_a_thread(contents_of, result, self._servers.files))

    def to_model(self, output: Content) -> tuple[Block, ...]:
        return output.blocks

    def describe(self, input: ReadMcpResourceInput) -> str:
        return f"ReadMcpResource {input.server} {input.uri[:200]}"

    def show_result(self, input: ReadMcpResourceInput, output: Content) -> View:
        return Line(f"{len(output.blocks)} part{'' if len(output.blocks) == 1 else 's'}")


def _reason(input: ReadMcpResourceInput, trouble: ServerTrouble) -> str:
    if trouble.code in NOT_FOUND:
        return f"{input.uri} was not found. List what there is with ListMcpResources. "
    if trouble.code is not None and any(word in str(trouble).lower() for word in _NOT_ALLOWED):
        return f"{input.uri} may not be read: the server does not allow it. A person may have to sign in. "
    return ""
