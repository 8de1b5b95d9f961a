"""The two streams of a connection, as the protocol's package wants them. Imported through `lazy_imports.py` only."""

from __future__ import annotations

import asyncio
import json
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from types import TracebackType
from typing import Any, Final, Self, cast

import anyio
from mcp import types
from mcp.shared.message import SessionMessage
from mcp.types import jsonrpc_message_adapter

from .callbacks import Hooks
from .config import NotRelayed, Relayed, Stdio
from .server_process import ErrorLog, NotReading, ServerProcess, TooLong, request_id
from .tolerant_parsing import mend_result

log = logging.getLogger(__name__)

GARBAGE_TOLD: Final = 5
"""Invalid lines that are logged; further ones are skipped silently."""


class _Stream:
    """What the package expects of a stream besides its one method."""

    async def aclose(self) -> None:
        """Nothing is held by it."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


class WatchedStream(_Stream):
    def __init__(self, inner: Any, hooks: Hooks) -> None:
        self._inner = inner
        self._hooks = hooks

    @property
    def last_context(self) -> Any:
        return getattr(self._inner, "last_context", None)

    async def aclose(self) -> None:
        await self._inner.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        try:
            return _mend(await self._inner.__anext__(), self._hooks.server)
        except (StopAsyncIteration, anyio.ClosedResourceError):
            self._hooks.lost("the connection ended")
            raise

    async def receive(self) -> SessionMessage | Exception:
        return _mend(await self._inner.receive(), self._hooks.server)


class StdioTransport:
    def __init__(self, stdio: Stdio, hooks: Hooks, errors: ErrorLog) -> None:
        self._stdio = stdio
        self._hooks = hooks
        self._errors = errors
        self._process: ServerProcess | None = None

    async def __aenter__(self) -> tuple[_Incoming, _Outgoing]:
        self._process = await self._hooks.start(self._stdio, self._errors)
        return _Incoming(self._process, self._hooks), _Outgoing(self._process, self._hooks)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is not None:
            closing = asyncio.ensure_future(self._process.close())
            try:
                await asyncio.shield(closing)
            except asyncio.CancelledError:
                await asyncio.wait((closing,))  # bounded, and nothing may be left running
                raise


class _Incoming(_Stream):
    """Messages, one for each line; invalid lines are skipped."""

    def __init__(self, process: ServerProcess, hooks: Hooks) -> None:
        self._process = process
        self._hooks = hooks
        self._lines = process.lines(self._too_long)
        self._injected = deque[SessionMessage]()
        self._garbage = 0

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage:
        while True:
            if self._injected:
                return self._injected.popleft()
            try:
                line = await anext(self._lines)
            except (StopAsyncIteration, OSError):
                self._hooks.lost(self._process.end)
                raise StopAsyncIteration from None
            if (message := self._message(line)) is not None:
                return message

    async def receive(self) -> SessionMessage:
        try:
            return await self.__anext__()
        except StopAsyncIteration:
            raise anyio.EndOfStream from None

    def _message(self, line: bytes) -> SessionMessage | None:
        if not line.strip():
            return None
        try:
            return _mend(SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False)), self._hooks.server)
        except ValueError:
            self._garbage += 1
            if self._garbage <= GARBAGE_TOLD:
                log.warning("%s wrote an invalid message: %s", self._hooks.server, _excerpt(line))
            return _rescue(line, self._hooks.server)

    def _too_long(self, trouble: TooLong) -> None:
        log.warning("%s: a message was discarded: %s", self._hooks.server, trouble)
        if trouble.id is not None:
            self._injected.append(_error_message(trouble.id, f"The answer was discarded: {trouble}"))


class _Outgoing(_Stream):
    def __init__(self, process: ServerProcess, hooks: Hooks) -> None:
        self._process = process
        self._hooks = hooks
        self._turn = asyncio.Lock()

    async def send(self, item: SessionMessage, /) -> None:
        line = item.message.model_dump_json(by_alias=True, exclude_unset=True).encode("utf-8", "replace")
        try:
            async with self._turn:
                await self._process.send(line)
        except OSError as error:
            if isinstance(error, NotReading):
                self._hooks.lost("it does not read its input")
            raise anyio.BrokenResourceError from None


class RelayTransport:
    """Requests are handed over side by side, and each answer comes back as a message."""

    def __init__(self, relayed: Relayed, hooks: Hooks) -> None:
        self._relayed = relayed
        self._hooks = hooks
        self._arrived: asyncio.Queue[SessionMessage | None] = asyncio.Queue()
        self._tasks = set[asyncio.Task[None]]()

    async def __aenter__(self) -> tuple[_Relaying, _Handing]:
        self._begin(self._listen())
        return _Relaying(self._arrived), _Handing(self._hand_over)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        self._arrived.put_nowait(None)

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _listen(self) -> None:
        while True:
            self._take(await self._relayed.inbox.get())

    async def _hand_over(self, item: SessionMessage) -> None:
        message: dict[str, Any] = item.message.model_dump(by_alias=True, mode="json", exclude_unset=True)
        if "id" in message and "method" in message:
            self._begin(self._ask(message))
            return
        try:
            await self._relayed.exchange(message)
        except NotRelayed as error:
            log.warning("%s: a message was not passed on: %s", self._hooks.server, error)

    async def _ask(self, message: dict[str, Any]) -> None:
        try:
            answer = await self._relayed.exchange(message)
        except NotRelayed as error:
            self._arrived.put_nowait(_error_message(message["id"], str(error)))
            return
        self._take({**answer, "jsonrpc": "2.0", "id": message["id"]})

    def _take(self, message: Mapping[str, Any]) -> None:
        line = json.dumps(message).encode()
        try:
            found = SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
            self._arrived.put_nowait(_mend(found, self._hooks.server))
        except ValueError:
            log.warning("%s sent an invalid message: %s", self._hooks.server, _excerpt(line))
            if (rescued := _rescue(line, self._hooks.server)) is not None:
                self._arrived.put_nowait(rescued)


class _Relaying(_Stream):
    def __init__(self, arrived: asyncio.Queue[SessionMessage | None]) -> None:
        self._arrived = arrived

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage:
        if (message := await self._arrived.get()) is None:
            raise StopAsyncIteration
        return message

    async def receive(self) -> SessionMessage:
        try:
            return await self.__anext__()
        except StopAsyncIteration:
            raise anyio.EndOfStream from None


class _Handing(_Stream):
    def __init__(self, hand_over: Callable[[SessionMessage], Awaitable[None]]) -> None:
        self._hand_over = hand_over

    async def send(self, item: SessionMessage, /) -> None:
        await self._hand_over(item)


def _mend(message: Any, server: str) -> Any:
    """The same, with an answer that the protocol's package can take."""
    if isinstance(message, SessionMessage) and isinstance(message.message, types.JSONRPCResponse):
        message.message.result = mend_result(message.message.result, server)
    return message


