"""Turns as lines of JSON, and back. What is written keeps every character that the model wrote."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, is_dataclass
from typing import Any, assert_never, cast

from ..core.calls import ToolCall
from ..core.content import Block, Document, Image, Text
from ..core.model import AssistantPart, AssistantTurn, ResultTurn, Thought, ToolResult, Usage, UserTurn


class UnreadableEntry(ValueError):
    """A line that is not an entry, or one that no turn can hold."""


def line_of(entry: Mapping[str, Any]) -> bytes:
    """One line. UTF-8, but for a lone surrogate, for which JSON has an escape and UTF-8 has no bytes."""
    try:
        return _AS_IT_IS.encode(entry).encode() + b"\n"
    except UnicodeEncodeError:
        return _ESCAPED.encode(entry).encode() + b"\n"


def entry_of(line: bytes) -> dict[str, Any]:
    """Raises `UnreadableEntry`."""
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError):
        raise UnreadableEntry("not JSON") from None
    if not isinstance(entry, dict):
        raise UnreadableEntry("not an object")
    return cast(dict[str, Any], entry)


def _plain(value: Any) -> Any:
    """A tool's own values may be dataclasses or sets; they come back as plain JSON."""
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    if isinstance(value, set | frozenset):
        return sorted(cast(frozenset[Any], value), key=str)
    raise TypeError(f"{type(value).__name__} has no form in JSON")


_AS_IT_IS = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=_plain)
_ESCAPED = json.JSONEncoder(separators=(",", ":"), default=_plain)


# There


def user_fields(turn: UserTurn) -> dict[str, Any]:
    return {"content": [_block(block) for block in turn.content]}


def assistant_fields(turn: AssistantTurn) -> dict[str, Any]:
    return {"parts": [_part(part) for part in turn.parts]}


def results_fields(turn: ResultTurn) -> dict[str, Any]:
    results = [
        {"call": one.call_id, "content": [_block(block) for block in one.content], "error": one.is_error}
        for one in turn.results
    ]
    return {"results": results, **({"messages": list(turn.messages)} if turn.messages else {})}


def usage_fields(usage: Usage) -> dict[str, int]:
    return {
        "input": usage.input_tokens,
        "output": usage.output_tokens,
        "cache_read": usage.cache_read_tokens,
        "cache_write": usage.cache_write_tokens,
    }


def _block(block: Block) -> dict[str, Any]:
    match block:
        case Text(text):
            return {"type": "text", "text": text}
        case Image(media_type, data):
            return {"type": "image", "media_type": media_type, "base64": data}
        case Document(media_type, data, title):
            return {"type": "document", "media_type": media_type, "base64": data, "title": title}
        case _:
            assert_never(block)


def _part(part: AssistantPart) -> dict[str, Any]:
    match part:
        case Text(text):
            return {"type": "text", "text": text}
        case Thought(text, signature, redacted):
            return {"type": "thought", "text": text, "signature": signature, "redacted": redacted}
        case ToolCall(id, name, arguments, malformed):
            call = {"type": "call", "id": id, "name": name, "arguments": arguments}
            return call if malformed is None else {**call, "malformed": malformed}
        case _:
            assert_never(part)


# And back


def user_turn(entry: Mapping[str, Any]) -> UserTurn:
    """Raises `UnreadableEntry`, like the others here."""
    return UserTurn(tuple(_read_block(block) for block in _list(entry, "content")))


def assistant_turn(entry: Mapping[str, Any]) -> AssistantTurn:
    return AssistantTurn(tuple(_read_part(part) for part in _list(entry, "parts")))


def result_turn(entry: Mapping[str, Any]) -> ResultTurn:
    results = tuple(
        ToolResult(
            _text(one, "call"),
            tuple(_read_block(block) for block in _list(one, "content")),
            one.get("error") is True,
        )
        for one in _list(entry, "results")
    )
    return ResultTurn(results, texts(entry, "messages") if "messages" in entry else ())


def texts(entry: Mapping[str, Any], key: str) -> tuple[str, ...]:
    values = entry.get(key)
    if not isinstance(values, list) or not all(isinstance(value, str) for value in cast(list[Any], values)):
        raise UnreadableEntry(f"`{key}` is not a list of texts")
    return tuple(cast(list[str], values))


def _read_block(block: Mapping[str, Any]) -> Block:
    match block.get("type"):
        case "text":
            return Text(_text(block, "text"))
        case "image":
            return Image(_text(block, "media_type"), _text(block, "base64"))
        case "document":
            return Document(_text(block, "media_type"), _text(block, "base64"), _text(block, "title"))
        case other:
            raise UnreadableEntry(f"no such block: {other}")


def _read_part(part: Mapping[str, Any]) -> AssistantPart:
    match part.get("type"):
        case "text":
            return Text(_text(part, "text"))
        case "thought":
            return Thought(_text(part, "text"), _text(part, "signature"), _text(part, "redacted"))
        case "call":
            arguments = part.get("arguments")
            if not isinstance(arguments, dict):
                raise UnreadableEntry("a call without arguments")
            malformed = _text(part, "malformed") if "malformed" in part else None
            return ToolCall(_text(part, "id"), _text(part, "name"), cast(dict[str, Any], arguments), malformed)
        case other:
            raise UnreadableEntry(f"no such part: {other}")


def _text(fields: Mapping[str, Any], key: str) -> str:
    value = fields.get(key)
    if not isinstance(value, str):
        raise UnreadableEntry(f"`{key}` is not a text")
    return value


def _list(entry: Mapping[str, Any], key: str) -> Sequence[Mapping[str, Any]]:
    values = entry.get(key)
    if not isinstance(values, list) or not all(isinstance(value, dict) for value in cast(list[Any], values)):
        raise UnreadableEntry(f"`{key}` is not a list of objects")
    return cast(list[dict[str, Any]], values)
