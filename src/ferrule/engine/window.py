"""How full the model's window is, as far as that can be known without its tokenizer."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, assert_never, cast

from ..core.calls import ToolCall
from ..core.content import Block, Document, Image, Text
from ..core.model import (
    AssistantPart,
    AssistantTurn,
    ModelFacts,
    ModelProvider,
    Request,
    ResultTurn,
    Thought,
    Turn,
    Usage,
    UserTurn,
)

if TYPE_CHECKING:
    from ..core.tool import ToolSpec

IMAGE = 1_600
DOCUMENT_SHARE = 30
"""Characters of a document's base64 to a token."""
TOOL = 150
"""For the schema of one tool, besides its description."""
TURN = 6
"""For the frame of a turn, a result or a call."""
WHOLE = 8_192
"""Characters of a text that is looked at as a whole. Of a longer one, samples are."""
SAMPLES = 8
PASSED_SHARE = 0.9
"""Of the largest request that passed: what is believed of a window that a service names no number for."""
REFUSED_SHARE = 0.75
"""Of a request that was refused, if none has passed yet."""
LEAST_WINDOW = 2_000


@dataclass(slots=True)
class LearnedWindows:
    """The windows of models as their services turned out to have them, for the rest of the run. Agents share it."""

    _windows: dict[str, int] = field(default_factory=dict[str, int])
    _passed: dict[str, int] = field(default_factory=dict[str, int])
    """The tokens of the largest request that was accepted, for each model."""

    def facts_of(self, model: ModelProvider) -> ModelFacts:
        """With what was learned. An answer must leave most of a window that is smaller than believed to the request."""
        facts = model.facts
        window = self._windows.get(model.name, facts.window)
        if window >= facts.window:
            return facts
        return replace(facts, window=window, most_output=min(facts.most_output, window // 5))

    def is_learned(self, model: ModelProvider) -> bool:
        return self._windows.get(model.name, model.facts.window) < model.facts.window

    def learn(self, model: ModelProvider, window: int) -> None:
        """Windows only ever turn out to be smaller."""
        known = self.facts_of(model).window
        self._windows[model.name] = max(LEAST_WINDOW, min(known, window))

    def learn_from_overflow(self, model: ModelProvider, window: int | None, *, size: int, again: bool = False) -> None:
        """From the number in the service's words, otherwise from the sizes of what passed and of what did not.

        A request that should have fitted was larger than its estimate, so less is to be believed of the window;
        but `again`, for a shorter form of the same request, the number is no news.
        """
        passed = int(self._passed.get(model.name, 0) * PASSED_SHARE)
        if window is None:
            self.learn(model, passed if 0 < passed < size else int(size * REFUSED_SHARE))
        elif not again:
            believed = max(window, passed)
            self.learn(model, believed if believed < size else int(size * PASSED_SHARE))

    def note_passed(self, model: ModelProvider, tokens: int) -> None:
        self._passed[model.name] = max(tokens, self._passed.get(model.name, 0))


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
            self.tokens = estimate_around(request)
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


class TurnSizes:
    """Estimates of turns, each made once: for comparing forms of a conversation that share most of their turns."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Turn, int]] = {}

    def estimate(self, turns: Iterable[Turn]) -> int:
        total = 0
        for turn in turns:
            known = self._known.get(id(turn))
            if known is None:
                known = self._known[id(turn)] = (turn, _tokens(turn))
            total += known[1]
        return total


def estimate(turns: Iterable[Turn]) -> int:
    """Tokens, from the bytes alone.

    >>> estimate([UserTurn.saying("It is in the second file. " * 10)])
    72
    """
    return sum(map(_tokens, turns))


def estimate_around(request: Request) -> int:
    """What precedes the conversation in each request."""
    return estimate_text(request.system) + estimate_tools(request.tools)


def estimate_tools(specs: Iterable[ToolSpec]) -> int:
    return sum(estimate_text(spec.description) + TOOL for spec in specs)


def estimate_text(text: str) -> int:
    """Within a third of what tokenizers count, for code, prose in any script, base64, hex, digits and emoji."""
    length = len(text)
    if length <= WHOLE:
        return _count(text)
    size = WHOLE // SAMPLES
    step = (length - size) / (SAMPLES - 1)
    sample = "".join(text[int(step * at) : int(step * at) + size] for at in range(SAMPLES))
    return _count(sample) * length // len(sample)


def _classes() -> bytes:
    """A letter for each byte: what kind of text it belongs to."""
    table = bytearray(b"p" * 256)
    for first, after, kind in (
        (0x00, 0x21, "s"),
        (0x30, 0x3A, "0"),
        (0x41, 0x5B, "A"),
        (0x61, 0x7B, "a"),
        (0x80, 0xC0, "."),  # the bytes after the first one of a character
        (0xC0, 0xD8, "2"),  # accents, Greek, Cyrillic
        (0xD8, 0xE0, "R"),  # Hebrew, Arabic
        (0xE0, 0xE3, "I"),  # the scripts of India, Thai, signs
        (0xE3, 0xE4, "J"),  # Kana
        (0xE4, 0xEA, "C"),  # Han
        (0xEA, 0xF0, "K"),  # Hangul
        (0xF0, 0x100, "4"),  # emoji
    ):
        table[first:after] = kind.encode() * (after - first)
    table[0x09] = table[0x0A] = table[0x0D] = ord("n")
    return bytes(table)


_CLASSES = _classes()
_WEIGHTS = (
    (b"a", 13),
    (b"A", 80),
    (b"AA", -105),
    (b"0", 39),
    (b"p", 19),
    (b"n", 5),
    (b"sa", 67),
    (b"pa", 100),
    (b"na", 55),
    (b"a0", 100),
    (b"0a", 62),
    (b"0A", 83),
    (b"aA", 100),
    (b"s0", 110),
    (b"p0", 87),
    (b"sp", 100),
)
"""Hundredths of a token for each of a kind, and for each place where one follows another: words and numbers begin
there, and in base64 and hex many are one byte long. Fitted to what a tokenizer counts; see the tests of this module."""
_BEYOND_ASCII = ((b"2", 30), (b"R", 38), (b"I", 40), (b"J", 78), (b"C", 87), (b"K", 76), (b"4", 210))
_FLOOR = 12
"""Bytes of the most regular text, such as a ruled line, to a token."""


def _count(text: str) -> int:
    data = text.encode("utf-8", "surrogatepass")
    kinds = data.translate(_CLASSES)
    weighed = sum(weight * kinds.count(kind) for kind, weight in _WEIGHTS)
    if len(data) > len(text):
        weighed += sum(weight * kinds.count(kind) for kind, weight in _BEYOND_ASCII)
    return max(weighed // 100, len(data) // _FLOOR)


def _tokens(turn: Turn) -> int:
    match turn:
        case UserTurn(content):
            return TURN + _blocks(content)
        case AssistantTurn(parts):
            return TURN + sum(_part(part) for part in parts)
        case ResultTurn(results, messages):
            shown = sum(TURN + _blocks(result.content) for result in results)
            return shown + sum(map(estimate_text, messages))


def _part(part: AssistantPart) -> int:
    match part:
        case Text(text):
            return estimate_text(text)
        case Thought(text, signature, redacted, extras):
            return estimate_text(text) + estimate_text(signature + redacted) + (_value(extras.fields) if extras else 0)
        case ToolCall():
            written = _value(part.arguments) + estimate_text(part.malformed or "")
            return TURN + estimate_text(part.name) + written + (_value(part.extras.fields) if part.extras else 0)
        case _:
            assert_never(part)


def _blocks(blocks: Collection[Block]) -> int:
    size = 0
    for block in blocks:
        match block:
            case Text(text):
                size += estimate_text(text)
            case Image():
                size += IMAGE
            case Document(base64=data):
                size += len(data) // DOCUMENT_SHARE
            case _:
                assert_never(block)
    return size


def _value(value: Any) -> int:
    """Tokens of it as JSON, nearly."""
    if isinstance(value, str):
        return estimate_text(value) + 1
    if isinstance(value, Mapping):
        items = cast(Mapping[str, Any], value)
        return sum(estimate_text(key) + 2 + _value(one) for key, one in items.items())
    if isinstance(value, list | tuple):
        return sum(1 + _value(one) for one in cast(Sequence[Any], value))
    return 2
