"""The protocol over streamable HTTP: several clients at once, each with a session of its own."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import socket
from collections import deque
from collections.abc import Awaitable, Callable, Generator, MutableMapping
from typing import Any, Final, NamedTuple, TypeAlias

import uvicorn
from mcp import types
from mcp.server.lowlevel.server import Server
from mcp.server.streamable_http import EventCallback, EventId, EventMessage, EventStore, StreamId
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

from .desk import Desk
from .request_guard import RequestGuard

MOST_EVENTS: Final = 64
"""Messages that are kept for one client; the oldest are forgotten first."""
RETRY_MILLISECONDS: Final = 1_000
"""When a client should reconnect for the rest of a stream that ended early."""


class _Sent(NamedTuple):
    number: int
    stream: StreamId
    message: types.JSONRPCMessage | None


class RecentEvents(EventStore):
    """The messages of one client: a stream is identified by its request id, which is unique for that client only."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        self._sent: deque[_Sent] = deque(maxlen=MOST_EVENTS)

    async def store_event(self, stream_id: StreamId, message: types.JSONRPCMessage | None) -> EventId:
        sent = _Sent(next(self._numbers), stream_id, message)
        self._sent.append(sent)
        return str(sent.number)

    async def replay_events_after(self, last_event_id: EventId, send_callback: EventCallback) -> StreamId | None:
        """The stream, if more may follow."""
        last = next((sent for sent in self._sent if str(sent.number) == last_event_id), None)
        if last is None:
            return None
        for sent in tuple(self._sent):
            if sent.number > last.number and sent.stream == last.stream and sent.message is not None:
                await send_callback(EventMessage(sent.message, str(sent.number)))
                if isinstance(sent.message, types.JSONRPCResponse | types.JSONRPCError):
                    return None
        return last.stream


class ResumableSessions(StreamableHTTPSessionManager):
    """Gives each session a store of its own; in a shared one, clients with equal numbers would get each
    other's messages."""

    @property
    def event_store(self) -> EventStore | None:
        """Asked for whenever a session begins."""
        return RecentEvents()

    @event_store.setter
    def event_store(self, given: Any) -> None:
        assert given is None, "each session has its own"


PATH: Final = "/mcp"
MOST_BODY: Final = 16 << 20
"""Bytes of one request: what Write may be given, and some more."""
MOST_CLIENTS: Final = 256
IDLE_SECONDS: Final = 1_800.0
"""Seconds without any request after which a client is considered gone."""
PATIENCE: Final = 3.0
"""Seconds for open requests to end when the server does."""

_Message: TypeAlias = MutableMapping[str, Any]
_Receive: TypeAlias = Callable[[], Awaitable[_Message]]
_Send: TypeAlias = Callable[[_Message], Awaitable[None]]


async def serve_http(
    desk: Desk, server: Server, listening: socket.socket, guard: RequestGuard, *, idle_seconds: float = IDLE_SECONDS
) -> None:
    """Runs until it is cancelled. Everything has ended by then."""
    sessions = ResumableSessions(
        server,
        retry_interval=RETRY_MILLISECONDS,
        session_idle_timeout=idle_seconds,
        max_request_body_size=MOST_BODY,
        max_sessions=MOST_CLIENTS,
    )
    application = _Application(sessions, guard)
    front = _Quiet(
        uvicorn.Config(
            application,
            log_config=None,
            access_log=False,
            lifespan="off",
            ws="none",
            server_header=False,
            timeout_graceful_shutdown=1,
        )
    )
    fronting = asyncio.create_task(front.serve(sockets=[listening]))
    try:
        async with sessions.run():
            try:
                await asyncio.wait((fronting,))
            finally:
                application.is_ending = front.should_exit = True
    finally:  # the sessions have ended, and with them their open streams
        await desk.close()
        await asyncio.wait((fronting,), timeout=PATIENCE)
        fronting.cancel()


def listen(host: str, port: int) -> socket.socket:
    """Raises `OSError` if it cannot listen on the address."""
    family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    listening = socket.socket(family, kind, protocol)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen()
    except OSError:
        listening.close()
        raise
    return listening


class _Quiet(uvicorn.Server):
    """Leaves signals to the caller."""

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        yield


class _Application:
    """What the HTTP server calls for each request."""

    def __init__(self, sessions: StreamableHTTPSessionManager, guard: RequestGuard) -> None:
        self._sessions = sessions
        self._guard = guard
        self.is_ending = False

    async def __call__(self, scope: _Message, receive: _Receive, send: _Send) -> None:
        turned = self._guard.turns_away(scope["headers"])
        if turned is not None:
            await _refuse(send, turned.status, turned.words)
        elif scope["path"] != PATH:
            await _refuse(send, 404, f"The protocol is served at {PATH}.")
        elif self.is_ending:
            await _refuse(send, 503, "The server is shutting down.")
        else:
            await self._sessions.handle_request(scope, receive, send)


async def _refuse(send: _Send, status: int, words: str) -> None:
    body = json.dumps({"jsonrpc": "2.0", "id": None, "error": {"code": -32000, "message": words}}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    if status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
