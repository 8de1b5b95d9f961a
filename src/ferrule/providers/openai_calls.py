"""Tool calls assembled from the pieces of a chat completion stream."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from ..core.calls import ServiceFields, ToolCall
from ..core.model import CallDelta, CallReady, ModelEvent
from .json_fragments import encode_json
from .service_fields import merge_pieces

DIGITS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
ID_LENGTH = 9
"""Ids are nine letters and digits: some services take no others."""
_PRIME = 13_537_086_546_263_543
"""The largest below the number of such ids."""
LONGEST_ID = 40
"""No service takes longer ones."""
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
        return text.rstrip().endswith("}") and ToolCall.from_text("", "", text, may_be_cut=True).malformed is None


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

    def add(self, name: str, arguments: Mapping[str, Any]) -> Iterator[ModelEvent]:
        """A call that was found whole in the text of the message."""
        call = self._begin_call({})
        call.name, call.is_ready = name, True
        yield CallDelta(call.id, name)
        yield CallDelta(call.id, name, encode_json(dict(arguments)).decode())
        yield CallReady(ToolCall(call.id, name, arguments))

    def finish(self, *, is_cut: bool = False) -> Iterator[ModelEvent]:
        """`is_cut` says that the message ended before its end, and perhaps in the middle of a call."""
        yield from self._ready(whole_only=False, is_cut=is_cut)

    def _ready(self, *, whole_only: bool, is_cut: bool = False) -> Iterator[ModelEvent]:
        """In order: a call does not overtake one that is still being written."""
        for call in self._calls:
            if call.is_ready:
                continue
            if whole_only and not call.is_object:
                return
            call.is_ready = True
            text = "".join(call.pieces)
            extras = ServiceFields(self._origin, call.extras) if call.extras else None
            text = "" if text.strip() == "null" else text
            yield CallReady(ToolCall.from_text(call.id, call.name, text, extras, may_be_cut=is_cut))

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
            own_id = _id_of(int.from_bytes(os.urandom(ID_LENGTH)))
        self._taken.add(own_id)
        call = _Call(index if isinstance(index, int) else None, given_id, own_id)
        self._calls.append(call)
        return call


def short_id(id: str) -> str:
    """Another id in place of one that a service does not take; for the same id always the same.

    >>> short_id("call_1"), short_id("call_2")
    ('VvBIlVbFa', 'WvBIlVbFa')
    """
    return _id_of(int.from_bytes(id.encode("utf-8", "replace"), "big") % _PRIME)


def _id_of(number: int) -> str:
    digits: list[str] = []
    for _ in range(ID_LENGTH):
        number, digit = divmod(number, len(DIGITS))
        digits.append(DIGITS[digit])
    return "".join(digits)


def _text(arguments: Any) -> str:
    if isinstance(arguments, dict):
        return encode_json(cast(dict[str, Any], arguments)).decode()
    return str(arguments) if arguments else ""
