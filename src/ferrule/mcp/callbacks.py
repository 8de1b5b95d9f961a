"""What a connection asks of its owner and reports to it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

from ..core.values import named_value
from .clock import CallClock, hold
from .token_store import TokenFile

if TYPE_CHECKING:
    from .config import Stdio
    from .server_process import ErrorLog, ServerProcess

Kind: TypeAlias = Literal["tools", "resources", "prompts"]


class OnProgress(Protocol):
    async def __call__(self, progress: float, total: float | None, message: str | None) -> None: ...


class SignIn(Protocol):
    """A person who can be sent to a page and returns with its result."""

    @property
    def address(self) -> str:
        """Where the page sends them back to."""
        ...

    async def send_to(self, url: str, /) -> None: ...

    async def answer(self) -> Mapping[str, str]:
        """The parameters of the redirect."""
        ...


class Unhurried:
    """Somebody who signs in while no time runs out. Satisfies `SignIn`."""

    def __init__(self, person: SignIn, clocks: Collection[CallClock]) -> None:
        self._person = person
        self._clocks = clocks

    @property
    def address(self) -> str:
        return self._person.address

    async def send_to(self, url: str, /) -> None:
        await self._person.send_to(url)

    async def answer(self) -> Mapping[str, str]:
        with hold(self._clocks):
            return await self._person.answer()


@named_value
class Hooks:
    server: str
    lost: Callable[[str], None]
    """The connection has ended; the reason, as text."""
    changed: Callable[[Kind], None]
    tokens: TokenFile
    start: Callable[[Stdio, ErrorLog], Awaitable[ServerProcess]]
    """Starts the program of a server; raises `CannotStart`."""
    elicit: Callable[[Mapping[str, Any]], Awaitable[Mapping[str, Any]]] | None = None
    """Asks a person a server's question; `None` if nobody can be asked."""
    sign_in: SignIn | None = None
    roots: tuple[str, ...] = ()
    negotiation: Literal["auto", "legacy"] = "auto"
