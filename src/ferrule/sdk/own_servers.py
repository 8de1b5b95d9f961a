"""Tool servers of the program itself, which a conversation uses beside those of the settings."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ..engine.pool import Registry
from ..mcp.config import InProcess, Relayed, ServerConfig
from ..mcp.naming import server_parts, tool_name
from .errors import CannotOpen
from .tools import SdkServer, SdkTool


class OwnServer:
    """Its tools under the names that models use, updated as they change."""

    def __init__(self, server: SdkServer, part: str | None, registry: Registry) -> None:
        """`part` is its part of the names of its tools; without one they keep their names."""
        self._server = server
        self._part = part
        self._registry = registry
        self._tools: dict[str, tuple[SdkTool, SdkTool]] = {}
        self._renew()
        self._unlisten: Callable[[], None] | None = server.listen(self._renew)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._tools)

    def leave(self) -> None:
        """Stop following its changes."""
        unlisten, self._unlisten = self._unlisten, None
        if unlisten is not None:
            unlisten()

    def _renew(self) -> None:
        """Each with the tool that it was made from, so that an unchanged one is not replaced."""
        before, self._tools = self._tools, {}
        for tool in self._server.tools:
            name = tool.name if self._part is None else tool_name(self._part, tool.name, self._tools)
            known = before.get(name)
            self._tools[name] = known if known and known[0] is tool else (tool, tool.rename(name))
        gone = [name for name, pair in before.items() if self._tools.get(name) is not pair]
        come = [pair[1] for name, pair in self._tools.items() if before.get(name) is not pair]
        self._registry.replace_remote(gone, come)


def join_own_servers(servers: Mapping[str, Any], registry: Registry) -> dict[str, OwnServer]:
    """Those made by `create_sdk_mcp_server`, each with its tools in the registry."""
    parts = server_parts(servers)
    return {
        name: OwnServer(server, parts[name], registry)
        for name, server in servers.items()
        if isinstance(server, SdkServer)
    }


def in_process_servers(servers: Mapping[str, Any]) -> Iterator[ServerConfig]:
    """Server objects of the `mcp` package, which are used like any server."""
    parts = server_parts(servers)
    for name, server in servers.items():
        if server is None:
            raise CannotOpen(f"`mcp_servers.{name}` has no `instance`. Make it with create_sdk_mcp_server.")
        if not isinstance(server, SdkServer):
            transport = server if isinstance(server, Relayed) else InProcess(server)
            yield ServerConfig(name=name, transport=transport, part=parts[name], origin="this program")
