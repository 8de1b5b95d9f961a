"""What a tool may know about the call it is carrying out.

Facts only. A service (a file system, a search, a spawner) reaches a tool
through its constructor; a change of the session leaves it as a value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, overload

from .content import View
from .effects import Effects, ReadsPath, WritesPath
from .values import frozen_named_value

if TYPE_CHECKING:
    from .calls import ToolOutcome
    from .model import Turn
    from .tool import ToolSpec
    from .verdicts import Verdict


class Prefix(Sequence["Turn"]):
    """The first turns of a growing conversation, without a copy."""

    __slots__ = ("_length", "_turns")

    def __init__(self, turns: Sequence[Turn]) -> None:
        self._turns = turns
        self._length = len(turns)

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, index: int) -> Turn: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Turn]: ...
    def __getitem__(self, index: int | slice) -> Turn | Sequence[Turn]:
        if isinstance(index, slice):
            return self._turns[: self._length][index]
        if not -self._length <= index < self._length:
            raise IndexError(index)
        return self._turns[index % self._length]


@frozen_named_value
class Facts:
    """What applies to every call of one assistant message."""

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
    takes_images: bool = True
    """Whether the model that reads the results can see pictures, and read documents as they are."""
    takes_documents: bool = False


class CallPort(Protocol):
    """The engine's end of a running call."""

    kept: Any

    @property
    def cancelled(self) -> bool: ...

    @property
    def effects(self) -> Effects | None: ...

    @property
    def verdict(self) -> Verdict | None: ...

    @property
    def place(self) -> Any: ...

    def report(self, view: View, /) -> None: ...

    async def invoke(self, name: str, arguments: Mapping[str, Any], /) -> ToolOutcome: ...


class ToolContext:
    """Facts about one call, and the few things a running call may do. Nothing here can be assigned to."""

    __slots__ = ("_call_id", "_cwd", "_facts", "_port")

    def __init__(self, call_id: str, cwd: str, facts: Facts, port: CallPort) -> None:
        self._call_id = call_id
        self._cwd = cwd
        self._facts = facts
        self._port = port

    @property
    def call_id(self) -> str:
        return self._call_id

    @property
    def cwd(self) -> str:
        """The working directory of this moment, absolute."""
        return self._cwd

    @property
    def facts(self) -> Facts:
        return self._facts

    @property
    def depth(self) -> int:
        return len(self._facts.chain)

    @property
    def cancelled(self) -> bool:
        """Whether somebody wants the call to end. For work in threads; a coroutine is cancelled by itself."""
        return self._port.cancelled

    def real(self, path: str) -> str | None:
        """Where the path led when the call was judged; `None` if it is not among the call's effects.

        What is opened must be this: a link that was planted since then leads elsewhere.
        """
        effects = self._port.effects
        for touch in effects.touches if effects is not None else ():
            if isinstance(touch, ReadsPath | WritesPath) and touch.path == path:
                return touch.real or None
        return None

    @property
    def effects(self) -> Effects | None:
        """What the call was judged by; `None` before that."""
        return self._port.effects

    @property
    def verdict(self) -> Verdict | None:
        """Why the call may run, and inside of what; `None` before that is decided."""
        return self._port.verdict

    @property
    def place(self) -> Any:
        """The call's place in the order of calls, for a service that runs further calls inside of this one."""
        return self._port.place

    @property
    def kept(self) -> Any:
        """What `validate` found out and kept for `call`, `None` where it kept nothing."""
        return self._port.kept

    def keep(self, value: Any) -> None:
        """Leave a value for `call`, which then need not look at the world a second time."""
        self._port.kept = value

    def moved_to(self, cwd: str) -> ToolContext:
        return ToolContext(self._call_id, cwd, self._facts, self._port)

    def report(self, view: View) -> None:
        """Show how far the call is. Never waits, never fails."""
        self._port.report(view)

    async def invoke(self, name: str, arguments: Mapping[str, Any]) -> ToolOutcome:
        """Call another tool through the same pipeline, permissions and gate; never raises for a bad call."""
        return await self._port.invoke(name, arguments)
