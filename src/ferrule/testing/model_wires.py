"""A scripted turn as the services of the world would stream it: the other side of `ferrule.providers`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast

from ..providers.script import ScriptedTurn, fill_found
from ..providers.scripted import words

PIECE = 12
"""Characters of a call's JSON in one event."""


def anthropic_frames(turn: ScriptedTurn, place: int, results: str, model: str) -> Iterator[str]:
    values = anthropic_values(turn, place, results, model, signature=lambda _: f"signature-{place + 1}")
    return map(frame_anthropic, values)


def frame_anthropic(event: dict[str, Any]) -> str:
    return f"event: {event['type']}\ndata: {_json(event)}\n\n"


def openai_frames(turn: ScriptedTurn, place: int, results: str, model: str) -> Iterator[str]:
    for chunk in openai_chunks(turn, place, results, model):
        yield f"data: {_json(chunk)}\n\n"
    yield "data: [DONE]\n\n"


def responses_frames(
    turn: ScriptedTurn, place: int, results: str, model: str, *, seal: Callable[[str], str] = lambda text: "sealed"
) -> Iterator[str]:
    """The Responses API's events; `seal` encrypts the text of the reasoning."""
    for number, event in enumerate(_responses_values(turn, place, results, model, seal)):
        yield f"event: {event['type']}\ndata: {_json({**event, 'sequence_number': number})}\n\n"


def openai_chunks(turn: ScriptedTurn, place: int, results: str, model: str) -> Iterator[dict[str, Any]]:
    head = {"id": f"chatcmpl-{place + 1}", "object": "chat.completion.chunk", "created": 0, "model": model}
    for chunk in _openai_values(turn, place, results):
        yield {**head, **chunk}


def texts_after_answer(messages: Sequence[dict[str, Any]]) -> str:
    """The text of the messages or items after the model's last one, in any language."""
    texts: list[str] = []
    for message in reversed(messages):
        if message.get("role") == "assistant" or message.get("type") == "function_call":
            break
        texts.append("\n".join(_texts(message.get("content") or message.get("output"))))
    return "\n".join(reversed(texts))


def _texts(content: Any) -> list[str]:
    if isinstance(content, str):
        return [content]
    if not isinstance(content, list):
        return []
    found: list[str] = []
    for block in cast(list[dict[str, Any]], content):
        found += [block["text"]] if block.get("type") in ("text", "input_text") else _texts(block.get("content"))
    return found


def anthropic_values(
    turn: ScriptedTurn, place: int, results: str, model: str, *, signature: Callable[[str], str]
) -> Iterator[dict[str, Any]]:
    """The events as JSON; `signature` signs the text of the reasoning."""
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


def _responses_values(
    turn: ScriptedTurn, place: int, results: str, model: str, seal: Callable[[str], str]
) -> Iterator[dict[str, Any]]:
    response: dict[str, Any] = {
        "id": f"resp_{place + 1}",
        "object": "response",
        "created_at": 0,
        "model": model,
        "status": "in_progress",
        "output": [],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
    }
    yield {"type": "response.created", "response": response}
    output: list[dict[str, Any]] = []
    for index, (start, deltas, end) in enumerate(_responses_items(turn, place, results, seal)):
        yield {"type": "response.output_item.added", "output_index": index, "item": {**end, **start}}
        yield from ({**delta, "output_index": index, "item_id": end["id"]} for delta in deltas)
        yield {"type": "response.output_item.done", "output_index": index, "item": end}
        output.append(end)
    cuts = {"max_tokens": "max_output_tokens", "refusal": "content_filter"}
    cut = cuts.get(turn.stop_reason)
    ended = {"status": "incomplete" if cut else "completed", "output": output}
    ended |= {"incomplete_details": {"reason": cut} if cut else None, "usage": _responses_usage(turn)}
    yield {"type": f"response.{ended['status']}", "response": {**response, **ended}}


def _responses_usage(turn: ScriptedTurn) -> dict[str, Any] | None:
    if turn.usage is None:
        return None
    read, written = turn.usage.cache_read_tokens, turn.usage.cache_write_tokens
    before, after = turn.usage.input_tokens + read + written, turn.usage.output_tokens
    return {
        "input_tokens": before,
        "input_tokens_details": {"cached_tokens": read, "cache_write_tokens": written},
        "output_tokens": after,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": before + after,
    }


def _responses_items(
    turn: ScriptedTurn, place: int, results: str, seal: Callable[[str], str]
) -> Iterator[tuple[dict[str, Any], list[dict[str, Any]], dict[str, Any]]]:
    """Of each item: what is different at its beginning, the pieces, and how it ends."""
    if turn.thinking:
        begun: dict[str, Any] = {"type": "summary_text", "text": ""}
        pieces = _responses_pieces("reasoning_summary", "summary", begun, turn.thinking)
        sealed = {"summary": [{**begun, "text": turn.thinking}], "encrypted_content": seal(turn.thinking)}
        yield {"summary": []}, pieces, {"id": f"rs_{place + 1}", "type": "reasoning", **sealed}
    if turn.text:
        begun = {"type": "output_text", "text": "", "annotations": []}
        message = {"id": f"msg_{place + 1}", "type": "message", "role": "assistant", "status": "completed"}
        pieces = _responses_pieces("content", "content", begun, turn.text)
        content = [{**begun, "text": turn.text}]
        yield {"content": [], "status": "in_progress"}, pieces, {**message, "content": content}
    for number, call in enumerate(turn.calls):
        arguments = _json(fill_found(call.input, results))
        kind = "response.function_call_arguments"
        item = {
            "id": f"fc_{'r' if turn.thinking else ''}{place + 1}_{number}",
            "type": "function_call",
            "call_id": turn.id_of(place, number),
            "name": call.name,
            "arguments": arguments,
            "status": "completed",
        }
        pieces = [{"type": f"{kind}.delta", "delta": piece} for piece in _pieces(arguments)]
        done = {"type": f"{kind}.done", "name": call.name, "arguments": arguments}
        yield {"arguments": "", "status": "in_progress"}, [*pieces, done], item


def _responses_pieces(part: str, index: str, begun: dict[str, Any], text: str) -> list[dict[str, Any]]:
    kind = "response.output_text" if part == "content" else f"response.{part}_text"
    place: dict[str, Any] = {f"{index}_index": 0}
    more: dict[str, Any] = {"logprobs": []} if part == "content" else {}
    return [
        {"type": f"response.{part}_part.added", "part": begun, **place},
        *({"type": f"{kind}.delta", "delta": word.text, **place, **more} for word in words(text)),
        {"type": f"{kind}.done", "text": text, **place, **more},
        {"type": f"response.{part}_part.done", "part": {**begun, "text": text}, **place},
    ]


def _choice(delta: dict[str, Any], reason: str | None = None) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}


def _pieces(text: str) -> list[str]:
    return [text[at : at + PIECE] for at in range(0, len(text), PIECE)]


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
