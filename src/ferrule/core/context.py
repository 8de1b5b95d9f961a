"""What a tool may know about the call it is carrying out.

Facts only. A service (a file system, a search, a spawner) reaches a tool
through its constructor; a change of the session leaves it as a value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from .content import View

if TYPE_CHECKING:
    from .calls import ToolOutcome
    from .model import Turn
    from .tool import ToolSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What holds for every call of one assistant message."""

    session_id: str = ""
    turn: int = 0
    agent: str = "main"
    chain: tuple[str, ...] = ()
    """The ids of the calls this one was made inside of, outermost first."""
    model: str = ""
    workspace: str = ""
    added_directories: tuple[str, ...] = ()
    conversation: Sequence[Turn] = ()
    """Read-only, and as long as it was when the message began."""
    tools: tuple[ToolSpec, ...] = ()
    agents: tuple[str, ...] = ()


class CallPort(Protocol):
    """The engine's end of a running call."""

    @property
    def cancelled(self) -> bool: ...

    def report(self, view: View, /) -> None: ...

    async def invoke(self, name: str, arguments: Mapping[str, Any], /) -> ToolOutcome: ...


@dataclass(frozen=True, slots=True)
class ToolContext:
    call_id: str
    cwd: str
    """The working directory of this moment, absolute."""
    facts: Facts
    _port: CallPort

    @property
    def depth(self) -> int:
        return len(self.facts.chain)

    @property
    def cancelled(self) -> bool:
        """Whether somebody wants the call to end. For work in threads; a coroutine is cancelled by itself."""
        return self._port.cancelled

    def report(self, view: View) -> None:
        """Show how far the call is. Never waits, never fails."""
        self._port.report(view)

    async def invoke(self, name: str, arguments: Mapping[str, Any]) -> ToolOutcome:
        """Call another tool through the same pipeline, permissions and gate; never raises for a bad call."""
        return await self._port.invoke(name, arguments)
