"""The peers, each doing the work that Ferrule does beside it.

A peer's module is imported only in the environment that has the peer
installed, and gives it the same tool, the same arguments and the same script.
"""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from importlib import import_module
from types import MappingProxyType
from typing import Protocol, cast

from ..timing import Work

DISTRIBUTIONS = MappingProxyType(
    {
        "pydantic_ai": "pydantic-ai-slim",
        "kosong": "kosong",
        "kimi": "kimi-cli",
        "openai_agents": "openai-agents",
        "mcp": "mcp",
        "fastmcp": "fastmcp",
    }
)
"""The module of each peer and the distribution it measures."""

WITH_A_LOOP = ("pydantic_ai", "kosong")
"""Those that can play a conversation; the others are called one call at a time."""


class Peer(Protocol):
    """What a peer's module has; `conversation` only for those in `WITH_A_LOOP`."""

    def one_call(self) -> AbstractAsyncContextManager[dict[str, Work]]:
        """Works of one call each, under the names they have in the table."""
        ...

    def conversation(self, *, turns: int, calls: int) -> AbstractAsyncContextManager[dict[str, Work]]:
        """A scripted conversation: `turns` messages of `calls` calls, then one that ends it."""
        ...


def load(name: str) -> Peer:
    return cast(Peer, import_module(f"{__name__}.{name}"))
