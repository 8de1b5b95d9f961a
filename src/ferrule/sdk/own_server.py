"""A server of this very process in the pool of one session: plain tools, with no protocol between."""

from __future__ import annotations

from collections.abc import Callable

from ..engine.pool import Registry
from ..mcp.naming import tool_name
from .tools import SdkServer, SdkTool


class OwnServer:
    """Its tools under the names that models know them by, kept as they change."""

    def __init__(self, server: SdkServer, part: str | None, registry: Registry) -> None:
        """`part` stands for it in the names of its tools; without one they keep the names they have."""
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
        """Follow its changes no longer."""
        unlisten, self._unlisten = self._unlisten, None
        if unlisten is not None:
            unlisten()

    def _renew(self) -> None:
        """Each with the tool that it was made of, so that one that is as it was is not replaced."""
        before, self._tools = self._tools, {}
        for tool in self._server.tools:
            name = tool.name if self._part is None else tool_name(self._part, tool.name, self._tools)
            known = before.get(name)
            self._tools[name] = known if known and known[0] is tool else (tool, tool.rename(name))
        gone = [name for name, pair in before.items() if self._tools.get(name) is not pair]
        come = [pair[1] for name, pair in self._tools.items() if before.get(name) is not pair]
        self._registry.replace_remote(gone, come)
