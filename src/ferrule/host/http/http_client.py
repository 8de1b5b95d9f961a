"""A small HTTP client: one exchange is one `async with`, and leaving it early closes the socket.

It follows no redirect and keeps no cookies: who asks decides.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from types import TracebackType
from typing import Self

import h11

from ..._version import __version__
from .bodies import BodyReader
from .connection import Connection, Route
from .message import Headers, HttpError, HttpRequest
from .proxies import Proxy, proxy_for
from .tls import Tls
from .urls import bracket_host

IDLE_SECONDS = 60.0
"""How long an unused connection is worth keeping; others on the way forget it, too."""
MOST_IDLE = 8
IDEMPOTENT = frozenset({"GET", "HEAD", "OPTIONS", "PUT", "DELETE"})
WITH_LENGTH = frozenset({"POST", "PUT", "PATCH"})


class HttpResponse:
    """An answer whose body still comes."""

    def __init__(self, connection: Connection, head: h11.Response, request: HttpRequest) -> None:
        self.status = head.status_code
        self.headers = Headers(head.headers.raw_items())
        self._connection = connection
        self._idle = request.timeouts.idle
        self.is_framed = bool(self.headers.get("transfer-encoding") or self.headers.get("content-length"))
        """Whether the end of the body is marked, and not merely the end of the connection."""
        encoding = "" if request.method == "HEAD" else self.headers.get("content-encoding")
        self._body = BodyReader(encoding, most=request.most_body, host=request.url.authority)
        self.is_whole = False
        """Whether the last byte has come."""

    async def chunks(self) -> AsyncIterator[bytes]:
        """The body as it comes, decompressed."""
        while (data := await self._wire_bytes()) is not None:
            for piece in self._body.feed(data):
                yield piece
        self._body.end()

    async def read(self) -> bytes:
        return b"".join([chunk async for chunk in self.chunks()])

    async def finish(self, seconds: float) -> None:
        """Take what is left, if it comes soon, so that the connection can be used again. Never fails."""
        with suppress(TimeoutError, HttpError):
            async with asyncio.timeout(seconds):
                while not self.is_whole:
                    await self._wire_bytes()

    async def _wire_bytes(self) -> bytes | None:
        if self.is_whole:
            return None
        data = await self._connection.body(self._idle)
        self.is_whole = data is None
        return data


class HttpClient:
    """Keeps connections that can be used again, until it is closed."""

    def __init__(self, environ: Mapping[str, str], *, tls: Tls | None = None) -> None:
        """`environ` names the proxies."""
        self._environ = environ
        self._tls = tls or Tls()
        self._idle: list[Connection] = []

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        while self._idle:
            self._idle.pop().close()
        await asyncio.sleep(0)  # the loop closes sockets in its next round

    @asynccontextmanager
    async def send(self, request: HttpRequest) -> AsyncGenerator[HttpResponse]:
        """Raises `HttpError`, here and from the body. Any status is an answer."""
        connection, head = await self._exchange(request)
        async with connection.close_on_failure():
            response = HttpResponse(connection, head, request)
            yield response
        if response.is_whole and connection.rest():
            self._keep(connection)
        else:
            connection.close()

    async def _exchange(self, request: HttpRequest) -> tuple[Connection, h11.Response]:
        route = Route.to(request.url, request.address, proxy_for(request.url, self._environ))
        if (kept := self._take_idle(route)) is not None:
            try:
                return kept, await _send_and_read_head(kept, request)
            except HttpError as error:
                # The other end closed an idle connection as we took it. Only what may be asked twice is.
                if error.kind != "closed" or kept.answered or request.method not in IDEMPOTENT:
                    raise
        connection = await Connection.open(route, self._tls, request.timeouts.connect)
        return connection, await _send_and_read_head(connection, request)

    def _take_idle(self, route: Route) -> Connection | None:
        """The connection used last, which is the likeliest to be alive. Stale ones are closed on the way."""
        for connection in [one for one in self._idle if not one.is_fresh(IDLE_SECONDS)]:
            self._idle.remove(connection)
            connection.close()
        for connection in reversed(self._idle):
            if connection.route == route:
                self._idle.remove(connection)
                return connection
        return None

    def _keep(self, connection: Connection) -> None:
        self._idle.append(connection)
        if len(self._idle) > MOST_IDLE:
            self._idle.pop(0).close()


async def _send_and_read_head(connection: Connection, request: HttpRequest) -> h11.Response:
    proxy = connection.route.proxy if request.url.scheme == "http" else None
    async with connection.close_on_failure():
        connection.send(request, _headers(request, proxy), _target(request, proxy))
        return await connection.head(request.timeouts.first_byte)


def _target(request: HttpRequest, proxy: Proxy | None) -> str:
    """A proxy gets the whole URL; where the address was checked, with that instead of the name."""
    if proxy is None:
        return request.url.target
    host = f"{bracket_host(request.address or request.url.host)}:{request.url.port}"
    return f"http://{host}{request.url.target}"


def _headers(request: HttpRequest, proxy: Proxy | None) -> list[tuple[str, str]]:
    given = {name.lower() for name, _ in request.headers}
    headers = [("Host", request.url.authority), *request.headers]
    if "user-agent" not in given:
        headers.append(("User-Agent", f"ferrule/{__version__}"))
    if "accept-encoding" not in given:
        headers.append(("Accept-Encoding", "gzip, deflate"))
    if request.body or request.method in WITH_LENGTH:
        headers.append(("Content-Length", str(len(request.body))))
    if proxy and proxy.authorization:
        headers.append(("Proxy-Authorization", proxy.authorization))
    return headers
