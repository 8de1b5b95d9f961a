"""The lines that a program writes to us with `--input-format stream-json`: messages, requests and answers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, TypeAlias, cast

from ..core.content import Block, Document, Image, Text
from ..core.values import plain_value

_MEDIA = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})


@plain_value
class InputMessage:
    content: tuple[Block, ...]
    uuid: str = ""
    """The sender's own id of it, if it gave one."""


@plain_value
class ControlRequest:
    """Something to do outside the conversation, answered with the same id."""

    id: str
    subtype: str
    request: Mapping[str, Any]


@plain_value
class ControlAnswer:
    """The answer to a request of ours; `error` where the other side could not give one."""

    id: str
    response: Mapping[str, Any]
    error: str = ""


@plain_value
class ControlCancel:
    """A request whose answer is no longer needed."""

    id: str


@plain_value
class BadLine:
    number: int
    reason: str


@plain_value
class Ignored:
    """A line that asks for nothing: a keep-alive, or an empty one."""


Incoming: TypeAlias = InputMessage | ControlRequest | ControlAnswer | ControlCancel | BadLine | Ignored


class _Bad(ValueError):
    pass


def read_line(line: bytes, number: int) -> Incoming:
    """What a line says; never raises."""
    if not line.strip():
        return Ignored()
    try:
        content: Any = json.loads(line.decode("utf-8-sig" if number == 1 else "utf-8"), parse_constant=_not_json)
    except UnicodeDecodeError as error:
        return BadLine(number, f"it is not UTF-8: {error.reason} at byte {error.start}.")
    except (ValueError, RecursionError) as error:
        return BadLine(number, f"it is not JSON: {error or type(error).__name__}.")
    try:
        return _read(content)
    except _Bad as error:
        return BadLine(number, str(error))


def _read(content: Any) -> Incoming:
    if not isinstance(content, dict):
        raise _Bad('it must be a JSON object with a `type`, such as {"type": "user", "message": {...}}.')
    line = cast(Mapping[str, Any], content)
    match line.get("type"):
        case "user":
            id = line.get("uuid")
            return InputMessage(_blocks(_object(line, "message").get("content")), id if isinstance(id, str) else "")
        case "control_request":
            request = _object(line, "request")
            return ControlRequest(_text(line, "request_id"), _text(request, "subtype"), request)
        case "control_response":
            return _answer(_object(line, "response"))
        case "control_cancel_request":
            return ControlCancel(_text(line, "request_id"))
        case "keep_alive" | "update_environment_variables":
            return Ignored()
        case other:
            raise _Bad(f"`type` must be user, control_request or control_response, not {json.dumps(other)[:80]}.")


def _answer(response: Mapping[str, Any]) -> ControlAnswer:
    id = _text(response, "request_id")
    if response.get("subtype") == "error":
        return ControlAnswer(id, {}, str(response.get("error") or "no reason given"))
    given = response.get("response")
    return ControlAnswer(id, cast(Mapping[str, Any], given) if isinstance(given, dict) else {})


def _blocks(content: Any) -> tuple[Block, ...]:
    if isinstance(content, str):
        if not content.strip():
            raise _Bad("`message.content` is empty.")
        return (Text(content),)
    if not isinstance(content, list) or not content:
        raise _Bad("`message.content` must be a text, or a list of blocks.")
    return tuple(_block(part) for part in cast(list[Any], content))


def _block(part: Any) -> Block:
    if not isinstance(part, dict):
        raise _Bad("a block of a message must be an object.")
    block = cast(Mapping[str, Any], part)
    match block.get("type"):
        case "text":
            return Text(_text(block, "text"))
        case "image":
            media_type, data = _source(block)
            if media_type not in _MEDIA:
                raise _Bad(f"an image must be one of {', '.join(sorted(_MEDIA))}.")
            return Image(media_type, data)
        case "document":
            media_type, data = _source(block)
            return Document(media_type, data, str(block.get("title") or ""))
        case other:
            raise _Bad(f"a block of a message must be text, image or document, not {json.dumps(other)[:80]}.")


def _source(block: Mapping[str, Any]) -> tuple[str, str]:
    source = _object(block, "source")
    if source.get("type") != "base64":
        raise _Bad("the `source` of a block must be of the type base64.")
    return _text(source, "media_type"), _text(source, "data")


def _object(holder: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = holder.get(key)
    if not isinstance(value, dict):
        raise _Bad(f"`{key}` must be an object.")
    return cast(Mapping[str, Any], value)


def _text(holder: Mapping[str, Any], key: str) -> str:
    value = holder.get(key)
    if not isinstance(value, str) or not value:
        raise _Bad(f"`{key}` must be a text that is not empty.")
    return value


def _not_json(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")
