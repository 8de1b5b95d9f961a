"""How full the model's window is, as far as that can be known without its tokenizer."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, assert_never, cast

from ..core.calls import ToolCall
from ..core.content import Block, Document, Image, Text
from ..core.model import AssistantPart, AssistantTurn, Request, ResultTurn, Thought, Turn, Usage, UserTurn

if TYPE_CHECKING:
    from ..core.tool import ToolSpec

CHARACTERS = 3
"""To a token: less than most texts have, since too early is better than too late."""
IMAGE = 1_600
DOCUMENT_SHARE = 30
"""Characters of a document's base64 to a token."""
TOOL = 150
"""For the schema of one tool, besides its description."""


class Meter:
    """Uses what providers report; what came since then is estimated from its size, once."""

    def __init__(self) -> None:
        self.tokens = 0
        self._turns = 0
        self._is_new = True

    def measure(self, request: Request) -> int:
        """Tokens of a request that continues where the previous one ended."""
        if self._is_new:
            self._is_new = False
            self.tokens = _around(request)
        if self._turns < len(request.history):
            self.tokens += estimate(request.history[self._turns :])
            self._turns = len(request.history)
        return self.tokens

    def report(self, usage: Usage, turns: int) -> bool:
        """Record the usage of a message that ends the first `turns` turns. False if it reports none."""
        read = usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens
        if not read:
            return False
        self.tokens = read + usage.output_tokens
        self._turns = turns
        self._is_new = False
        return True

    def reset(self) -> None:
        """The conversation was replaced."""
        self._turns = 0
        self._is_new = True


def estimate(turns: Sequence[Turn]) -> int:
    """Tokens, from sizes alone.

    >>> estimate([UserTurn.saying("x" * 300)])
    100
    """
    return sum(_size(turn) for turn in turns) // CHARACTERS


def _around(request: Request) -> int:
    """What precedes the conversation in each request."""
    return estimate_text(request.system) + estimate_tools(request.tools)


def estimate_text(text: str) -> int:
    return len(text) // CHARACTERS


def estimate_tools(specs: Iterable[ToolSpec]) -> int:
    return sum(estimate_text(spec.description) + TOOL for spec in specs)


def _size(turn: Turn) -> int:
    match turn:
        case UserTurn(content):
            return _blocks(content)
        case AssistantTurn(parts):
            return sum(_part(part) for part in parts)
        case ResultTurn(results, messages):
            return sum(_blocks(result.content) for result in results) + sum(map(len, messages))


def _part(part: AssistantPart) -> int:
    match part:
        case Text(text):
            return len(text)
        case Thought(text, signature, redacted, extras):
            return len(text) + len(signature) + len(redacted) + (_value(extras.fields) if extras else 0)
        case ToolCall():
            return len(part.name) + _value(part.arguments) + len(part.malformed or "")
        case _:
            assert_never(part)


def _blocks(blocks: Collection[Block]) -> int:
    size = 0
    for block in blocks:
        match block:
            case Text(text):
                size += len(text)
            case Image():
                size += IMAGE * CHARACTERS
            case Document(base64=data):
                size += len(data) // DOCUMENT_SHARE * CHARACTERS
            case _:
                assert_never(block)
    return size


def _value(value: Any) -> int:
    """Characters of it as JSON, nearly."""
    if isinstance(value, str):
        return len(value) + 2
    if isinstance(value, Mapping):
        items = cast(Mapping[str, Any], value)
        return sum(len(key) + 4 + _value(one) for key, one in items.items())
    if isinstance(value, list | tuple):
        return sum(2 + _value(one) for one in cast(Sequence[Any], value))
    return 5
