"""Where the prompts and resources that a client may ask for come from, besides what its own calls leave.

Sources are asked each time, so their contents may change. Each request comes
with its client, which may be asked for more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, TypeAlias, runtime_checkable

from mcp import types

from .caller import Caller

Contents: TypeAlias = types.TextResourceContents | types.BlobResourceContents


class NoSuchPrompt(Exception):
    """The prompt does not exist, or cannot be made from these arguments. The message says why."""


class NoSuchResource(Exception):
    """The resource cannot be read. The message says why."""


class PromptSource(Protocol):
    def prompts(self) -> Sequence[types.Prompt]: ...

    async def prompt(self, name: str, arguments: Mapping[str, str], caller: Caller, /) -> Sequence[types.PromptMessage]:
        """Raises `NoSuchPrompt`, or lets `NotAnswered` pass."""
        ...


@runtime_checkable
class Completing(Protocol):
    """A source of prompts that knows what their arguments may be."""

    async def completions(self, prompt: str, argument: str, begun: str, /) -> Sequence[str]:
        """The likeliest first."""
        ...


class ResourceSource(Protocol):
    def resources(self) -> Sequence[types.Resource]: ...

    def templates(self) -> Sequence[types.ResourceTemplate]: ...

    async def read(self, uri: str, caller: Caller, /) -> Sequence[Contents]:
        """Raises `NoSuchResource`, or lets `NotAnswered` pass."""
        ...


class NoPrompts:
    def prompts(self) -> Sequence[types.Prompt]:
        return ()

    async def prompt(self, name: str, arguments: Mapping[str, str], caller: Caller, /) -> Sequence[types.PromptMessage]:
        raise NoSuchPrompt(f"No prompt is named {name}.")


class NoResources:
    def resources(self) -> Sequence[types.Resource]:
        return ()

    def templates(self) -> Sequence[types.ResourceTemplate]:
        return ()

    async def read(self, uri: str, caller: Caller, /) -> Sequence[Contents]:
        raise NoSuchResource(f"The resource {uri} was not found. List the resources to see them.")
