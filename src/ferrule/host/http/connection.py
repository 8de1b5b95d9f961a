"""One connection: bytes in and out on asyncio's streams, and h11 to say what they mean."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import TypeAlias

import h11

from ...core.values import plain_value
from .message import HttpError, HttpRequest
from .proxies import Proxy
from .tls import Tls, is_untrusted
from .urls import Url, bracket_host

AtHand: TypeAlias = h11.Event | type[h11.NEED_DATA] | type[h11.PAUSED] | h11.RemoteProtocolError

MOST_HEAD = 1 << 16
READ_SIZE = 1 << 16
MOST_INTERIM_ANSWERS = 20
RACE_SECONDS = 0.25
"""How long one address of a host may take before the next is tried beside it."""


@plain_value
class Route:
    """Which connections can serve each other's requests."""

    scheme: str
    host: str
    port: int
    address: str | None
    proxy: Proxy | None

    @classmethod
    def to(cls, url: Url, address: str | None, proxy: Proxy | None) -> Route:
        return cls(url.scheme, url.host, url.port, address, proxy)

    @property
    def name(self) -> str:
        return f"{bracket_host(self.host)}:{self.port}"

    @property
    def endpoint(self) -> tuple[str, int]:
        """Host and port of the socket's other end."""
        return (self.proxy.host, self.proxy.port) if self.proxy else (self.address or self.host, self.port)


