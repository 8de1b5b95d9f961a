"""What a model provider owes the loop, and what a conversation is made of."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Literal, Protocol, TypeAlias, overload

from .calls import ToolCall
from .content import Block, Text
from .tool import ToolSpec
from .values import plain_value


@plain_value
class UserTurn:
    content: tuple[Block, ...]

    @classmethod
    def saying(cls, text: str) -> UserTurn:
        return cls((Text(text),))


@plain_value
class Thought:
    """Reasoning that a provider wants back unchanged."""

    text: str
    signature: str = ""


AssistantPart: TypeAlias = Text | Thought | ToolCall


@plain_value
class AssistantTurn:
    """What the model wrote, in the order it wrote it."""

    parts: tuple[AssistantPart, ...]

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        return tuple(part for part in self.parts if isinstance(part, ToolCall))

    @property
    def text(self) -> str:
        return "".join(part.text for part in self.parts if isinstance(part, Text))


@plain_value
class ToolResult:
    """The part of an outcome that stays in the conversation."""

    call_id: str
    content: tuple[Block, ...]
    is_error: bool


@plain_value
class ResultTurn:
    """One result per call of the turn before it, in the order of the calls; then what the results added."""

    results: tuple[ToolResult, ...]
    messages: tuple[str, ...] = ()


Turn: TypeAlias = UserTurn | AssistantTurn | ResultTurn


@plain_value
class Request:
    """One request. `history` is the session's own sequence, so a provider reads it and keeps no hold of it."""

    history: Sequence[Turn]
    tools: Sequence[ToolSpec]
    cache_after: int = 0
    """How many of `tools`, from the front, keep their bytes when MCP servers come and go."""
    system: str = ""


@plain_value
class TextDelta:
    text: str


@plain_value
class ThoughtReady:
    thought: Thought


@plain_value
class CallReady:
    """A tool call is complete; the message may still be streaming."""

    call: ToolCall


@plain_value
class Usage:
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0


@plain_value
class Stopped:
    reason: Literal["end", "tool_use", "max_tokens", "refusal"]


ModelEvent: TypeAlias = TextDelta | ThoughtReady | CallReady | Usage | Stopped


class ModelProvider(Protocol):
    """One message per request, as a stream that is left when its block is left."""

    @property
    def name(self) -> str: ...

    def stream(self, request: Request, /) -> AbstractAsyncContextManager[AsyncIterator[ModelEvent]]: ...


class ModelError(Exception):
    """The model's service failed. The message is for a person."""


class Prefix(Sequence[Turn]):
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
