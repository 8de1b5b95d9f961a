"""A message as the events of a streaming API: made from ours, so they look the same for every provider."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Literal, TypeAlias

from ..core.calls import ToolCall
from ..core.content import encodable
from ..core.model import Thought, Usage
from .run_answer import usage_object

_Kind: TypeAlias = Literal["text", "thinking", "tool_use"]


class BlockEvents:
    """One message after another. A block that was begun is closed before the next one begins."""

    def __init__(self) -> None:
        self._message = ""
        self._index = -1
        self._open: _Kind | None = None
        self._call = ""
        self._drafted = False

    def begin(self, message_id: str, model: str, usage: Usage) -> Iterator[dict[str, Any]]:
        """Said once for each message; a repetition is nothing."""
        if message_id == self._message:
            return
        self._message, self._index, self._open = message_id, -1, None
        message: dict[str, Any] = {
            "id": message_id,
            "type": "message",
            "role": "assistant",
            "model": model,
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": usage_object(usage),
        }
        yield {"type": "message_start", "message": message}

    def text(self, text: str) -> Iterator[dict[str, Any]]:
        yield from self._begin("text", {"type": "text", "text": ""})
        yield self._delta({"type": "text_delta", "text": encodable(text)})

    def add_thought(self, text: str) -> Iterator[dict[str, Any]]:
        yield from self._begin("thinking", {"type": "thinking", "thinking": "", "signature": ""})
        yield self._delta({"type": "thinking_delta", "thinking": encodable(text)})

    def end_thought(self, thought: Thought) -> Iterator[dict[str, Any]]:
        if thought.redacted:
            yield from self.close()
            self._index += 1
            block = {"type": "redacted_thinking", "data": thought.redacted}
            yield {"type": "content_block_start", "index": self._index, "content_block": block}
            yield {"type": "content_block_stop", "index": self._index}
            return
        if self._open != "thinking":
            yield from self.add_thought(thought.text)
        if thought.signature:
            yield self._delta({"type": "signature_delta", "signature": thought.signature})
        yield from self.close()

    def call(self, call_id: str, name: str, piece: str) -> Iterator[dict[str, Any]]:
        if self._open != "tool_use" or self._call != call_id:
            yield from self.close()
            self._call, self._drafted = call_id, False
            yield from self._begin("tool_use", {"type": "tool_use", "id": call_id, "name": name, "input": {}})
        if piece:
            self._drafted = True
            yield self._delta({"type": "input_json_delta", "partial_json": encodable(piece)})

    def end_call(self, call: ToolCall) -> Iterator[dict[str, Any]]:
        yield from self.call(call.id, call.name, "")
        if not self._drafted:
            written = json.dumps(dict(call.arguments), ensure_ascii=False) if call.malformed is None else call.malformed
            yield from self.call(call.id, call.name, written)
        yield from self.close()

    def end(self, stop_reason: str, usage: Usage) -> Iterator[dict[str, Any]]:
        if not self._message:
            return
        yield from self.close()
        delta = {"stop_reason": stop_reason, "stop_sequence": None}
        yield {"type": "message_delta", "delta": delta, "usage": usage_object(usage)}
        yield {"type": "message_stop"}
        self._message = ""

    def close(self) -> Iterator[dict[str, Any]]:
        if self._open is not None:
            self._open = None
            yield {"type": "content_block_stop", "index": self._index}

    def _begin(self, kind: _Kind, block: dict[str, Any]) -> Iterator[dict[str, Any]]:
        if self._open == kind:
            return
        yield from self.close()
        self._open = kind
        self._index += 1
        yield {"type": "content_block_start", "index": self._index, "content_block": block}

    def _delta(self, delta: dict[str, Any]) -> dict[str, Any]:
        return {"type": "content_block_delta", "index": self._index, "delta": delta}
