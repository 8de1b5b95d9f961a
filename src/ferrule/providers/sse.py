"""Server-sent events, read from bytes that may be cut anywhere."""

from __future__ import annotations

import re

from ..core.values import plain_value

_BREAK = re.compile(rb"\r\n|\n|\r")
_MARK = b"\xef\xbb\xbf"


@plain_value
class ServerSentEvent:
    name: str
    data: str


class SseReader:
    """Buffers incomplete events. Lines end in LF, CRLF or CR; comments and unknown fields are skipped.

    >>> reader = SseReader()
    >>> reader.feed(b"event: a\\r\\nda"), reader.feed(b"ta: 1\\r\\ndata: 2\\r\\n\\r\\n")
    ([], [ServerSentEvent(name='a', data='1\\n2')])
    """

    def __init__(self) -> None:
        self._rest = bytearray()
        self._skip_lf = False
        self._at_start = True
        self._name = ""
        self._data: list[str] = []

    def feed(self, chunk: bytes) -> list[ServerSentEvent]:
        if self._skip_lf and chunk:
            chunk = chunk.removeprefix(b"\n")
            self._skip_lf = False
        self._rest += chunk
        if b"\n" not in chunk and b"\r" not in chunk:
            return []
        self._skip_lf = chunk.endswith(b"\r")
        *lines, rest = _BREAK.split(bytes(self._rest))
        self._rest = bytearray(rest)
        return [event for line in lines if (event := self._line(line)) is not None]

    def end(self) -> list[ServerSentEvent]:
        """The event that lacks only its trailing empty line, as many servers end."""
        lines = (bytes(self._rest), b"")
        self._rest.clear()
        return [event for line in lines if (event := self._line(line)) is not None]

    def _line(self, line: bytes) -> ServerSentEvent | None:
        if self._at_start:
            line = line.removeprefix(_MARK)
            self._at_start = False
        if not line:
            return self._whole()
        field, _, value = line.decode("utf-8", "replace").partition(":")
        value = value.removeprefix(" ")
        if field == "data":
            self._data.append(value)
        elif field == "event":
            self._name = value
        return None

    def _whole(self) -> ServerSentEvent | None:
        name, data = self._name, self._data
        self._name, self._data = "", []
        return ServerSentEvent(name, "\n".join(data)) if data else None
