"""The servers of one session, and their tools in its pool.

Tools come from the cache of lists at first, from the server when it is up, and
again when it says that they changed. Once the schemas of all of them take more
than a part of the context window, they are deferred, and stay so.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from ..core.events import Emit, ListChanged
from ..core.tool import ToolDefinitionError
from ..core.values import named_value, plain_value
from ..engine.pool import Registry
from .callbacks import Kind
from .config import ServerConfig
from .launcher import Launcher
from .listing import PromptInfo
from .mcp_tools import CHARACTERS_PER_TOKEN, DEFAULT_TOKENS, McpTool
from .naming import tool_name
from .results import SavedFiles
from .server_connection import ServerConnection
from .server_context import Around, ServerTrouble

log = logging.getLogger(__name__)

WINDOW: Final = 200_000
"""Tokens, if the model's window is not known."""


@named_value
class ServerLimits:
    window: int = WINDOW
    defer_beyond: float | None = 0.1
    """The part of the window that schemas may take before tools are deferred; `None` for never."""
    result_tokens: int = DEFAULT_TOKENS


@plain_value
class Prompt:
    """A prompt that a server offers, under the name that a person calls it by."""

    name: str
    server: str
    info: PromptInfo


class McpServers:
    """Made without starting anything. Whoever opened it closes it."""

    def __init__(self, configs: Iterable[ServerConfig], around: Around, limits: ServerLimits | None = None) -> None:
        self._limits = limits or ServerLimits()
        self._connections = {config.name: ServerConnection(config, around, self._on_change) for config in configs}
        self._tools: dict[str, dict[str, McpTool]] = {name: {} for name in self._connections}
        self._registry: Registry | None = None
        self._emit: Emit | None = None
        self.files = SavedFiles(around.state_folder / "mcp" / "files")
        self._deferred = False

    def attach(self, registry: Registry, emit: Emit, folder: Path, launcher: Launcher | None = None) -> None:
        """To a session: its pool takes the known tools, and its folder data that a model cannot read.

        The launcher is for servers of one session alone: what one session denies is not hidden from another's.
        """
        shared = self._registry is not None
        for connection in self._connections.values():
            connection.hold.launcher = None if shared else launcher
        self._registry, self._emit = registry, emit
        self.files = SavedFiles(folder)
        self._renew(self._connections.values())

    def start(self) -> None:
        """All of them, in the background. One that was not started is started by its first use."""
        for connection in self._connections.values():
            connection.start()

    async def wait_until_known(self, seconds: float) -> None:
        """Wait until each whose tools are not known is up or has failed, but not longer than this.

        After one wait in vain, a server is not waited for again.
        """
        unknown = [connection for connection in self._connections.values() if connection.is_awaited]
        waiting = [asyncio.ensure_future(_try_connect(connection)) for connection in unknown]
        if waiting:
            _, late = await asyncio.wait(waiting, timeout=seconds)
            for task in late:
                task.cancel()
            for connection in unknown:
                if connection.listing is None:
                    connection.note_in_vain()

    async def close(self) -> None:
        if self._connections:
            await asyncio.gather(*(connection.close() for connection in self._connections.values()))

    # What there is

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._connections)

    @property
    def connections(self) -> tuple[ServerConnection, ...]:
        return tuple(self._connections.values())

    def get(self, name: str) -> ServerConnection:
        """By its name, or by its part of the names of tools. Raises `ServerTrouble`."""
        for connection in self._connections.values():
            if name in (connection.config.name, connection.config.part):
                return connection
        there = ", ".join(self._connections) or "none"
        raise ServerTrouble(f"The server `{name}` was not found. Available: {there}.")

    def keeps_from_paths(self, server: str) -> bool:
        """Whether denied paths are out of reach for this server, or will be before its next call."""
        connection = self._connections.get(server)
        return connection is not None and connection.hold.keeps_from_paths

    def tools(self) -> tuple[McpTool, ...]:
        return tuple(tool for tools in self._tools.values() for tool in tools.values())

    def prompts(self) -> tuple[Prompt, ...]:
        return tuple(
            Prompt(tool_name(connection.config.part, info.name), connection.config.name, info)
            for connection in self._connections.values()
            if connection.listing is not None
            for info in connection.listing.prompts
        )

    # Changes

    def _on_change(self, connection: ServerConnection, kind: Kind) -> None:
        if kind == "tools":
            self._renew((connection,))
        elif self._emit is not None:
            prompts = [prompt.name for prompt in self.prompts() if prompt.server == connection.config.name]
            self._emit(ListChanged(kind, tuple(prompts) if kind == "prompts" else (connection.config.name,)))

    def _renew(self, connections: Iterable[ServerConnection]) -> None:
        """Update the pool to what these servers offer, as one change."""
        gone, come = dict[str, McpTool](), dict[str, McpTool]()
        for connection in connections:
            before = self._tools[connection.config.name]
            after = self._make_tools(connection, before)
            self._tools[connection.config.name] = after
            gone |= {name: tool for name, tool in before.items() if after.get(name) is not tool}
            come |= {name: tool for name, tool in after.items() if before.get(name) is not tool}
        if not self._deferred and self._is_too_much():
            self._deferred = True
            gone |= {tool.name: tool for tool in self.tools()}
            for connection in self._connections.values():
                self._tools[connection.config.name] = self._make_tools(connection, {})
            come = {tool.name: tool for tool in self.tools()}
        if self._registry is not None and (gone or come):
            self._registry.replace_remote(gone, come.values())

    def _make_tools(self, connection: ServerConnection, before: Mapping[str, McpTool]) -> dict[str, McpTool]:
        """The tools of a server; an unchanged one is the same object."""
        made = dict[str, McpTool]()
        for info in connection.listing.tools if connection.listing is not None else ():
            name = tool_name(connection.config.part, info.name, made)
            known = before.get(name)
            if known is not None and known.info == info:
                made[name] = known
                continue
            tool = McpTool(
                info,
                connection,
                name=name,
                files=self.files,
                tokens=self._limits.result_tokens,
                deferred=self._deferred,
            )
            try:
                _ = tool.cost  # a schema that cannot be written cannot be sent either
            except (ToolDefinitionError, ValueError, TypeError, RecursionError) as error:
                log.warning("%s: the tool %s is left out: %s", connection.config.name, info.name, error)
                continue
            made[name] = tool
        return made

    def _is_too_much(self) -> bool:
        if self._limits.defer_beyond is None:
            return False
        room = self._limits.window * self._limits.defer_beyond * CHARACTERS_PER_TOKEN
        return sum(tool.cost for tool in self.tools()) > room


def limits_from(environment: Mapping[str, str], window: int = WINDOW) -> ServerLimits:
    """
    >>> limits_from({"MAX_MCP_OUTPUT_TOKENS": "5000", "ENABLE_TOOL_SEARCH": "auto:25"}).defer_beyond
    0.25
    """
    tokens = environment.get("MAX_MCP_OUTPUT_TOKENS", "")
    return ServerLimits(
        window=window,
        defer_beyond=_defer_beyond(environment.get("ENABLE_TOOL_SEARCH", "")),
        result_tokens=int(tokens) if tokens.isascii() and tokens.isdecimal() and int(tokens) else DEFAULT_TOKENS,
    )


def _defer_beyond(wish: str) -> float | None:
    kind, _, percent = wish.strip().lower().partition(":")
    if kind == "false":
        return None
    if kind == "true":
        return 0.0
    number = percent if percent.isascii() and percent.isdecimal() else "10"
    return min(int(number), 100) / 100


async def _try_connect(connection: ServerConnection) -> None:
    try:
        await connection.ready()
    except ServerTrouble:
        return  # whoever needs it will be told
