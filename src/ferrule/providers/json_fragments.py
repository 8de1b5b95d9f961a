"""Turns as JSON, each encoded once: a long conversation costs a request no more than copying its bytes."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from operator import is_
from typing import TYPE_CHECKING, Any, cast

from ..core.content import encodable
from ..core.model import Turn

if TYPE_CHECKING:
    from ..core.tool import ToolSpec

MOST_CONVERSATIONS = 32
"""Conversations of one provider at the same time: the main one and those of the agents it started."""


def encode_json(value: Any) -> bytes:
    """Compact JSON in UTF-8, whatever a model or a file has put into the strings and numbers.

    >>> encode_json({"a": [1, "ü", float("nan"), "\\ud800"]}).decode()
    '{"a":[1,"ü",null,"\ufffd"]}'
    """
    try:
        text = json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    except ValueError:
        text = json.dumps(_finite(value), separators=(",", ":"), ensure_ascii=False)
    try:
        return text.encode()
    except UnicodeEncodeError:
        return encodable(text).encode()


def _finite(value: Any) -> Any:
    """JSON has no NaN or infinity."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: _finite(part) for key, part in cast(Mapping[str, Any], value).items()}
    if isinstance(value, list | tuple):
        return [_finite(part) for part in cast(Sequence[Any], value)]
    return value


def join_fragments(before: bytes, fragments: list[bytes], after: bytes) -> bytes:
    """A list of the fragments that are not empty, in one copy: for a long conversation, a second copy is noticeable."""
    parts = [fragment for fragment in fragments if fragment]
    if not parts:
        return before + after
    parts[0] = before + parts[0]
    parts[-1] += after
    return b",".join(parts)


class TurnFragments:
    """Each turn of each conversation as sent. Turns are recognized by identity: they never change."""

    def __init__(self, encode: Callable[[Turn], bytes]) -> None:
        self._encode = encode
        self._conversations: dict[int, tuple[list[Turn], list[bytes]]] = {}
        """By the address of their first turn, most recently used last."""

    def of(self, history: Sequence[Turn]) -> list[bytes]:
        """One for each turn; empty if a turn has nothing to send."""
        if not history:
            return []
        turns, fragments = self._conversation(history[0])
        same = list(map(is_, turns, history))
        first_new = same.index(False) if False in same else len(same)
        new = history[first_new:]
        turns[first_new:] = new
        fragments[first_new:] = map(self._encode, new)
        return fragments.copy()

    def _conversation(self, first: Turn) -> tuple[list[Turn], list[bytes]]:
        """The conversation that begins with this turn. The list keeps the turn alive, so its address stays unique."""
        found = self._conversations.pop(id(first), None) or ([first], [self._encode(first)])
        self._conversations[id(first)] = found
        if len(self._conversations) > MOST_CONVERSATIONS:
            del self._conversations[next(iter(self._conversations))]
        return found


class ToolFragments:
    """The tools as sent, encoded again only if one of them has changed."""

    def __init__(self, encode: Callable[[ToolSpec], Any]) -> None:
        self._encode = encode
        self._tools: Sequence[ToolSpec] = ()
        self._fragments: list[bytes] = []

    def of(self, tools: Sequence[ToolSpec]) -> list[bytes]:
        if len(tools) != len(self._tools) or not all(map(is_, tools, self._tools)):
            self._tools = tuple(tools)
            self._fragments = [encode_json(self._encode(tool)) for tool in tools]
        return self._fragments.copy()
