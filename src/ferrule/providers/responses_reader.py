"""The events of OpenAI's Responses API as ours."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, cast

from ..core.calls import ServiceFields, ToolCall
from ..core.model import (
    CallDelta,
    CallReady,
    ModelEvent,
    Stopped,
    StopReason,
    TextDelta,
    Thought,
    ThoughtDelta,
    ThoughtReady,
    Usage,
)
from .responses_wire import ITEM, MESSAGE
from .service_errors import ServiceAddress, Trouble, cut, empty, trouble_of_report, unreadable
from .service_requests import DONE, parse_object
from .sse import ServerSentEvent

ENDS: Final = frozenset({"response.completed", "response.incomplete", "response.done"})
FAILURES: Final = frozenset({"response.failed", "error"})
_ABOUT_THE_REQUEST: Final = (
    r"(invalid|image|unsupported|empty_image|failed_to_download|context_length|string_above|missing|data_residency)_"
    r"|\w+_policy"
)
"""How the codes begin of failures that a repetition cannot cure."""
_OF_A_CALL: Final = frozenset({"type", "call_id", "name", "arguments", "status"})
_OF_A_MESSAGE: Final = frozenset({"type", "id", "role", "content", "status"})


class _Item:
    """An item of the answer as it is written."""

    def __init__(self, place: object, id: object) -> None:
        self.place = place
        self.id = id
        self.call_id = ""
        self.name = ""
        self.arguments: list[str] = []
        self.has_words = False
        self.is_done = False


class ResponsesReader:
    """The events of one response."""

    def __init__(self, service: ServiceAddress, origin: str) -> None:
        """Items that only the service can read are kept for `origin`."""
        self._service = service
        self._origin = origin
        self._items: list[_Item] = []
        self._calls = 0
        self._has_text = False
        self._refused = False
        self._stopped: StopReason | None = None
        self.is_over = False
        self._readers: Mapping[str, Callable[[dict[str, Any]], Iterator[ModelEvent]]] = {
            "response.output_item.added": self._begin_item,
            "response.output_item.done": self._end_item,
            "response.output_text.delta": self._text,
            "response.refusal.delta": self._refusal,
            "response.reasoning_summary_part.added": self._summary_part,
            "response.reasoning_summary_text.delta": self._thought,
            "response.reasoning_text.delta": self._thought,
            "response.function_call_arguments.delta": self._arguments,
        }

    @property
    def is_whole(self) -> bool:
        return self.is_over

    def event(self, event: ServerSentEvent) -> Iterable[ModelEvent]:
        if event.data.strip() == DONE:
            return
        data = parse_object(self._service, event.data)
        kind = str(data.get("type") or event.name)
        if kind in FAILURES or (data.get("error") and "." not in kind):
            raise self._failure(data)
        try:
            if kind in ENDS:
                yield from self._end(data["response"])
            elif reader := self._readers.get(kind):
                yield from reader(data)
        except (KeyError, TypeError, AttributeError, ValueError):
            raise unreadable(self._service, event.data) from None

    def whole(self, message: dict[str, Any]) -> Iterable[ModelEvent]:
        if message.get("error") or "output" not in message:
            raise self._failure(message)
        try:
            yield from self._end(message)
        except (KeyError, TypeError, AttributeError, ValueError):
            raise unreadable(self._service, str(message)) from None

    def end(self, *, is_framed: bool) -> Iterable[ModelEvent]:
        """The service always says how a response ended, so any other end is a cut."""
        if self._stopped is None:
            raise cut(self._service)
        if self._stopped == "end" and not self._has_text:
            raise empty(self._service)
        yield Stopped(self._stopped)

    def _item(self, data: dict[str, Any]) -> _Item:
        """By its id or its place: some services number every item 0, and some make a new id with each event."""
        place, id = data.get("output_index"), data.get("item_id") or data.get("item", {}).get("id")
        found = next((item for item in self._items if id and item.id == id), None)
        found = found or next((item for item in self._items if item.place == place and not item.is_done), None)
        if found is None:
            found = _Item(place, id)
            self._items.append(found)
        return found

    def _begin_item(self, data: dict[str, Any]) -> Iterator[ModelEvent]:
        item: dict[str, Any] = data["item"]
        if item.get("type") == "function_call":
            yield from self._begin_call(self._item(data), item)

    def _begin_call(self, call: _Item, item: dict[str, Any]) -> Iterator[ModelEvent]:
        call.call_id = str(item.get("call_id") or item.get("id") or f"call_{os.urandom(9).hex()}")
        call.name = str(item.get("name") or "")
        self._calls += 1
        yield CallDelta(call.call_id, call.name)

    def _arguments(self, data: dict[str, Any]) -> Iterator[ModelEvent]:
        call = self._item(data)
        if (piece := str(data["delta"])) and call.call_id and not call.is_done:
            call.arguments.append(piece)
            yield CallDelta(call.call_id, call.name, piece)

    def _text(self, data: dict[str, Any]) -> Iterator[ModelEvent]:
        self._item(data).has_words = self._has_text = True
        yield TextDelta(str(data["delta"]))

    def _refusal(self, data: dict[str, Any]) -> Iterator[ModelEvent]:
        self._refused = True
        yield from self._text(data)

    def _thought(self, data: dict[str, Any]) -> Iterator[ModelEvent]:
        self._item(data).has_words = True
        yield ThoughtDelta(str(data["delta"]))

    def _summary_part(self, data: dict[str, Any]) -> Iterator[ModelEvent]:
        if self._item(data).has_words:
            yield ThoughtDelta("\n\n")

    def _end_item(self, data: dict[str, Any]) -> Iterator[ModelEvent]:
        """What is said here is whole, whatever came in pieces before."""
        begun = self._item(data)
        if begun.is_done:
            return
        begun.is_done = True
        item: dict[str, Any] = data["item"]
        match item.get("type"):
            case "message":
                yield from self._end_message(begun, item)
            case "function_call":
                yield from self._end_call(begun, item)
            case "reasoning":
                yield from self._end_reasoning(begun, item)
            case str():
                yield ThoughtReady(Thought("", extras=self._extras({ITEM: _without_null(item)})))
            case _:
                raise ValueError("an item without a type")

    def _end_message(self, begun: _Item, item: dict[str, Any]) -> Iterator[ModelEvent]:
        parts: list[dict[str, Any]] = item.get("content") or []
        self._refused = self._refused or any(part.get("type") == "refusal" for part in parts)
        words = "".join(str(part.get("text") or part.get("refusal") or "") for part in parts)
        if words and not begun.has_words:
            self._has_text = True
            yield TextDelta(words)
        if (words or begun.has_words) and (own := _without_null(item, _OF_A_MESSAGE)):
            yield ThoughtReady(Thought("", extras=self._extras({MESSAGE: own})))

    def _end_call(self, begun: _Item, item: dict[str, Any]) -> Iterator[ModelEvent]:
        if not begun.call_id:
            yield from self._begin_call(begun, item)
        arguments = item.get("arguments")
        text = arguments if isinstance(arguments, str) and arguments else "".join(begun.arguments)
        own = _without_null(item, _OF_A_CALL)
        extras = self._extras(own) if own else None
        name = str(item.get("name") or begun.name)
        yield CallReady(ToolCall.from_text(begun.call_id, name, text, extras, may_be_cut=True))

    def _end_reasoning(self, begun: _Item, item: dict[str, Any]) -> Iterator[ModelEvent]:
        """Without its encrypted form or its full text it cannot be sent back, since the service stores nothing."""
        text = "\n\n".join(_texts(item.get("summary"))) or "".join(_texts(item.get("content")))
        if text and not begun.has_words:
            yield ThoughtDelta(text)
        own: dict[str, Any] = {"summary": [], **_without_null(item, frozenset({"status"}))}
        if not own.get("content"):
            own.pop("content", None)
        can_return = bool(own.get("encrypted_content") or own.get("content"))
        if text or can_return:
            yield ThoughtReady(Thought(text, extras=self._extras({ITEM: own}) if can_return else None))

    def _extras(self, fields: Mapping[str, Any]) -> ServiceFields:
        return ServiceFields(self._origin, fields)

    def _end(self, response: dict[str, Any]) -> Iterator[ModelEvent]:
        status = response.get("status")
        if status in ("failed", "cancelled"):
            raise self._failure(response)
        if not any(item.is_done for item in self._items):  # no stream came, or one of pieces only
            for place, item in enumerate(cast(list[dict[str, Any]], response.get("output") or [])):
                yield from self._end_item({"output_index": place, "item": item})
        yield from self._end_half_calls()
        if isinstance(usage := response.get("usage"), dict):
            yield _usage(cast(dict[str, Any], usage))
        details: dict[str, Any] = response.get("incomplete_details") or {}
        self._stopped = self._reason(str(details.get("reason") or ""), is_incomplete=status == "incomplete")
        self.is_over = True

    def _end_half_calls(self) -> Iterator[ModelEvent]:
        for call in self._items:
            if call.call_id and not call.is_done:
                call.is_done = True
                text = "".join(call.arguments)
                yield CallReady(ToolCall.from_text(call.call_id, call.name, text, may_be_cut=True))

    def _reason(self, reason: str, *, is_incomplete: bool) -> StopReason:
        if reason == "content_filter" or self._refused:
            return "refusal"
        if reason or is_incomplete:
            return "max_tokens"
        return "tool_use" if self._calls else "end"

    def _failure(self, data: dict[str, Any]) -> Trouble:
        """In the form of other errors: here the kind is told by the code alone."""
        response = data.get("response")
        holder = cast(dict[str, Any], response) if isinstance(response, dict) else data
        error = holder.get("error") or (data if data.get("message") else None)
        if not isinstance(error, dict):
            return cut(self._service, str(error or holder.get("status") or "no reason given"))
        said = cast(dict[str, Any], error)
        code = str(said.get("code") or "")
        kind = said.get("type") if said.get("type") != "error" else None
        kind = kind or ("invalid_request_error" if re.match(_ABOUT_THE_REQUEST, code) else None)
        return trouble_of_report(self._service, {"error": {**said, "type": kind, "code": code}})


def _without_null(item: dict[str, Any], known: frozenset[str] = frozenset()) -> dict[str, Any]:
    """The fields that are not known. What is null in an answer is refused in a request."""
    return {key: value for key, value in item.items() if key not in known and value is not None}


def _texts(parts: Any) -> list[str]:
    return [text for part in cast(list[dict[str, Any]], parts or []) if (text := str(part.get("text") or ""))]


def _usage(usage: dict[str, Any]) -> Usage:
    """Here the input includes cached tokens; ours does not."""
    details: dict[str, Any] = usage.get("input_tokens_details") or {}
    read, written = _count(details.get("cached_tokens")), _count(details.get("cache_write_tokens"))
    fresh = max(0, _count(usage.get("input_tokens")) - read - written)
    return Usage(fresh, _count(usage.get("output_tokens")), read, written)


def _count(value: Any) -> int:
    return value if isinstance(value, int) else 0
