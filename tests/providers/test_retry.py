"""What is asked again, what is not, and in which words."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from ferrule.core.model import ModelError, ModelProvider, Retrying, Stopped, TextDelta
from ferrule.host.http.http_client import HttpClient
from ferrule.providers.model_catalog import open_model
from ferrule.providers.retry import Retries
from ferrule.testing.model_server import ModelServer
from tests.providers.hearing import HELLO, heard, heard_until_error, models_at, text_of
from tests.requirement import requirement

GENEROUS = 30.0
FINE: dict[str, Any] = {"text": "Hello."}


class Clock:
    """Keeps what was slept and does not sleep."""

    def __init__(self) -> None:
        self.slept: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)

    def retries(self, attempts: int = 4) -> Retries:
        return Retries(attempts=attempts, sleep=self.sleep, chance=lambda: 0.5)


def failing(**fault: Any) -> dict[str, Any]:
    return {"text": "Hello.", "fault": fault}


async def after(turns: list[dict[str, Any]], which: int, attempts: int = 4) -> tuple[ModelServer, Clock, Any]:
    """What comes of asking the one model or the other."""
    clock = Clock()
    async with ModelServer.playing({"turns": turns}) as server, models_at(server, clock.retries(attempts)) as models:
        try:
            return server, clock, await heard(models[which])
        except ModelError as error:
            return server, clock, error


@requirement("LOOP-1")
@pytest.mark.parametrize("which", [0, 1, 2])
@pytest.mark.parametrize(
    "fault",
    [
        {"status": 529},
        {"status": 500},
        {"status": 503, "body": "<html>busy</html>"},
        {"status": 429},
        {"status": 408},
        {"close": True},
        {"cut_after": 0},
        {"cut_after": 20},
        {"garbage_at": 0},
    ],
    ids=str,
)
async def test_what_may_pass_is_asked_again_until_it_has(fault: dict[str, Any], which: int) -> None:
    server, clock, events = await after([failing(**fault), failing(**fault), FINE], which)

    retried = [event for event in events if isinstance(event, Retrying)]
    assert text_of(events) == "Hello."
    assert events[-1] == Stopped("end")
    assert [(one.attempt, one.attempts, one.seconds) for one in retried] == [(2, 4, 0.5), (3, 4, 1.0)]
    assert clock.slept == [0.5, 1.0]
    assert len(server.requests) == 3
    assert server.requests[0].raw == server.requests[2].raw


@requirement("LOOP-1")
@pytest.mark.parametrize("which", [0, 1, 2])
async def test_tries_have_an_end_that_says_how_many_there_were(which: int) -> None:
    _, clock, error = await after([failing(status=529)] * 4, which)

    assert isinstance(error, ModelError)
    assert error.kind == "overload"
    assert str(error).endswith("Scripted 529 (529). Tried 4 times.")
    assert clock.slept == [0.5, 1.0, 2.0]


@requirement("LOOP-1")
@pytest.mark.parametrize(
    ("retry_after", "pauses"),
    [
        ("7", [7.0]),
        ("0", [0.5]),
        ("soon", [0.5]),
        ("date", None),
    ],
)
async def test_a_service_that_says_when_is_left_alone_until_then(retry_after: str, pauses: list[float] | None) -> None:
    if retry_after == "date":
        retry_after = time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime(time.time() + 100))

    _, clock, events = await after([failing(status=429, retry_after=retry_after), FINE], 0)

    assert events[-1] == Stopped("end")
    if pauses is None:
        assert 1 < clock.slept[0] <= 101
    else:
        assert clock.slept == pauses


@pytest.mark.parametrize(("fault", "status"), [({"status": 529}, 529), ({"close": True}, None)], ids=str)
async def test_a_retry_names_the_status_that_it_is_for(fault: dict[str, Any], status: int | None) -> None:
    _, _, events = await after([failing(**fault), FINE], 0)

    (retried,) = [event for event in events if isinstance(event, Retrying)]
    assert retried.status == status
    assert retried.reason.endswith(".")


async def test_a_service_that_wants_to_be_left_alone_for_an_hour_is_given_up_at_once() -> None:
    _, clock, error = await after([failing(status=429, retry_after="3600"), FINE], 0)

    assert error.kind == "limit"
    assert str(error).endswith("It asks to wait for 3600 seconds.")
    assert clock.slept == []


@requirement("LOOP-1")
@pytest.mark.parametrize("which", [0, 1, 2])
@pytest.mark.parametrize(
    ("fault", "kind", "words"),
    [
        ({"status": 401}, "key", "does not accept the key"),
        ({"status": 403}, "key", "does not accept the key"),
        ({"status": 404, "body": {"error": {"message": "model: m"}}}, "request", 'has no model "m"'),
        ({"status": 404, "body": {"error": 'model "m" not found'}}, "request", 'has no model "m"'),
        ({"status": 404, "body": {"detail": "Not Found"}}, "request", "_BASE_URL"),
        ({"status": 404, "body": "<html>nothing here</html>"}, "request", "_BASE_URL"),
        ({"status": 302}, "request", "_BASE_URL"),
        ({"status": 400}, "request", "refuses the request: Scripted 400 (400)"),
        ({"status": 402}, "limit", "Check the account's credit"),
        ({"status": 413}, "overflow", "too long for m"),
    ],
)
async def test_what_will_not_pass_fails_at_once_and_says_what_to_do(
    fault: dict[str, Any], kind: str, words: str, which: int
) -> None:
    server, clock, error = await after([failing(**fault), FINE], which)

    assert error.kind == kind
    assert words in str(error)
    assert str(error).endswith(".")
    assert clock.slept == []
    assert len(server.requests) == 1


@requirement("LOOP-1")
@pytest.mark.parametrize(
    "said",
    [
        {"error": {"type": "invalid_request_error", "message": "prompt is too long: 210000 tokens > 200000 maximum"}},
        {"error": {"message": "input length and `max_tokens` exceed context limit: 190000 + 32000 > 200000"}},
        {"error": {"code": "context_length_exceeded", "message": "too long"}},
        {"message": "This model's maximum context length is 4096 tokens. However, you requested 5000."},
        {"error": {"code": 400, "message": "the request exceeds the available context size, try increasing it"}},
        {"detail": "Please reduce the length of the messages."},
        {"error": "input is too long for requested model"},
    ],
)
async def test_a_conversation_that_is_too_long_is_recognised(said: Any) -> None:
    for which in (0, 1, 2):
        _, _, error = await after([failing(status=400, body=said)], which)
        assert error.kind == "overflow", said


async def test_credit_that_is_used_up_is_not_waited_for() -> None:
    body = {"error": {"type": "insufficient_quota", "message": "You exceeded your current quota"}}
    _, clock, error = await after([failing(status=429, body=body), FINE], 1)

    assert (error.kind, clock.slept) == ("limit", [])


@requirement("LOOP-1", "SCHED-4")
@pytest.mark.parametrize("which", [0, 1, 2])
async def test_nothing_is_asked_again_after_the_first_word(which: int) -> None:
    clock = Clock()
    turns = [{"text": "one two three", "fault": {"garbage_at": 4}}, FINE]
    async with ModelServer.playing({"turns": turns}) as server, models_at(server, clock.retries()) as models:
        events, error = await heard_until_error(models[which])

    assert TextDelta("one ") in events
    assert error.kind == "answer"
    assert clock.slept == []
    assert len(server.requests) == 1


async def test_a_service_that_is_not_there_is_named_and_tried_again() -> None:
    clock = Clock()
    async with ModelServer.playing({"turns": [FINE]}) as server:
        url = server.url
    async with HttpClient({}) as client:
        model = open_model("anthropic:m", {"ANTHROPIC_BASE_URL": url}, client=client, retries=clock.retries(3))
        events, error = await heard_until_error(model)

    assert [type(event) for event in events] == [Retrying, Retrying]
    assert error.kind == "network"
    assert "Connection refused" in str(error)


async def test_an_interrupt_ends_the_wait_for_the_next_try() -> None:
    async with (
        asyncio.timeout(GENEROUS),
        ModelServer.playing({"turns": [failing(status=529)]}) as server,
        models_at(server, Retries(first=3600, longest=3600)) as models,
    ):
        waiting = asyncio.Event()
        task = asyncio.create_task(_until_it_waits(models[0], waiting))
        await waiting.wait()
        task.cancel()
        await asyncio.wait([task])

        assert task.cancelled()


async def _until_it_waits(model: ModelProvider, waiting: asyncio.Event) -> None:
    async with model.stream(HELLO) as events:
        async for event in events:
            assert isinstance(event, Retrying)
            waiting.set()


def test_pauses_double_up_to_the_longest_and_vary() -> None:
    retries = Retries(first=0.5, longest=8, chance=lambda: 0.0)
    late = Retries(first=0.5, longest=8, chance=lambda: 1.0)

    assert [retries.pause(attempt, None) for attempt in range(2, 9)] == [0.375, 0.75, 1.5, 3, 6, 6, 6]
    assert late.pause(2, None) == 0.625
    assert retries.pause(2, 5.0) == 5.0


async def test_leaving_early_closes_the_connection_and_a_whole_message_keeps_it() -> None:
    slow = {"text": "one two three four", "fault": {"slow": 0.01}}
    async with ModelServer.playing({"turns": [FINE, FINE, slow, FINE]}) as server, models_at(server) as (model, *_):
        await heard(model)
        await heard(model)
        assert server.connections == 1

        async with model.stream(HELLO) as events:
            async for event in events:
                if isinstance(event, TextDelta):
                    break
        await heard(model)

        assert server.connections == 2


async def test_the_loop_may_leave_at_the_last_event_and_the_connection_is_kept() -> None:
    async with ModelServer.playing({"turns": [FINE] * 6}) as server, models_at(server) as models:
        for model in models:
            for _ in range(2):
                async with model.stream(HELLO) as events:
                    async for event in events:
                        if isinstance(event, Stopped):
                            break

        assert server.connections == 1
