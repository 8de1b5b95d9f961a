"""Turns as lines of JSON, and back. What is written keeps every character that the model wrote.

A turn is stored as the `message` of its entry, in the form of the Messages API, which is the one that programs that
read transcripts know (docs/adr/0022-transcripts-others-read.md).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, is_dataclass
from typing import Any, assert_never, cast

from ..core.calls import ServiceFields, ToolCall
from ..core.content import Block, Document, Image, Text
from ..core.ids import new_uuid
from ..core.model import AssistantPart, AssistantTurn, ResultTurn, StopReason, Thought, ToolResult, Usage, UserTurn
from ..core.values import plain_value
from .first_entries import modern_entry
from .shortening import Form

PEEKED = 400
"""Bytes of a line in which all that every entry has is found."""
_OWN_LINE = re.compile(rb'\{"type":"([a-z-]+)",(?:"kind":"([a-z-]+)",)?"uuid":"[^{\[]*?,"agent":"([^"\\]*)"')
STOP_REASONS: Mapping[StopReason, str] = {"end": "end_turn"}
"""Where the name in the Messages API is another."""


_USUAL = {"longest": 0, "words": 0, "pictures": True}


class UnreadableEntry(ValueError):
    """A line that is not an entry, or one that no turn can hold."""


def line_of(entry: Mapping[str, Any]) -> bytes:
    """One line. UTF-8, but for a lone surrogate, for which JSON has an escape and UTF-8 has no bytes."""
    try:
        return _AS_IT_IS.encode(entry).encode() + b"\n"
    except UnicodeEncodeError:
        return _ESCAPED.encode(entry).encode() + b"\n"


def entry_of(line: bytes) -> dict[str, Any]:
    """In the form of today, whenever it was written. Raises `UnreadableEntry`."""
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError):
        raise UnreadableEntry("not JSON") from None
    if not isinstance(entry, dict):
        raise UnreadableEntry("not an object")
    return modern_entry(cast(dict[str, Any], entry))


@plain_value
class PeekedEntry:
    """What is known of an entry before its line is read as JSON."""

    kind: str
    agent: str


def peek(line: bytes) -> PeekedEntry | None:
    """`None` where the line was not written by `line_of`; another writer may put blanks and fields anywhere."""
    found = _OWN_LINE.match(line, 0, PEEKED)
    return PeekedEntry((found[2] or found[1]).decode(), found[3].decode("utf-8", "replace")) if found else None


def kind_of(entry: Mapping[str, Any]) -> str:
    """What an entry is here; `type` is what it is for other programs, and the same for most."""
    kind: object = entry.get("kind") or entry.get("type")
    return kind if isinstance(kind, str) else ""


def _plain(value: Any) -> Any:
    """A tool's own values may be dataclasses or sets; they come back as plain JSON."""
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    if isinstance(value, set | frozenset):
        return sorted(cast(frozenset[Any], value), key=str)
    raise TypeError(f"{type(value).__name__} has no form in JSON")


_AS_IT_IS = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=_plain)
_ESCAPED = json.JSONEncoder(separators=(",", ":"), default=_plain)


# To JSON


def user_fields(turn: UserTurn) -> dict[str, Any]:
    return {"message": {"role": "user", "content": _contents(turn.content)}}


def notes_fields(texts: Sequence[str]) -> dict[str, Any]:
    return {"message": {"role": "user", "content": _contents(tuple(map(Text, texts)))}}


def assistant_fields(turn: AssistantTurn, *, model: str, stopped: StopReason, usage: Usage) -> dict[str, Any]:
    message = {
        "id": f"msg_{new_uuid()}",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [_part(part) for part in turn.parts],
        "stop_reason": STOP_REASONS.get(stopped, stopped),
        "stop_sequence": None,
        "usage": usage_fields(usage),
    }
    return {"message": message}


def results_fields(turn: ResultTurn) -> dict[str, Any]:
    """Results, and behind them the messages that they added."""
    results = [
        {
            "type": "tool_result",
            "tool_use_id": one.call_id,
            "content": _contents(one.content),
            **({"is_error": True} if one.is_error else {}),
        }
        for one in turn.results
    ]
    return {"message": {"role": "user", "content": [*results, *(_block(Text(text)) for text in turn.messages)]}}


def form_fields(form: Form) -> dict[str, Any]:
    """Of a compaction. Defaults are left out, as entries of earlier versions have them not."""
    more = {"longest": form.longest, "words": form.words, "pictures": form.pictures}
    return {"kept": form.kept, "whole": form.whole, **{key: more[key] for key in more if more[key] != _USUAL[key]}}


def usage_fields(usage: Usage) -> dict[str, int]:
    return {
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cache_read_input_tokens": usage.cache_read_tokens,
        "cache_creation_input_tokens": usage.cache_write_tokens,
    }


def _contents(blocks: Sequence[Block]) -> str | list[dict[str, Any]]:
    """One text is written as a string: scripts that look for what was said expect that."""
    match blocks:
        case [Text(text)]:
            return text
        case _:
            return [_block(block) for block in blocks]


def _block(block: Block) -> dict[str, Any]:
    match block:
        case Text(text):
            return {"type": "text", "text": text}
        case Image(media_type, data):
            return {"type": "image", "source": _base64(media_type, data)}
        case Document(media_type, data, title):
            return {"type": "document", "source": _base64(media_type, data), "title": title}
        case _:
            assert_never(block)


