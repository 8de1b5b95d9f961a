"""What a model provider owes the loop, and what a conversation is made of."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

from .calls import ServiceFields, ToolCall
from .content import Block, Text
from .values import named_value, plain_value

if TYPE_CHECKING:  # a request can be sent before the tools are loaded
    from .tool import ToolSpec


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
    redacted: str = ""
    """A placeholder for reasoning that the provider does not show."""
    extras: ServiceFields | None = None
    """What else belongs to it. Without any text, what a service sent with the message as a whole."""


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


Effort: TypeAlias = Literal["low", "medium", "high", "xhigh", "max"]


@plain_value
class Request:
    """One request. `history` is the session's own sequence, so a provider reads it and keeps no reference to it."""

    history: Sequence[Turn]
    tools: Sequence[ToolSpec]
    cache_after: int = 0
    """How many of `tools`, from the front, keep their bytes when MCP servers come and go."""
    system: str = ""
    max_tokens: int | None = None
    """How long the answer may be; the model's own limit if `None`."""
    thinking_tokens: int | None = None
    """How much of it may be reasoning; `None` for no reasoning."""
    effort: Effort | None = None
    """The effort, if the service supports it; `None` for the service's default."""
    planning: bool = False
    """Whether a plan is being made, which some leave to another model."""


@plain_value
class TextDelta:
    text: str


@plain_value
class ThoughtDelta:
    """A piece of reasoning as it is written, for those who watch. `ThoughtReady` has it whole."""

    text: str


@plain_value
class ThoughtReady:
    thought: Thought


@plain_value
class CallDelta:
    """A piece of a call as it is written, for those who watch. The first of a call has no JSON yet."""

    call_id: str
    name: str
    json: str = ""


@plain_value
class CallReady:
    """A tool call is complete; the message may still be streaming."""

    call: ToolCall


@plain_value
class Usage:
    """What one message cost. A later one of the same message replaces an earlier one."""

    input_tokens: int = 0
    """Those that were neither read from the cache nor written to it."""
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0


@plain_value
class Retrying:
    """The service could not answer, and is asked again after a pause. Nothing of the message has come yet."""

    attempt: int
    """Which try comes next, counted from 2."""
    attempts: int
    seconds: float
    reason: str
    status: int | None = None
    """The status of HTTP that the service answered with, where that is the reason."""


StopReason: TypeAlias = Literal["end", "tool_use", "max_tokens", "refusal"]


@plain_value
class Stopped:
    reason: StopReason


ModelEvent: TypeAlias = TextDelta | ThoughtDelta | ThoughtReady | CallDelta | CallReady | Usage | Retrying | Stopped


@named_value
class ModelFacts:
    """What is known of a model. Prices are dollars for a million tokens, and `None` if unknown."""

    window: int = 200_000
    most_output: int = 32_000
    takes_images: bool = True
    takes_documents: bool = False
    input_price: float | None = None
    output_price: float | None = None
    cache_read_price: float | None = None
    cache_write_price: float | None = None


class ModelProvider(Protocol):
    """One message per request, as a stream that ends when its block is left."""

    @property
    def name(self) -> str: ...

    @property
    def facts(self) -> ModelFacts: ...

    def stream(self, request: Request, /) -> AbstractAsyncContextManager[AsyncIterator[ModelEvent]]: ...


FailureKind: TypeAlias = Literal[
    "key", "request", "overflow", "images", "limit", "overload", "network", "cut", "answer"
]
"""No valid key; a request it refuses; a conversation too long for the model; a picture or document it does not take;
too many requests; the service's own trouble; no connection; a stream that ended too early; an answer that cannot be
read."""


class ModelError(Exception):
    """The model's service failed, after all retries that made sense. The message is for a person.

    After `cut` and `answer` the pieces that were complete stay usable, and the same request may be repeated.
    """

    def __init__(
        self,
        message: str,
        kind: FailureKind = "answer",
        *,
        status: int | None = None,
        window: int | None = None,
    ) -> None:
        super().__init__(message)
        self.kind: FailureKind = kind
        self.status = status
        """The HTTP status, if that is the error."""
        self.window = window
        """How many tokens the model can read, if the service said so when it refused a conversation as too long."""