class Connection:
    """Used by one exchange at a time. Whatever goes wrong, it is closed and cannot be used again."""

    def __init__(self, route: Route, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.route = route
        self._loop = asyncio.get_running_loop()
        self._reader = reader
        self._writer = writer
        self._http = h11.Connection(h11.CLIENT, max_incomplete_event_size=MOST_HEAD)
        self._idle_since = 0.0
        self._ahead: AtHand | None = None
        """What followed the last piece of a body and was found with it."""
        self.answered = False
        """Whether anything of an answer to the last request has come."""

    @classmethod
    async def open(cls, route: Route, tls: Tls, seconds: float) -> Connection:
        async with _failing_clearly(route, seconds):
            host, port = route.endpoint
            direct_tls = route.scheme == "https" and not route.proxy
            reader, writer = await asyncio.open_connection(
                host,
                port,
                ssl=tls.context if direct_tls else None,
                server_hostname=route.host if direct_tls else None,
                # A cancelled race leaves its socket to the garbage collector; one address needs no race.
                happy_eyeballs_delay=None if _is_address(host) else RACE_SECONDS,
            )
            connection = cls(route, reader, writer)
            async with connection.close_on_failure():
                connection._set_options()
                if route.proxy and route.scheme == "https":
                    await connection._tunnel(route.proxy)
                    await writer.start_tls(tls.context, server_hostname=route.host)
            return connection

    @asynccontextmanager
    async def close_on_failure(self) -> AsyncGenerator[None]:
        """For whatever may be interrupted: a socket that is in the middle of something is of no more use."""
        is_fine = False
        try:
            yield
            is_fine = True
        finally:
            if not is_fine:
                self.close()

    def _set_options(self) -> None:
        """A peer that is gone without a word is noticed although nothing is sent."""
        plug: socket.socket = self._writer.get_extra_info("socket")
        plug.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)

    async def _tunnel(self, proxy: Proxy) -> None:
        target = f"{bracket_host(self.route.address or self.route.host)}:{self.route.port}"
        headers = [("Host", target)]
        if proxy.authorization:
            headers.append(("Proxy-Authorization", proxy.authorization))
        self._write(h11.Request(method="CONNECT", target=target, headers=headers), h11.EndOfMessage())
        answer = await self._head()
        if not 200 <= answer.status_code < 300:
            raise HttpError("proxy", f"The proxy {proxy.host} answered {answer.status_code} for {target}.")
        if self._http.trailing_data[0]:
            raise HttpError("proxy", f"The proxy {proxy.host} spoke before it was asked.")
        self._http = h11.Connection(h11.CLIENT, max_incomplete_event_size=MOST_HEAD)

    def send(self, request: HttpRequest, headers: list[tuple[str, str]], target: str) -> None:
        """Nothing is waited for: the loop writes while the answer is awaited, so an early one is seen."""
        self.answered = False
        try:
            head = h11.Request(method=request.method, target=target, headers=headers)
        except (h11.LocalProtocolError, UnicodeEncodeError):  # whose own words would quote a key
            raise HttpError("url", f"The request to {self.route.name} has an invalid header or path.") from None
        self._write(head, *([h11.Data(data=request.body)] if request.body else []), h11.EndOfMessage())

    def _write(self, *events: h11.Event) -> None:
        """In one piece, which the other end has to wake up for once."""
        self._writer.writelines([self._http.send(event) or b"" for event in events])

    async def head(self, seconds: float) -> h11.Response:
        """All of it within that many seconds."""
        try:
            async with asyncio.timeout(seconds):
                return await self._head()
        except TimeoutError:
            raise HttpError("timeout", f"{self.route.name} gave no answer within {seconds:g} seconds.") from None

    async def _head(self) -> h11.Response:
        for _ in range(MOST_INTERIM_ANSWERS):
            event = await self._next_event()
            if isinstance(event, h11.Response):
                return event
        raise HttpError("protocol", f"{self.route.name} keeps sending interim responses.")

    async def body(self, idle: float) -> bytes | None:
        """What has come of it, in one piece; `None` at the end. `idle` is how many seconds there may be silence."""
        event = await self._next_event(idle)
        if not isinstance(event, h11.Data):
            return None
        pieces = [event.data]
        while isinstance(more := self._event_at_hand(), h11.Data):
            pieces.append(more.data)
        self._ahead = more
        return b"".join(pieces)

    def _event_at_hand(self) -> AtHand:
        try:
            return self._http.next_event()
        except h11.RemoteProtocolError as error:
            return error

    async def _next_event(self, idle: float | None = None) -> h11.Event:
        while True:
            event, self._ahead = self._ahead or self._event_at_hand(), None
            if isinstance(event, h11.RemoteProtocolError):
                raise self._misspoken(event) from None
            if isinstance(event, h11.ConnectionClosed):
                raise self._hung_up()
            if isinstance(event, h11.Event):
                return event
            data = await self._read(idle)
            self.answered = self.answered or bool(data)
            self._http.receive_data(data)

    async def _read(self, idle: float | None) -> bytes:
        try:
            async with asyncio.timeout(idle):
                return await self._reader.read(READ_SIZE)
        except OSError as error:
            if isinstance(error, TimeoutError) and error.errno is None:  # ours, and not the system's
                silence = f"{self.route.name} sent nothing for {idle:g} seconds, in the middle of its answer."
                raise HttpError("timeout", silence) from None
            raise HttpError("closed", f"The connection to {self.route.name} was lost: {spoken(error)}.") from None

    def _misspoken(self, error: h11.RemoteProtocolError) -> HttpError:
        if self._reader.at_eof():
            return self._hung_up()
        if error.error_status_hint == 431:
            return HttpError("too_large", f"{self.route.name} sends more than {MOST_HEAD:,} bytes of headers.")
        return HttpError("protocol", f"{self.route.name} did not send valid HTTP: {error}.")

    def _hung_up(self) -> HttpError:
        when = "in the middle of its answer" if self.answered else "before it answered"
        return HttpError("closed", f"{self.route.name} closed the connection {when}.")

    def rest(self) -> bool:
        """Make ready for the next exchange. False, and closed, where there can be none."""
        done = self._http.our_state is h11.DONE and self._http.their_state is h11.DONE
        if not done or self._http.trailing_data[0]:
            self.close()
            return False
        self._http.start_next_cycle()
        self._idle_since = self._loop.time()
        return True

    def is_fresh(self, seconds: float) -> bool:
        """Whether it can be used again: in this loop, not closed by the other end, not idle for too long."""
        if self._loop is not asyncio.get_running_loop():
            return False
        return not self._reader.at_eof() and self._loop.time() - self._idle_since < seconds

    def close(self) -> None:
        """At once: nothing that was not sent is sent any more."""
        if not self._loop.is_closed():
            self._writer.transport.abort()


def spoken(error: OSError) -> str:
    """The system's own words: asyncio replaces them with others."""
    return os.strerror(error.errno) if error.errno else str(error)


def _is_address(host: str) -> bool:
    return ":" in host or host.replace(".", "").isdecimal()


@asynccontextmanager
async def _failing_clearly(route: Route, seconds: float) -> AsyncGenerator[None]:
    """While connecting: each fault as one `HttpError` that names the other end."""
    host, port = route.endpoint
    name = f"the proxy {bracket_host(host)}:{port}" if route.proxy else route.name
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError:
        raise HttpError("timeout", f"No connection to {name} within {seconds:g} seconds.") from None
    except socket.gaierror as error:
        raise HttpError("resolve", f"No address for {host}: {error.strerror}.") from None
    except OSError as error:
        if is_untrusted(error):
            raise HttpError("tls", f"No secure connection to {route.name}: {error}.") from None
        raise HttpError("connect", f"No connection to {name}: {spoken(error)}.") from None
    except ValueError as error:  # a name that no resolver takes: a label too long, a certificate of another kind
        raise HttpError("resolve", f"No address for {host}: {error}.") from None
