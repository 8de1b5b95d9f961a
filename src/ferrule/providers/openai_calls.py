"""Tool calls assembled from the pieces of a chat completion stream."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, cast

from ..core.calls import ServiceFields, ToolCall
from ..core.model import CallDelta, CallReady, ModelEvent
from .json_fragments import encode_json
from .service_fields import merge_pieces

KNOWN = frozenset({"index", "id", "type", "function"})


@dataclass(slots=True)
class _Call:
    index: int | None
    given_id: str
    """Assigned by the service; empty if it gives none."""
    id: str
    name: str = ""
    pieces: list[str] = field(default_factory=list[str])
    extras: dict[str, Any] = field(default_factory=dict[str, Any])
    is_ready: bool = False

    @property
    def is_object(self) -> bool:
        """Whether the arguments are a whole JSON object, so that nothing can follow."""
        text = "".join(self.pieces)
        return text.rstrip().endswith("}") and ToolCall.from_text("", "", text).malformed is None


class CallsInProgress:
    """The calls of one message, in the order in which they began.

    A call is ready when the next one begins or the message ends; one that is
    still incomplete then waits for the end, since services may interleave two.
    """

    def __init__(self, taken: set[str], origin: str = "") -> None:
        """`taken` are the ids that earlier messages used: some services restart numbering in every message.

        Fields that are not understood are kept for `origin`, which sent them.
        """
        self._taken = taken
        self._origin = origin
        self._calls: list[_Call] = []

    @property
    def count(self) -> int:
        return len(self._calls)

    @property
    def has_half(self) -> bool:
        return any(not call.is_ready and not call.is_object for call in self._calls)

    def piece(self, piece: dict[str, Any]) -> Iterator[ModelEvent]:
        function: dict[str, Any] = piece.get("function") or {}
        name = str(function.get("name") or "")
        arguments = _text(function.get("arguments"))
        call = self._find_call(piece, name, arguments)
        if call is None:
            yield from self._ready(whole_only=True)
            call = self._begin_call(piece)
        call.name = call.name or name
        for key in piece.keys() - KNOWN:
            call.extras[key] = merge_pieces(call.extras.get(key), piece[key])
        if name and not call.pieces:
            yield CallDelta(call.id, call.name)
        if arguments and not call.is_ready:
            call.pieces.append(arguments)
            yield CallDelta(call.id, call.name, arguments)

    def finish(self) -> Iterator[ModelEvent]:
        yield from self._ready(whole_only=False)

    def _ready(self, *, whole_only: bool) -> Iterator[ModelEvent]:
        """In order: a call does not overtake one that is still being written."""
        for call in self._calls:
            if call.is_ready:
                continue
            if whole_only and not call.is_object:
                return
            call.is_ready = True
            text = "".join(call.pieces)
            extras = ServiceFields(self._origin, call.extras) if call.extras else None
            yield CallReady(ToolCall.from_text(call.id, call.name, "" if text.strip() == "null" else text, extras))

    def _find_call(self, piece: dict[str, Any], name: str, arguments: str) -> _Call | None:
        """The call that the piece belongs to; `None` if it begins one."""
        index, given_id = piece.get("index"), str(piece.get("id") or "")
        same = [call for call in self._calls if call.index == index] if isinstance(index, int) else self._calls[-1:]
        if not same:
            return None
        call = same[-1]
        has_other_id = bool(given_id and call.given_id and given_id != call.given_id)
        if not isinstance(index, int) and has_other_id:
            return next((one for one in self._calls if one.given_id == given_id), None) if not name else None
        # Some services number every call 0, and some repeat the name, or make a new id, with each piece of one.
        if not name or not call.name:
            return call
        begins = has_other_id or arguments.lstrip().startswith("{")
        return None if name != call.name or (begins and call.is_object) else call

    def _begin_call(self, piece: dict[str, Any]) -> _Call:
        index, given_id = piece.get("index"), str(piece.get("id") or "")
        own_id = given_id
        while not own_id or own_id in self._taken:
            own_id = f"call_{os.urandom(9).hex()}"
        self._taken.add(own_id)
        call = _Call(index if isinstance(index, int) else None, given_id, own_id)
        self._calls.append(call)
        return call


def _text(arguments: Any) -> str:
    if isinstance(arguments, dict):
        return encode_json(cast(dict[str, Any], arguments)).decode()
    return str(arguments) if arguments else ""
