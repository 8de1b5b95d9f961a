"""Entries as the first version of transcripts had them, in the form of today.

They are translated as they are read, so no other module knows that there were two forms. Files are not rewritten.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

_HEAD = {"parent": "parentUuid", "session": "sessionId", "time": "timestamp"}
_USAGE = {
    "input": "input_tokens",
    "output": "output_tokens",
    "cache_read": "cache_read_input_tokens",
    "cache_write": "cache_creation_input_tokens",
}


def modern_entry(entry: dict[str, Any]) -> dict[str, Any]:
    """The entry itself, unless it is an old one. What cannot be understood in an old one stays as it is."""
    if "sessionId" in entry or "session" not in entry:
        return entry
    head = {_HEAD.get(key, key): value for key, value in entry.items() if key not in ("content", "parts", "results")}
    match entry:
        case {"type": "user", "content": content}:
            return {**head, "message": {"role": "user", "content": _each(_block, content)}}
        case {"type": "notes", "texts": texts}:
            blocks = _each(_text_block, texts)
            return {**head, "type": "user", "kind": "notes", "message": {"role": "user", "content": blocks}}
        case {"type": "assistant", "parts": parts}:
            written = {"role": "assistant", "model": entry.get("model"), "content": _each(_part, parts)}
            return {**head, "message": {**written, "usage": _usage(entry)}}
        case {"type": "results", "results": results}:
            answers, said = _each(_result, results), _each(_text_block, entry.get("messages", []))
            content = None if answers is None or said is None else [*answers, *said]
            return {**head, "type": "user", "kind": "results", "message": {"role": "user", "content": content}}
        case {"type": "compaction", "summary": summary}:
            return {**head, "type": "user", "kind": "compaction", "message": {"role": "user", "content": summary}}
        case {"type": "title"}:
            return {**head, "type": "custom-title", "kind": "title", "customTitle": entry.get("text")}
        case {"type": "tag"}:
            return {**head, "tag": entry.get("text")}
        case {"type": "usage"}:
            return {**head, "message": {"model": entry.get("model"), "usage": _usage(entry)}}
        case _:
            return head


def _each(translate: Callable[[Any], Any], values: object) -> list[Any] | None:
    """Each of them translated; what is not a list is for the reader to refuse."""
    return [translate(one) for one in cast(list[Any], values)] if isinstance(values, list) else None


def _text_block(text: object) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _usage(entry: Mapping[str, Any]) -> dict[str, Any]:
    usage = entry.get("usage")
    known = cast(dict[str, Any], usage) if isinstance(usage, dict) else {}
    return {name: known.get(old, 0) for old, name in _USAGE.items()}


def _block(block: Any) -> Any:
    if not isinstance(block, dict) or "base64" not in block:
        return cast(object, block)
    block = cast(dict[str, Any], block)
    source = {"type": "base64", "media_type": block.get("media_type"), "data": block["base64"]}
    return {"type": block.get("type"), "source": source, **({"title": block["title"]} if "title" in block else {})}


def _part(part: Any) -> Any:
    match part:
        case {"type": "thought", "redacted": str(data)} if data:
            thought = {"thinking": part.get("text"), "signature": part.get("signature")}
            return {"type": "redacted_thinking", "data": data, **thought}
        case {"type": "thought"}:
            return {"type": "thinking", "thinking": part.get("text"), "signature": part.get("signature")}
        case {"type": "call"}:
            malformed = {"malformed": part["malformed"]} if "malformed" in part else {}
            call = {"id": part.get("id"), "name": part.get("name"), "input": part.get("arguments")}
            return {"type": "tool_use", **call, **malformed}
        case _:
            return part


def _result(one: Any) -> Any:
    if not isinstance(one, dict):
        return one
    one = cast(dict[str, Any], one)
    said = {"type": "tool_result", "tool_use_id": one.get("call"), "content": _each(_block, one.get("content", []))}
    return {**said, "is_error": True} if one.get("error") is True else said
