"""Control requests and responses alongside the conversation, with `--input-format stream-json`.

Lines are read all the time, so that an interrupt or an answer reaches a turn
that is under way; messages wait until the turn before them has ended.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any, assert_never, cast

from ..core.content import Block
from ..core.ids import new_uuid
from ..core.ports import Proposal
from ..core.verdicts import Behavior, Verdict
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


class Channel:
    """Both directions of one stdio connection."""

    def __init__(self, incoming: InputLines, say: Callable[[dict[str, Any]], Awaitable[None]]) -> None:
        self._incoming = incoming
        self._say = say
        self._messages: asyncio.Queue[tuple[Block, ...] | None] = asyncio.Queue()
        self._open: dict[str, asyncio.Future[Mapping[str, Any]]] = {}
        self._ended = False
        self.answer_request: Callable[[ControlRequest], Awaitable[Mapping[str, Any]]] = _nothing
        """Carries out a request and returns the response. Raises `CannotDo`."""
        self.malformed: Callable[[BadLine], dict[str, Any]] = lambda bad: {"type": "system", "error": bad.reason}

    async def next_message(self) -> tuple[Block, ...] | None:
        """`None` when no more can come."""
        return await self._messages.get()

    async def read(self) -> None:
        """Until stdin ends."""
        number = 0
        try:
            while (line := await self._incoming.next()) is not None:
                number += 1
                await self._take(line, number)
        finally:
            self._ended = True
            self._messages.put_nowait(None)
            for waiting in self._open.values():
                if not waiting.done():
                    waiting.set_exception(CannotDo("stdin was closed before an answer arrived"))

    async def ask(self, request: dict[str, Any]) -> Mapping[str, Any]:
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

    async def _take(self, line: bytes, number: int) -> None:
        match incoming := read_line(line, number):
            case InputMessage(content):
                self._messages.put_nowait(content)
            case ControlRequest():
                await self._carry_out(incoming)
            case ControlAnswer(id, response, error):
                waiting = self._open.get(id)
                if waiting is not None and not waiting.done():
                    waiting.set_exception(CannotDo(error)) if error else waiting.set_result(response)
            case BadLine():
                await self._say(self.malformed(incoming))
            case ControlCancel() | Ignored():
                pass
            case _:
                assert_never(incoming)

    async def _carry_out(self, request: ControlRequest) -> None:
        try:
            done = await self.answer_request(request)
        except CannotDo as error:
            response = {"subtype": "error", "request_id": request.id, "error": str(error)}
        else:
            response = {"subtype": "success", "request_id": request.id, "response": dict(done)}
        await self._say({"type": "control_response", "response": response})


class AsksTheOtherSide:
    """Satisfies `core.ports.Approver`: sends a `can_use_tool` request for each approval. No answer means no."""

    def __init__(self, channel: Channel, interrupt: Callable[[], None]) -> None:
        self._channel = channel
        self._interrupt = interrupt
        self.told_of: Callable[[str], Awaitable[None]] = _at_once
        """Awaited before a question about the call with this id: the other side must know the call by then."""

    async def approve(self, proposal: Proposal, verdict: Verdict, /) -> Verdict:
        request: dict[str, Any] = {
            "subtype": "can_use_tool",
            "tool_name": proposal.tool.name,
            "input": dict(proposal.arguments),
            "permission_suggestions": [],
            "blocked_path": None,
            "decision_reason": verdict.reason,
            "tool_use_id": proposal.call.id,
        }
        await self.told_of(proposal.call.id)
        try:
            answer = await self._channel.ask(request)
        except CannotDo as error:
            return _no(f"it was asked and not answered: {error}")
        return self._verdict(answer, proposal)

    def _verdict(self, answer: Mapping[str, Any], proposal: Proposal) -> Verdict:
        match answer.get("behavior"):
            case "allow":
                updated = answer.get("updatedInput")
                changed = isinstance(updated, dict) and updated != dict(proposal.arguments)
                return Verdict(
                    behavior=Behavior.ALLOW,
                    source="user",
                    reason="it was asked and allowed",
                    updated_arguments=cast(dict[str, Any], updated) if changed else None,
                )
            case "deny":
                if answer.get("interrupt") is True:
                    self._interrupt()
                return _no(str(answer.get("message") or "it was asked and refused"))
            case _:
                return _no("it was asked, and the answer is neither allow nor deny")


def _no(reason: str) -> Verdict:
    return Verdict(behavior=Behavior.DENY, source="user", reason=reason)


async def _at_once(call_id: str) -> None:
    """Calls are not announced."""


async def _nothing(request: ControlRequest) -> Mapping[str, Any]:
    raise CannotDo(f"`{request.subtype}` is not known")
