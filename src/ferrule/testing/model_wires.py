"""A scripted turn as the services of the world would stream it: the other side of `ferrule.providers`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast

from ..providers.script import ScriptedTurn, fill_found
from ..providers.scripted import words

PIECE = 12
"""Characters of a call's JSON in one event."""


def anthropic_frames(
    turn: ScriptedTurn,
    place: int,
    results: str,
    model: str,
    *,
    signature: Callable[[str], str] = lambda text: "signed",
) -> Iterator[str]:
    """The Messages API's events; `signature` signs the text of the reasoning."""
    for event in anthropic_values(turn, place, results, model, signature=signature):
        yield f"event: {event['type']}\ndata: {_json(event)}\n\n"


def openai_frames(turn: ScriptedTurn, place: int, results: str, model: str) -> Iterator[str]:
    for chunk in openai_chunks(turn, place, results, model):
        yield f"data: {_json(chunk)}\n\n"
    yield "data: [DONE]\n\n"


def openai_chunks(turn: ScriptedTurn, place: int, results: str, model: str) -> Iterator[dict[str, Any]]:
    head = {"id": f"chatcmpl-{place + 1}", "object": "chat.completion.chunk", "created": 0, "model": model}
    for chunk in _openai_values(turn, place, results):
        yield {**head, **chunk}


def texts_after_answer(messages: Sequence[dict[str, Any]]) -> str:
    """The text of the messages after the model's last one, in either language."""
    texts: list[str] = []
    for message in reversed(messages):
        if message.get("role") == "assistant":
            break
        texts.append("\n".join(_texts(message.get("content"))))
    return "\n".join(reversed(texts))


def _texts(content: Any) -> list[str]:
    if isinstance(content, str):
        return [content]
    if not isinstance(content, list):
        return []
    found: list[str] = []
    for block in cast(list[dict[str, Any]], content):
        found += [block["text"]] if block.get("type") == "text" else _texts(block.get("content"))
    return found


def anthropic_values(
    turn: ScriptedTurn, place: int, results: str, model: str, *, signature: Callable[[str], str]
) -> Iterator[dict[str, Any]]:
    """The events as JSON, for services that frame them in another way."""
    usage = turn.usage
    before = {
        "input_tokens": usage.input_tokens if usage else 0,
        "cache_read_input_tokens": usage.cache_read_tokens if usage else 0,
        "cache_creation_input_tokens": usage.cache_write_tokens if usage else 0,
        "output_tokens": 0,
    }
    yield {
        "type": "message_start",
        "message": {
            "id": f"msg_{place + 1}",
            "type": "message",
            "role": "assistant",
            "model": model,
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": before,
        },
    }
    yield {"type": "ping"}
    for index, (start, deltas) in enumerate(_anthropic_blocks(turn, place, results, signature)):
        yield {"type": "content_block_start", "index": index, "content_block": start}
        for delta in deltas:
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    reasons = {"end": "end_turn"}
    yield {
        "type": "message_delta",
        "delta": {"stop_reason": reasons.get(turn.stop_reason, turn.stop_reason), "stop_sequence": None},
        "usage": {"output_tokens": usage.output_tokens if usage else 0},
    }
    yield {"type": "message_stop"}


def _anthropic_blocks(
    turn: ScriptedTurn, place: int, results: str, signature: Callable[[str], str]
) -> Iterator[tuple[dict[str, Any], list[dict[str, Any]]]]:
    if turn.thinking:
        pieces = [{"type": "thinking_delta", "thinking": word.text} for word in words(turn.thinking)]
        signed = {"type": "signature_delta", "signature": signature(turn.thinking)}
        yield {"type": "thinking", "thinking": "", "signature": ""}, [*pieces, signed]
    if turn.text:
        yield {"type": "text", "text": ""}, [{"type": "text_delta", "text": word.text} for word in words(turn.text)]
    for number, call in enumerate(turn.calls):
        start: dict[str, Any] = {"type": "tool_use", "id": turn.id_of(place, number), "name": call.name, "input": {}}
        pieces = _pieces(_json(fill_found(call.input, results)))
        yield start, [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]


def _openai_values(turn: ScriptedTurn, place: int, results: str) -> Iterator[dict[str, Any]]:
    yield _choice({"role": "assistant", "content": ""})
    for word in words(turn.thinking):
        yield _choice({"reasoning_content": word.text})
    for word in words(turn.text):
        yield _choice({"content": word.text})
    for number, call in enumerate(turn.calls):
        function = {"name": call.name, "arguments": ""}
        start = {"index": number, "id": turn.id_of(place, number), "type": "function", "function": function}
        yield _choice({"tool_calls": [start]})
        for piece in _pieces(_json(fill_found(call.input, results))):
            yield _choice({"tool_calls": [{"index": number, "function": {"arguments": piece}}]})
    reasons = {"end": "stop", "tool_use": "tool_calls", "max_tokens": "length", "refusal": "content_filter"}
    yield _choice({}, reasons[turn.stop_reason])
    if usage := turn.usage:
        read, written = usage.cache_read_tokens, usage.cache_write_tokens
        prompt = usage.input_tokens + read + written
        details = {"cached_tokens": read, "cache_write_tokens": written}
        counts = {"prompt_tokens": prompt, "completion_tokens": usage.output_tokens, "prompt_tokens_details": details}
        yield {"choices": [], "usage": {**counts, "total_tokens": prompt + usage.output_tokens}}


def _choice(delta: dict[str, Any], reason: str | None = None) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}


def _pieces(text: str) -> list[str]:
    return [text[at : at + PIECE] for at in range(0, len(text), PIECE)]


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
