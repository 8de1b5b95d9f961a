"""For a client whose stream broke off: what it was sent since, when it comes back for it."""

from __future__ import annotations

import itertools
from collections import deque
from typing import Any, Final, NamedTuple

from mcp import types
from mcp.server.streamable_http import EventCallback, EventId, EventMessage, EventStore, StreamId
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

MOST_EVENTS: Final = 64
"""Messages that are kept for one client; the oldest are forgotten first."""
RETRY_MILLISECONDS: Final = 1_000
"""When a client is to come back for the rest of a stream that ended early."""


class _Sent(NamedTuple):
    number: int
    stream: StreamId
    message: types.JSONRPCMessage | None


class RecentEvents(EventStore):
    """Those of one client: a stream is known by the number of its request, which only that client's others lack."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        self._sent: deque[_Sent] = deque(maxlen=MOST_EVENTS)

    async def store_event(self, stream_id: StreamId, message: types.JSONRPCMessage | None) -> EventId:
        sent = _Sent(next(self._numbers), stream_id, message)
        self._sent.append(sent)
        return str(sent.number)

    async def replay_events_after(self, last_event_id: EventId, send_callback: EventCallback) -> StreamId | None:
        """The stream, if more may come in it."""
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
    """Gives each session a store of its own; in one for all of them, clients with like numbers would get each
    other's messages."""

    @property
    def event_store(self) -> EventStore | None:
        """Asked for whenever a session begins."""
        return RecentEvents()

    @event_store.setter
    def event_store(self, given: Any) -> None:
        assert given is None, "each session has its own"