def _rescue(line: bytes, server: str) -> SessionMessage | None:
    """An answer that cannot be read is an error at once: nothing else will come for its request."""
    try:
        found: Any = json.loads(line)
    except ValueError:
        return None
    except RecursionError:
        asked = request_id(line)
        return None if asked is None else _error_message(asked, "Its answer is nested too deeply to be read.")
    answer = cast(dict[str, Any], found) if isinstance(found, dict) else {}
    id = answer.get("id")
    if not isinstance(id, int | str) or not {"result", "error"} & answer.keys():
        return None
    try:  # half of a surrogate pair is what JSON can say and no text can hold
        whole = json.dumps(answer, ensure_ascii=False).encode("utf-8", "replace")
        return _mend(SessionMessage(jsonrpc_message_adapter.validate_json(whole, by_name=False)), server)
    except (ValueError, RecursionError):
        return _error_message(id, f"Its answer is not a valid message of the protocol: {_excerpt(line)}")


def _error_message(id: int | str, words: str) -> SessionMessage:
    error = types.ErrorData(code=types.INTERNAL_ERROR, message=words)
    return SessionMessage(types.JSONRPCError(jsonrpc="2.0", id=id, error=error))


def _excerpt(line: bytes) -> str:
    text = line[:200].decode("utf-8", "replace")
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)
