"""One fault suite for every service: what goes wrong is told as it is, and tried again where that helps."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import pytest

from ferrule.core.model import ModelError, ModelEvent, Request, Retrying, Stopped, UserTurn
from ferrule.providers.retry import Retries
from ferrule.testing.services import PlayedTurn
from tests.providers.conversing import AT_ONCE, Conversation, conversing, every_service, turn_of
from tests.providers.hearing import HELLO, heard, heard_until_error, text_of, tools

HELLO_THERE: dict[str, Any] = {"text": "Hello there, how are you today?"}
A_CALL: dict[str, Any] = {"text": "So.", "calls": [{"name": "Tool0", "input": {"path": "a" * 400}}]}
WITH_TOOLS = Request([UserTurn.saying("go")], tools(2), 2, max_tokens=8000)


def retried(events: list[ModelEvent]) -> int:
    return sum(isinstance(event, Retrying) for event in events)


async def failure(name: str, *turns: Mapping[str, Any]) -> ModelError:
    async with conversing(name, *turns) as talk:
        return (await heard_until_error(talk.model, WITH_TOOLS))[1]


@every_service()
@pytest.mark.parametrize("status", [429, 500, 502, 503, 529])
async def test_a_service_that_has_trouble_is_asked_again(name: str, status: int) -> None:
    async with conversing(name, {"fault": {"status": status, "retry_after": "0"}}, HELLO_THERE) as talk:
        events = await heard(talk.model, WITH_TOOLS)

    assert (retried(events), text_of(events)) == (1, HELLO_THERE["text"])


@every_service()
@pytest.mark.parametrize(("status", "kind"), [(400, "request"), (401, "key"), (402, "limit"), (403, "key")])
async def test_a_refusal_is_told_at_once_and_by_its_kind(name: str, status: int, kind: str) -> None:
    async with conversing(name, {"fault": {"status": status}}, HELLO_THERE) as talk:
        events, error = await heard_until_error(talk.model, WITH_TOOLS)

    assert (error.kind, retried(events), len(talk.server.requests)) == (kind, 0, 1)
    assert str(status) in str(error)


@every_service()
async def test_a_body_that_is_not_json_is_quoted(name: str) -> None:
    error = await failure(name, {"fault": {"status": 400, "body": "<html>Bad gateway of a proxy</html>"}})

    assert "Bad gateway of a proxy" in str(error)


@every_service()
async def test_a_connection_that_closes_before_the_answer_is_made_again(name: str) -> None:
    async with conversing(name, {"fault": {"close": True}}, HELLO_THERE) as talk:
        events = await heard(talk.model, WITH_TOOLS)

    assert text_of(events) == HELLO_THERE["text"]


@every_service()
async def test_a_stream_cut_anywhere_never_passes_for_a_whole_message(name: str) -> None:
    """Before the first word it is asked for again; after it there is an error; no call is taken that was not whole."""
    size = await _size(name, A_CALL)
    for at in sorted({0, 1, size // 8, size // 4, size // 2, size * 3 // 4, size - size // 6}):
        async with conversing(name, {**A_CALL, "fault": {"cut_after": at}}, A_CALL) as talk:
            events = await _until_the_end(talk, WITH_TOOLS)
        calls = [call.arguments for call in turn_of(events).calls] if isinstance(events[-1], Stopped) else None
        assert calls in (None, [{"path": "a" * 400}]), at


@every_service()
async def test_an_event_that_is_garbage_is_asked_for_again_or_told(name: str) -> None:
    async with conversing(name, {**HELLO_THERE, "fault": {"garbage_at": 0}}, HELLO_THERE) as talk:
        events = await heard(talk.model, WITH_TOOLS)
    assert (retried(events), text_of(events)) == (1, HELLO_THERE["text"])

    error = await failure(name, {**HELLO_THERE, "text": "one two " * 20, "fault": {"garbage_at": 12}})
    assert error.kind in ("cut", "answer")


@every_service()
@pytest.mark.parametrize("stop", ["max_tokens", "refusal", "end"])
async def test_the_reason_to_stop_is_the_services(name: str, stop: str) -> None:
    async with conversing(name, {"text": "I", "stop": stop}) as talk:
        events = await heard(talk.model, HELLO)

    assert events[-1] == Stopped(stop)  # type: ignore[arg-type]


@every_service({"vllm": "L11"})
async def test_a_conversation_that_is_too_long_is_told_as_such(name: str) -> None:
    async with conversing(name, HELLO_THERE, window=2000) as talk:
        request = Request([UserTurn.saying("word " * 5000)], (), max_tokens=100)
        if name == "ollama":  # it says nothing, and reports what is left
            events = await heard(talk.model, request)
            assert text_of(events) == HELLO_THERE["text"]
            return
        error = (await heard_until_error(talk.model, request))[1]

    assert error.kind == "overflow", error


@every_service()
async def test_a_service_that_stays_silent_is_given_up_after_all_tries(name: str) -> None:
    tries = Retries(attempts=3, sleep=AT_ONCE.sleep)
    turns = [{"fault": {"status": 503}}] * 4
    async with conversing(name, *turns, retries=tries) as talk:
        events, error = await heard_until_error(talk.model, HELLO)

    assert (error.kind, retried(events), len(talk.server.requests)) == ("overload", 2, 3)


async def _size(name: str, turn: Mapping[str, Any]) -> int:
    """Bytes of the stream of this turn."""
    async with conversing(name, turn) as talk:
        await heard(talk.model, WITH_TOOLS)
    played = PlayedTurn(talk.server.script.turns[0], 0, "", talk.server.requests[-1])
    return sum(map(len, talk.service.events(played)))


async def _until_the_end(talk: Conversation, request: Request) -> list[ModelEvent]:
    """The events of the message, whether it was whole or an error ended it."""
    events: list[ModelEvent] = []
    with suppress(ModelError):
        async with talk.model.stream(request) as stream:
            async for event in stream:
                events.append(event)  # noqa: PERF401 - those before the error are wanted
    return events
