"""The protocol over standard input and output: one message on each line."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from abc import ABC, abstractmethod
from dataclasses import dataclass
from types import TracebackType
from typing import Final, Protocol, Self

from mcp import types
from mcp.server.lowlevel.server import Server
from mcp.shared.message import SessionMessage
from pydantic import ValidationError

from ..core.content import encodable
from .desk import Desk

log = logging.getLogger(__name__)

MOST_WAITING: Final = 64
"""Messages that a slow reader may leave unread before whoever sends the next one waits."""
PATIENCE: Final = 2.0
"""Seconds for a reader to take the last messages."""


class Lines(Protocol):
    async def next(self) -> bytes | None: ...


class MessageSink(Protocol):
    async def write(self, data: bytes, /) -> None: ...


async def serve_stdio(desk: Desk, server: Server, lines: Lines, output: MessageSink) -> None:
    """Runs until the input ends, the output is closed, or it is cancelled. Everything has ended by then."""
    outgoing = Outgoing(output)
    incoming = Incoming(lines, outgoing)
    writing = asyncio.create_task(outgoing.pump())
    serving = asyncio.create_task(server.run(incoming, outgoing, server.create_initialization_options()))
    try:
        await asyncio.wait((writing, serving), return_when=asyncio.FIRST_COMPLETED)
    finally:
        serving.cancel()
        await asyncio.wait((serving,))
        await desk.close()
        await outgoing.aclose()
        with contextlib.suppress(TimeoutError, OSError):
            await asyncio.wait_for(writing, PATIENCE)
    if not serving.cancelled():
        serving.result()


class _Stream(ABC):
    """Left as it is entered: what the package asks of both directions, with its names."""

    @abstractmethod
    async def aclose(self) -> None: ...

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc_val: BaseException | None, exc_tb: TracebackType | None
    ) -> None:
        await self.aclose()


class Outgoing(_Stream):
    """Messages to the client, each written whole: one cut short by a cancellation would spoil all that follow."""

    def __init__(self, output: MessageSink) -> None:
        self._output = output
        self._waiting: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._room = asyncio.Semaphore(MOST_WAITING)
        self._closed = False

    async def send(self, item: SessionMessage, /) -> None:
        if not self._closed:
            await self._room.acquire()
            text = item.message.model_dump_json(by_alias=True, exclude_unset=True)
            self._waiting.put_nowait(text.encode() + b"\n")

    async def pump(self) -> None:
        """Until it is closed and everything is written. Raises `OSError` when the reader is gone."""
        while (data := await self._waiting.get()) is not None:
            await self._output.write(data)
            self._room.release()

    async def aclose(self) -> None:
        if not self._closed:
            self._closed = True
            self._waiting.put_nowait(None)


class Incoming(_Stream):
    """Messages from the client. An invalid line is answered with an error, and the next one is read."""

    def __init__(self, lines: Lines, outgoing: Outgoing) -> None:
        self._lines = lines
        self._outgoing = outgoing

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        while (line := await self._lines.next()) is not None:
            if not line.strip():
                continue
            message = _read(line)
            if not isinstance(message, _NotRead):
                return SessionMessage(message)
            log.warning("a line on standard input is not a valid message: %s", message.words)
            await self._outgoing.send(SessionMessage(message.answer()))
        raise StopAsyncIteration

    async def receive(self) -> SessionMessage | Exception:
        return await anext(self)

    async def aclose(self) -> None:
        """Standard input stays open, but nothing reads it."""


@dataclass(frozen=True, slots=True)
class _NotRead:
    """What is wrong with a line, and the request that waits for an answer, if known."""

    code: int
    words: str
    id: str | int | None = None

    def answer(self) -> types.JSONRPCError:
        return types.JSONRPCError(jsonrpc="2.0", id=self.id, error=types.ErrorData(code=self.code, message=self.words))


def _read(line: bytes) -> types.JSONRPCMessage | _NotRead:
    try:
        message = types.jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValidationError:
        return _read_closely(line)
    if isinstance(message, types.JSONRPCNotification) and b'"id"' in line and "id" in json.loads(line):
        return _NotRead(types.INVALID_REQUEST, "The id of a request must be a string or a whole number.")
    return message


def _read_closely(line: bytes) -> types.JSONRPCMessage | _NotRead:
    """For JSON that the fast parser rejects: it contains half of a surrogate pair."""
    try:
        given: object = json.loads(line)
    except (ValueError, RecursionError) as error:
        return _NotRead(types.PARSE_ERROR, f"The line is not valid JSON: {error}.")
    if isinstance(given, list):
        return _NotRead(types.INVALID_REQUEST, "Batches are not supported. Write each message on its own line.")
    try:
        return types.jsonrpc_message_adapter.validate_json(encodable(json.dumps(given, ensure_ascii=False)))
    except ValidationError:
        return _NotRead(types.INVALID_REQUEST, "The line is not a valid JSON-RPC message.", _waiting(given))


def _waiting(given: object) -> str | int | None:
    """The id of a request. That of an answer is one of ours, and refers to a request to the client."""
    match given:
        case {"method": str(), "id": str() | int() as id} if not isinstance(id, bool):
            return id
        case _:
            return None
