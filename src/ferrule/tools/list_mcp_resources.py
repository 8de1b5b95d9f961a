"""List the resources of MCP servers."""

from __future__ import annotations

import asyncio
from typing import Self

from pydantic import Field

from ..core.content import Block, Listing, Text, View
from ..core.context import ToolContext
from ..core.effects import Effects, ReadsState
from ..core.inputs import ToolInput
from ..core.tool import Alias, Exposure, ToolError, load_guide
from ..core.values import plain_value
from ..mcp.listing import ResourceInfo
from ..mcp.server_connection import ServerConnection
from ..mcp.server_context import ServerTrouble
from ..mcp.servers import McpServers
from . import NO_SERVERS, BuiltinTool, Services


class ListMcpResourcesInput(ToolInput):
    server: str | None = Field(default=None, description="The server to ask. Leave it out to ask all.")


@plain_value
class Offered:
    """What one server has, or why it could not say."""

    server: str
    resources: tuple[ResourceInfo, ...] = ()
    trouble: str = ""


class ListMcpResources(BuiltinTool[ListMcpResourcesInput, tuple[Offered, ...]]):
    name = "ListMcpResources"
    description = load_guide(__file__)
    hint = "list what MCP servers offer to read"
    input_model = ListMcpResourcesInput
    needs = "mcp"
    exposure = Exposure.DEFERRED
    aliases = (Alias("ListMcpResourcesTool"),)

    def __init__(self, servers: McpServers | None = None) -> None:
        self._servers = servers

    @classmethod
    def from_services(cls, services: Services) -> Self:
        return cls(services.mcp)

    def unavailable(self) -> str | None:
        return None if self._servers and self._servers.names else NO_SERVERS

    def effects(self, input: ListMcpResourcesInput, ctx: ToolContext) -> Effects:
        return Effects.of(ReadsState(f"mcp:{input.server}" if input.server else "mcp"))

    async def call(self, input: ListMcpResourcesInput, ctx: ToolContext) -> tuple[Offered, ...]:
        assert self._servers is not None, "without servers the tool is off"
        if input.server is None:
            return tuple(await asyncio.gather(*(_offer_of(one) for one in self._servers.connections)))
        try:
            connection = self._servers.get(input.server)
        except ServerTrouble as trouble:
            raise ToolError(str(trouble)) from None
        offered = await _offer_of(connection)
        if offered.trouble:
            raise ToolError(offered.trouble)
        return (offered,)

    def to_model(self, output: tuple[Offered, ...]) -> tuple[Block, ...]:
        return (Text("\n\n".join(map(_list_offer, output))),)

    def show_result(self, input: ListMcpResourcesInput, output: tuple[Offered, ...]) -> View:
        uris = tuple(resource.uri for one in output for resource in one.resources)
        return Listing(uris, len(uris))


async def _offer_of(connection: ServerConnection) -> Offered:
    try:
        return Offered(connection.config.name, await connection.resources())
    except ServerTrouble as trouble:
        return Offered(connection.config.name, trouble=str(trouble))


def _list_offer(offered: Offered) -> str:
    if offered.trouble:
        return f"{offered.server}: {offered.trouble}"
    lines = (f"- {_describe(resource)}" for resource in offered.resources)
    return "\n".join((f"{offered.server}:", *lines)) if offered.resources else f"{offered.server}: nothing to read"


def _describe(resource: ResourceInfo) -> str:
    kind = "template" if resource.is_template else resource.media_type
    size = f"{resource.size:,} bytes" if resource.size is not None else ""
    facts = ", ".join(filter(None, (kind, size)))
    words = "; ".join(dict.fromkeys(filter(None, (resource.name, " ".join(resource.description.split())))))
    return f"{resource.uri}{f' ({facts})' if facts else ''}{f': {words}' if words != resource.uri else ''}"
