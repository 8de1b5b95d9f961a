"""What a connection asks of its owner, and tells it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Literal, Protocol, TypeAlias

from ..core.values import named_value
from .tokens import TokenFile

Kind: TypeAlias = Literal["tools", "resources", "prompts"]


class OnProgress(Protocol):
    async def __call__(self, progress: float, total: float | None, message: str | None) -> None: ...


class SignIn(Protocol):
    """A person who can be sent to a page and comes back with what it says."""

    @property
    def address(self) -> str:
        """Where the page sends them back to."""
        ...

    async def send_to(self, url: str, /) -> None: ...

    async def answer(self) -> Mapping[str, str]:
        """The parameters that they came back with."""
        ...


@named_value
class Hooks:
    server: str
    lost: Callable[[str], None]
    """The connection is over; why, in words."""
    changed: Callable[[Kind], None]
    tokens: TokenFile
    elicit: Callable[[Mapping[str, Any]], Awaitable[Mapping[str, Any]]] | None = None
    """Puts a server's question to a person; `None` where there is nobody."""
    sign_in: SignIn | None = None
    roots: tuple[str, ...] = ()
    negotiation: Literal["auto", "legacy"] = "auto"
