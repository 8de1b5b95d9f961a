"""Where the prompts that a client may ask for come from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol


class NoSuchPrompt(Exception):
    """There is no prompt of that name, or it cannot be made of these arguments. The message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptArgument:
    name: str
    description: str = ""
    required: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptEntry:
    name: str
    title: str = ""
    description: str = ""
    arguments: tuple[PromptArgument, ...] = ()


class PromptSource(Protocol):
    """Asked anew each time, so what it holds may change."""

    def prompts(self) -> Sequence[PromptEntry]: ...

    async def prompt(self, name: str, arguments: Mapping[str, str], /) -> str:
        """The prompt's text. Raises `NoSuchPrompt`."""
        ...


class NoPrompts:
    def prompts(self) -> Sequence[PromptEntry]:
        return ()

    async def prompt(self, name: str, arguments: Mapping[str, str], /) -> str:
        raise NoSuchPrompt(f"There is no prompt named {name}.")
