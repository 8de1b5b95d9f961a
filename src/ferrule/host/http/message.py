"""What is asked, and how it fails."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, TypeAlias

from ...core.values import named_value
from .urls import Url

MEGABYTE = 1 << 20

HttpErrorKind: TypeAlias = Literal[
    "url", "resolve", "connect", "tls", "proxy", "timeout", "closed", "protocol", "too_large"
]
"""No URL that can be asked; a name without address; no connection; no trust; a proxy's fault; nothing came in time;
an early end; an answer that is not HTTP; a body over the limit."""


class HttpError(Exception):
    """No answer, or not all of it. The message is for a person and says which host."""

    def __init__(self, kind: HttpErrorKind, message: str) -> None:
        super().__init__(message)
        self.kind: HttpErrorKind = kind


@named_value
class Timeouts:
    """In seconds. The whole exchange has no limit: a caller that wants one has `asyncio.timeout`."""

    connect: float = 15.0
    """Name, connection, proxy and TLS together."""
    first_byte: float = 60.0
    """From sending the request to the answer's headers."""
    idle: float = 60.0
    """Between two pieces of the body."""


DEFAULT_TIMEOUTS = Timeouts()


@named_value
class HttpRequest:
    """One request. `host`, `content-length`, `accept-encoding` and `user-agent` are added where not given."""

    url: Url
    method: str = "GET"
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    address: str | None = None
    """The IP address to connect to, for a caller who resolved the name and checked what it found."""
    timeouts: Timeouts = DEFAULT_TIMEOUTS
    most_body: int = 32 * MEGABYTE
    """How many bytes of the answer to take, after decompression."""


class Headers:
    """An answer's headers: names of any case, values as text, the first of several first."""

    __slots__ = ("_pairs",)

    def __init__(self, pairs: Sequence[tuple[bytes, bytes]]) -> None:
        self._pairs = tuple((name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in pairs)

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return iter(self._pairs)

    def all(self, name: str) -> list[str]:
        return [value for key, value in self._pairs if key == name.lower()]

    def get(self, name: str, default: str = "") -> str:
        """
        >>> Headers([(b"Content-Type", b"text/html")]).get("content-type")
        'text/html'
        """
        return next(iter(self.all(name)), default)
