"""Control requests and responses alongside the conversation, with `--input-format stream-json`.

Lines are read all the time, so that an interrupt or an answer reaches a turn
that is under way. Requests are carried out in the order of their lines; one
that has to wait does not hold up the next.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any, Protocol, assert_never

from ..core.ids import new_uuid
from ..output.stream_input import (
    BadLine,
    ControlAnswer,
    ControlCancel,
    ControlRequest,
    Ignored,
    InputMessage,
    read_line,
)
from .stdio import InputLines


class CannotDo(Exception):
    """A refused request. The message is returned to the sender."""


class Receiver(Protocol):
    """Who acts on what the other side sends."""

    async def take_message(self, message: InputMessage, /) -> None: ...

    async def carry_out(self, request: ControlRequest, /) -> Mapping[str, Any]:
        """Returns the response. Raises `CannotDo`."""
        ...

    async def take_bad_line(self, bad: BadLine, /) -> None: ...

    async def end_input(self) -> None:
        """No more can come."""
        ...


class Channel:
    """Both directions of one stdio connection."""

    def __init__(self, incoming: InputLines, say: Callable[[Mapping[str, Any]], Awaitable[None]]) -> None:
        self._incoming = incoming
        self._say = say
        self._open: dict[str, asyncio.Future[Mapping[str, Any]]] = {}
        self._requests: dict[str, asyncio.Task[None]] = {}
        self._ended = False

    async def read(self, receiver: Receiver) -> None:
        """Until stdin ends."""
        number = 0
        try:
            while (line := await self._incoming.next()) is not None:
                number += 1
                await self._take(line, number, receiver)
        finally:
            self._ended = True
            for waiting in self._open.values():
                if not waiting.done():
                    waiting.set_exception(CannotDo("stdin was closed before an answer arrived"))
        if self._requests:  # they are answered first: one of them may be what ends it
            await asyncio.wait(tuple(self._requests.values()))
        await receiver.end_input()

    async def close(self) -> None:
        """End the requests that are still carried out."""
        tasks = tuple(self._requests.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    async def ask(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        """Raises `CannotDo` where the other side cannot answer."""
        if self._ended:
            raise CannotDo("stdin is closed, so nobody can answer")
        id = new_uuid()
        waiting: asyncio.Future[Mapping[str, Any]] = asyncio.get_running_loop().create_future()
        self._open[id] = waiting
        try:
            await self._say({"type": "control_request", "request_id": id, "request": request})
            return await waiting
        except asyncio.CancelledError:
            with suppress(OSError):  # nobody is left to be told
                await self._say({"type": "control_cancel_request", "request_id": id})
            raise
        finally:
            del self._open[id]

    async def _take(self, line: bytes, number: int, receiver: Receiver) -> None:
        match incoming := read_line(line, number):
            case InputMessage():
                await receiver.take_message(incoming)
            case ControlRequest():
                task = asyncio.create_task(self._carry_out(incoming, receiver))
                self._requests[incoming.id] = task
                task.add_done_callback(lambda _: self._requests.pop(incoming.id, None))
                await asyncio.sleep(0)  # what it can do at once is done before the next line
            case ControlAnswer(id, response, error):
                waiting = self._open.get(id)
                if waiting is not None and not waiting.done():
                    waiting.set_exception(CannotDo(error)) if error else waiting.set_result(response)
            case BadLine():
                await receiver.take_bad_line(incoming)
            case ControlCancel(id):
                if (task := self._requests.get(id)) is not None:
                    task.cancel()
            case Ignored():
                pass
            case _:
                assert_never(incoming)

    async def _carry_out(self, request: ControlRequest, receiver: Receiver) -> None:
        try:
            done = await receiver.carry_out(request)
        except CannotDo as error:
            response = {"subtype": "error", "request_id": request.id, "error": str(error)}
        else:
            response = {"subtype": "success", "request_id": request.id, "response": dict(done)}
        with suppress(BrokenPipeError):  # the conversation finds it out as well
            await self._say({"type": "control_response", "response": response})