def _base64(media_type: str, data: str) -> dict[str, str]:
    return {"type": "base64", "media_type": media_type, "data": data}


def _part(part: AssistantPart) -> dict[str, Any]:
    match part:
        case Text(text):
            return {"type": "text", "text": text}
        case Thought(text, signature, "", extras):
            return {"type": "thinking", "thinking": text, "signature": signature, **_extras(extras)}
        case Thought(text, signature, redacted, extras):
            open_part = {"thinking": text, "signature": signature} if text or signature else {}
            return {"type": "redacted_thinking", "data": redacted, **open_part, **_extras(extras)}
        case ToolCall(id, name, arguments, malformed, extras):
            call = {"type": "tool_use", "id": id, "name": name, "input": arguments, **_extras(extras)}
            return call if malformed is None else {**call, "malformed": malformed}
        case _:
            assert_never(part)


def _extras(extras: ServiceFields | None) -> dict[str, Any]:
    return {"extras": {"origin": extras.origin, "fields": extras.fields}} if extras else {}


# From JSON


def user_turn(entry: Mapping[str, Any]) -> UserTurn:
    """Raises `UnreadableEntry`, like the others here."""
    return UserTurn(_read_contents(_message(entry)))


def note_texts(entry: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(block.text for block in _read_contents(_message(entry)) if isinstance(block, Text))


def assistant_turn(entry: Mapping[str, Any]) -> AssistantTurn:
    return AssistantTurn(tuple(_read_part(part) for part in _list(_message(entry), "content")))


def result_turn(entry: Mapping[str, Any]) -> ResultTurn:
    results: list[ToolResult] = []
    messages: list[str] = []
    for block in _list(_message(entry), "content"):
        if block.get("type") == "tool_result":
            is_error = block.get("is_error") is True
            results.append(ToolResult(_text(block, "tool_use_id"), _read_contents(block), is_error))
        else:
            messages.append(_text(block, "text"))
    return ResultTurn(tuple(results), tuple(messages))


def form_of(entry: Mapping[str, Any]) -> Form:
    kept, whole = entry.get("kept"), entry.get("whole")
    if not (isinstance(kept, int) and isinstance(whole, int)):
        raise UnreadableEntry("a compaction that does not say what stays")
    longest, words = (value if isinstance(value := entry.get(key), int) else 0 for key in ("longest", "words"))
    return Form(kept=kept, whole=whole, longest=longest, words=words, pictures=entry.get("pictures") is not False)


def texts(entry: Mapping[str, Any], key: str) -> tuple[str, ...]:
    values = entry.get(key)
    if not isinstance(values, list) or not all(isinstance(value, str) for value in cast(list[Any], values)):
        raise UnreadableEntry(f"`{key}` is not a list of texts")
    return tuple(cast(list[str], values))


def _message(entry: Mapping[str, Any]) -> Mapping[str, Any]:
    message = entry.get("message")
    if not isinstance(message, dict):
        raise UnreadableEntry("an entry without its message")
    return cast(dict[str, Any], message)


def _read_contents(holder: Mapping[str, Any]) -> tuple[Block, ...]:
    if isinstance(said := holder.get("content"), str):
        return (Text(said),)
    return tuple(_read_block(block) for block in _list(holder, "content"))


def _read_block(block: Mapping[str, Any]) -> Block:
    match block:
        case {"type": "text"}:
            return Text(_text(block, "text"))
        case {"type": "image", "source": {"media_type": str(media_type), "data": str(data)}}:
            return Image(media_type, data)
        case {"type": "document", "source": {"media_type": str(media_type), "data": str(data)}}:
            return Document(media_type, data, _text(block, "title"))
        case _:
            raise UnreadableEntry(f"not a block that is known: {block.get('type')}")


def _read_part(part: Mapping[str, Any]) -> AssistantPart:
    match part.get("type"):
        case "text":
            return Text(_text(part, "text"))
        case "thinking":
            return Thought(_text(part, "thinking"), _text(part, "signature"), extras=_read_extras(part))
        case "redacted_thinking":
            text, signature = (_text(part, key) if key in part else "" for key in ("thinking", "signature"))
            return Thought(text, signature, _text(part, "data"), _read_extras(part))
        case "tool_use":
            arguments = part.get("input")
            if not isinstance(arguments, dict):
                raise UnreadableEntry("a call without arguments")
            malformed = _text(part, "malformed") if "malformed" in part else None
            id, name, extras = _text(part, "id"), _text(part, "name"), _read_extras(part)
            return ToolCall(id, name, cast(dict[str, Any], arguments), malformed, extras)
        case other:
            raise UnreadableEntry(f"not a part that is known: {other}")


def _read_extras(part: Mapping[str, Any]) -> ServiceFields | None:
    """Without those that cannot be read: the service then gets a turn without them."""
    extras = part.get("extras")
    if not isinstance(extras, dict):
        return None
    origin, fields = (cast(dict[str, Any], extras).get(key) for key in ("origin", "fields"))
    if not isinstance(origin, str) or not isinstance(fields, dict):
        return None
    return ServiceFields(origin, cast(dict[str, Any], fields))


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
