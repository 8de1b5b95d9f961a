"""Bodies as they were before somebody compressed them, and never more than was asked for."""

from __future__ import annotations

import zlib
from collections.abc import Iterator

from .message import HttpError

PIECE = 1 << 16
HEADER = 2
DEFLATE = zlib.MAX_WBITS
GZIP = zlib.MAX_WBITS | 16


class BodyReader:
    """Takes the bytes of the wire, gives those of the content, piece by piece."""

    def __init__(self, encoding: str, *, most: int, host: str) -> None:
        self._unpacking = _unpacking(encoding, host)
        self._left = most
        self._most = most
        self._host = host

    def feed(self, data: bytes) -> Iterator[bytes]:
        pieces = self._unpacking.feed(data) if self._unpacking else (data,)
        try:
            for piece in pieces:
                self._left -= len(piece)
                if self._left < 0:
                    raise HttpError("too_large", f"The answer of {self._host} has more than {self._most:,} bytes.")
                yield piece
        except zlib.error:
            raise HttpError("protocol", f"The answer of {self._host} is not compressed as it says.") from None

    def end(self) -> None:
        if self._unpacking and not self._unpacking.is_whole:
            raise HttpError("closed", f"The compressed answer of {self._host} ends in the middle.")


def _unpacking(encoding: str, host: str) -> _Unpacking | None:
    match encoding.strip().lower():
        case "" | "identity":
            return None
        case "gzip" | "x-gzip":
            return _Unpacking(GZIP)
        case "deflate":
            return _Unpacking(DEFLATE)
        case other:
            raise HttpError("protocol", f'{host} answers in the encoding "{other}", which was not asked for.')


class _Unpacking:
    """gzip of one or several members, or deflate with its header or, as some servers send it, without."""

    def __init__(self, window: int) -> None:
        self._window = window
        self._stream = zlib.decompressobj(window)
        self._start = b""
        self._started = False

    @property
    def is_whole(self) -> bool:
        return self._stream.eof or not (self._started or self._start)

    def feed(self, data: bytes) -> Iterator[bytes]:
        if not self._started:
            data = self._start = self._start + data
            if len(data) < HEADER:
                return
            self._begin(data)
        while data:
            if self._stream.eof:
                if self._window != GZIP or not data.startswith(b"\x1f\x8b"):
                    return  # padding behind the end
                self._stream = zlib.decompressobj(self._window)
            piece = self._stream.decompress(data, PIECE)
            if piece:
                yield piece
            data = self._stream.unused_data if self._stream.eof else self._stream.unconsumed_tail
            if not data and len(piece) == PIECE and not self._stream.eof:
                yield from self._rest()

    def _begin(self, data: bytes) -> None:
        self._started, self._start = True, b""
        has_header = data[0] & 15 == zlib.DEFLATED and int.from_bytes(data[:HEADER]) % 31 == 0
        if self._window == DEFLATE and not has_header:
            self._window = -DEFLATE
            self._stream = zlib.decompressobj(self._window)

    def _rest(self) -> Iterator[bytes]:
        """What the library still holds of what it has taken in."""
        while piece := self._stream.decompress(b"", PIECE):
            yield piece
