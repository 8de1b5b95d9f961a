"""One attempt: the request as HTTP, the answer as events. Common to all kinds of services."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncGenerator, Iterable, Iterator
from dataclasses import replace
from typing import Any, Protocol, TypeAlias, cast

from ..core.content import join_halves
from ..core.model import CallDelta, ModelEvent, TextDelta, ThoughtDelta, ThoughtReady
from ..host.http.http_client import HttpClient, HttpResponse
from ..host.http.message import MEGABYTE, HttpError, HttpRequest, Timeouts
from .service_errors import ServiceAddress, trouble_of_status, unreachable, unreadable
from .sse import ServerSentEvent, SseReader

Delta: TypeAlias = TextDelta | ThoughtDelta | CallDelta


class WholeCharacters:
    """Holds back the first half of a character until the next piece."""

    def __init__(self) -> None:
        self._half: Delta | None = None

    def feed(self, event: ModelEvent) -> Iterator[ModelEvent]:
        half, self._half = self._half, None
        if half is not None and not _goes_on(half, event):
            yield half
            half = None
        match event:
            case TextDelta() | ThoughtDelta() | CallDelta():
                yield from self._delta(event, _text(half) if half else "")
            case ThoughtReady(thought):
                yield ThoughtReady(replace(thought, text=join_halves(thought.text)))
            case _:
                yield event

    def _delta(self, delta: Delta, before: str) -> Iterator[ModelEvent]:
        text = _text(delta)
        whole = join_halves(before + text) if before else text
        if whole and "\ud800" <= whole[-1] <= "\udbff":
            self._half = _with(delta, whole[-1])
            whole = whole[:-1]
            if not whole:
                return
        yield delta if whole is text else _with(delta, whole)


def _goes_on(half: Delta, event: ModelEvent) -> bool:
    if isinstance(half, CallDelta):
        return isinstance(event, CallDelta) and event.call_id == half.call_id
    return type(event) is type(half)


def _text(delta: Delta) -> str:
    return delta.json if isinstance(delta, CallDelta) else delta.text


def _with(delta: Delta, text: str) -> Delta:
    return replace(delta, json=text) if isinstance(delta, CallDelta) else type(delta)(text)


TIMEOUTS = Timeouts(connect=20.0, first_byte=600.0, idle=300.0)
"""A model may read a long conversation for minutes before its first word."""
MOST_ANSWER = 256 * MEGABYTE
MOST_ERROR = MEGABYTE
FINISH_SECONDS = 0.25
DONE = "[DONE]"
"""The end of an OpenAI stream."""


class MessageReader(Protocol):
    """Converts one message to events. Raises `Trouble`."""

    @property
    def is_over(self) -> bool:
        """Whether the service said so, so that nothing will follow."""
        ...

    @property
    def is_whole(self) -> bool:
        """Whether the message is complete, whatever may still follow."""
        ...

    def event(self, event: ServerSentEvent, /) -> Iterable[ModelEvent]: ...

    def whole(self, message: dict[str, Any], /) -> Iterable[ModelEvent]:
        """An answer that arrived as a whole and not as a stream."""
        ...

    def end(self, *, is_framed: bool) -> Iterable[ModelEvent]:
        """The last events; raises if the message is incomplete.

        `is_framed` tells that the end was marked, so it is not where a connection happened to break.
        """
        ...


class BadFrame(ValueError):
    """What came is not in the framing that the service uses."""


class FrameReader(Protocol):
    """Finds the events in the bytes of an answer, which may be cut anywhere. Raises `BadFrame`."""

    def feed(self, chunk: bytes, /) -> Iterable[ServerSentEvent]: ...

    def end(self) -> list[ServerSentEvent]:
        """An event that lacks only its end."""
        ...


async def ask_once(
    client: HttpClient,
    service: ServiceAddress,
    body: bytes,
    reader: MessageReader,
    frames: FrameReader | None = None,
) -> AsyncGenerator[ModelEvent]:
    """`frames` is for an answer that is not a stream of server-sent events."""
    request = HttpRequest(
        url=service.url,
        method="POST",
        headers=service.headers,
        body=body,
        timeouts=TIMEOUTS,
        most_body=MOST_ANSWER,
    )
    is_framed = False
    characters = WholeCharacters()
    try:
        async with client.send(request) as response:
            if response.status != 200:
                raise trouble_of_status(
                    service, response.status, response.headers, await _error_text(response), now=time.time()
                )
            is_framed = response.is_framed
            pieces = Pieces(service, reader, frames)
            async for chunk in response.chunks():
                for event in pieces.feed(chunk):
                    for whole in characters.feed(event):
                        yield whole
                if reader.is_over:
                    await response.finish(FINISH_SECONDS)
                    break
            for event in pieces.end():
                for whole in characters.feed(event):
                    yield whole
    except HttpError as error:
        if not reader.is_whole:
            raise unreachable(service, error) from None
    for event in reader.end(is_framed=is_framed):
        for whole in characters.feed(event):
            yield whole


class Pieces:
    """Distinguishes a stream of events from one JSON object by the first character, whatever the headers say."""

    def __init__(self, service: ServiceAddress, reader: MessageReader, frames: FrameReader | None = None) -> None:
        self._service = service
        self._reader = reader
        self._stream: FrameReader = frames or SseReader()
        self._object: bytearray | None = None
        self._began = False

    def feed(self, chunk: bytes) -> Iterator[ModelEvent]:
        if not self._began and chunk.strip():
            self._began = True
            self._object = bytearray() if chunk.lstrip().startswith(b"{") else None
        if self._object is not None:
            self._object += chunk
            return
        try:
            for event in self._stream.feed(chunk):
                if self._reader.is_over:
                    return  # whatever follows does not belong to this message
                yield from self._reader.event(event)
        except BadFrame as error:
            raise unreadable(self._service, str(error)) from None

    def end(self) -> Iterator[ModelEvent]:
        if self._object is not None:
            yield from self._reader.whole(parse_object(self._service, self._object.decode("utf-8", "replace")))
        elif not self._reader.is_whole:
            for event in self._stream.end():
                if _is_json(event.data):  # otherwise the end is where it was cut, which the reader will see
                    yield from self._reader.event(event)


async def _error_text(response: HttpResponse) -> bytes:
    text = bytearray()
    async for chunk in response.chunks():
        text += chunk
        if len(text) > MOST_ERROR:
            break
    return bytes(text)


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return text == DONE
    return True


def parse_object(service: ServiceAddress, text: str) -> dict[str, Any]:
    """The text parsed as a JSON object."""
    try:
        value: Any = json.loads(text)
    except (ValueError, RecursionError):
        raise unreadable(service, text) from None
    if not isinstance(value, dict):
        raise unreadable(service, text)
    return cast(dict[str, Any], value)
