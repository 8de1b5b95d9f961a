"""Messages in the framing of AWS (`application/vnd.amazon.eventstream`), as the events inside of them."""

from __future__ import annotations

import base64
import binascii
import json
import struct
import zlib
from collections.abc import Iterator
from typing import Any, Final

from ..core.values import plain_value
from .service_requests import BadFrame
from .sse import ServerSentEvent

PRELUDE: Final = 12
"""The length of the message, that of its headers, and a checksum of both."""
MOST_FRAME: Final = 24 << 20
_SIZES: Final = {0: 0, 1: 0, 2: 1, 3: 2, 4: 4, 5: 8, 8: 8, 9: 16}
"""Values of headers by their type; those of types 6 and 7 begin with their length."""
_WITH_LENGTH: Final = frozenset({6, 7})
_KINDS: Final = {
    "throttlingexception": "rate_limit_error",
    "validationexception": "invalid_request_error",
    "accessdeniedexception": "permission_error",
    "resourcenotfoundexception": "not_found_error",
    "serviceunavailableexception": "overloaded_error",
    "modelnotreadyexception": "overloaded_error",
}
"""Exceptions by the name that the Messages API has for them; others are the service's own trouble."""


@plain_value
class Frame:
    headers: dict[str, str]
    payload: bytes


class EventStreamReader:
    """Buffers incomplete messages; every checksum is verified. Satisfies `FrameReader`."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def feed(self, chunk: bytes, /) -> Iterator[ServerSentEvent]:
        """What came before a message that cannot be read is given first."""
        self._rest += chunk
        while (length := self._next_length()) is not None:
            data = bytes(self._rest[:length])
            del self._rest[:length]
            if (event := read_event(parse_frame(data))) is not None:
                yield event

    def end(self) -> list[ServerSentEvent]:
        """A message without its end has no checksum, so nothing of it can be used."""
        return []

    def _next_length(self) -> int | None:
        """Of the first message, if all of it has come."""
        if len(self._rest) < PRELUDE:
            return None
        length, headers, checksum = struct.unpack_from(">III", self._rest)
        if zlib.crc32(self._rest[:8]) != checksum:
            raise BadFrame("the checksum of a message's beginning is wrong")
        if not PRELUDE + headers + 4 <= length <= MOST_FRAME:
            raise BadFrame(f"a message claims to have {length} bytes")
        return length if len(self._rest) >= length else None


def parse_frame(data: bytes) -> Frame:
    """One whole message whose prelude was checked. Raises `BadFrame`."""
    (checksum,) = struct.unpack_from(">I", data, len(data) - 4)
    if zlib.crc32(data[:-4]) != checksum:
        raise BadFrame("the checksum of a message is wrong")
    (size,) = struct.unpack_from(">I", data, 4)
    return Frame(_parse_headers(data[PRELUDE : PRELUDE + size]), data[PRELUDE + size : -4])


def _parse_headers(data: bytes) -> dict[str, str]:
    headers: dict[str, str] = {}
    at = 0
    try:
        while at < len(data):
            name = data[at + 1 : at + 1 + data[at]].decode()
            at += 1 + data[at]
            kind = data[at]
            at += 1
            if kind in _WITH_LENGTH:
                (size,) = struct.unpack_from(">H", data, at)
                at += 2
            else:
                size = _SIZES[kind]
            if at + size > len(data):
                raise BadFrame("a header of a message is cut off")
            headers[name] = data[at : at + size].decode("utf-8", "replace")
            at += size
    except (IndexError, KeyError, UnicodeDecodeError, struct.error):
        raise BadFrame("the headers of a message cannot be read") from None
    return headers


def read_event(frame: Frame) -> ServerSentEvent | None:
    """A piece of the model's answer, or an error in the form of the Messages API; `None` for anything else."""
    match frame.headers.get(":message-type"):
        case "event" if frame.headers.get(":event-type") == "chunk":
            return ServerSentEvent("", _piece(frame.payload))
        case "event":
            return None
        case "exception":
            kind = frame.headers.get(":exception-type", "")
            return _error(kind, _message(frame.payload))
        case "error":
            return _error(frame.headers.get(":error-code", ""), frame.headers.get(":error-message", ""))
        case other:
            raise BadFrame(f"a message is of the unknown type {other}")


def _piece(payload: bytes) -> str:
    try:
        return base64.b64decode(json.loads(payload)["bytes"], validate=True).decode()
    except (ValueError, KeyError, TypeError, binascii.Error, RecursionError):
        raise BadFrame("a piece of the answer cannot be read") from None


def _message(payload: bytes) -> str:
    try:
        value: Any = json.loads(payload)
        return str(value["message"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return payload.decode("utf-8", "replace")


def _error(kind: str, message: str) -> ServerSentEvent:
    error = {"type": _KINDS.get(kind.lower(), "api_error"), "message": message or kind}
    return ServerSentEvent("error", json.dumps({"type": "error", "error": error}))
