"""The event stream: whatever listeners do, calls go on, and nobody is left guessing what was lost."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from contextlib import ExitStack
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferrule.core.calls import Status, ToolOutcome
from ferrule.core.content import Line
from ferrule.core.context import ToolContext
from ferrule.core.events import (
    Envelope,
    Missed,
    PermissionDecided,
    TextStreamed,
    ToolFinished,
    ToolProgressed,
    ToolRequested,
    ToolStarted,
)
from ferrule.engine.bus import Bus, Subscription
from tests.requirement import requirement

from .stage import Act, Given, call, run_virtually, stage, steps


def said(number: int) -> TextStreamed:
    return TextStreamed(str(number))


async def all_of(subscription: Subscription) -> list[Envelope]:
    return [envelope async for envelope in subscription]


@requirement("PIPE-6")
async def test_every_subscriber_gets_every_event_in_order_with_its_place() -> None:
    bus = Bus()
    emit = bus.emitter("main")

    with bus.subscribe() as one, bus.subscribe() as other:
        for number in range(5):
            emit(said(number))
        bus.close()
        received = await all_of(one), await all_of(other)

    for envelopes in received:
        assert [envelope.event for envelope in envelopes] == [said(number) for number in range(5)]
        assert [envelope.seq for envelope in envelopes] == [1, 2, 3, 4, 5]
        assert [envelope.time for envelope in envelopes] == sorted(envelope.time for envelope in envelopes)
        assert {envelope.agent for envelope in envelopes} == {"main"}


async def test_agents_share_one_count_and_keep_their_names() -> None:
    bus = Bus()
    main, sub = bus.emitter("main"), bus.emitter("main/explore")

    with bus.subscribe() as events:
        main(said(0))
        sub(said(1))
        main(said(2))
        bus.close()
        received = await all_of(events)

    assert [(envelope.seq, envelope.agent) for envelope in received] == [(1, "main"), (2, "main/explore"), (3, "main")]


async def test_a_subscriber_that_waits_is_woken() -> None:
    bus = Bus()
    emit = bus.emitter()

    with bus.subscribe() as events:
        reading = asyncio.ensure_future(events.__anext__())
        await steps(3)
        emit(said(1))
        async with asyncio.timeout(5):
            envelope = await reading

    assert envelope.event == said(1)


@given(
    st.integers(1, 4),
    st.lists(st.sampled_from(["emit", "read"]), max_size=40),
)
def test_a_slow_subscriber_is_told_exactly_how_many_it_missed_and_where(buffer: int, script: list[str]) -> None:
    async def play() -> tuple[list[Envelope], int]:
        bus, received, emitted = Bus(), list[Envelope](), 0
        emit = bus.emitter()
        with bus.subscribe(buffer) as events:
            for step in script:
                if step == "emit":
                    emitted += 1
                    emit(said(emitted))
                elif emitted > (received[-1].seq if received else 0):
                    received.append(await events.__anext__())
            bus.close()
            received += await all_of(events)
        return received, emitted

    (received, emitted), _ = run_virtually(play())

    accounted = 0
    for envelope in received:
        match envelope.event:
            case Missed(count):
                accounted += count
            case event:
                accounted += 1
                assert event == said(accounted)
        assert envelope.seq == accounted
    assert accounted == emitted


async def test_the_last_events_are_not_lost_without_a_word() -> None:
    bus = Bus()
    emit = bus.emitter()

    with bus.subscribe(2) as events:
        for number in range(5):
            emit(said(number))
        bus.close()
        received = await all_of(events)

    assert [envelope.event for envelope in received] == [said(0), said(1), Missed(3)]


async def test_a_subscriber_that_went_away_is_not_written_to_any_more() -> None:
    bus = Bus()
    emit = bus.emitter()
    with bus.subscribe() as gone:
        pass

    emit(said(1))

    assert await all_of(gone) == []


async def test_a_subscriber_whose_reader_was_cancelled_breaks_nothing() -> None:
    bus = Bus()
    emit = bus.emitter()

    with bus.subscribe() as events:
        reading = asyncio.ensure_future(events.__anext__())
        await steps(3)
        reading.cancel()
        emit(said(1))
        bus.close()
        received = await all_of(events)

    assert [envelope.event for envelope in received] == [said(1)]


def test_a_subscriber_whose_event_loop_is_closed_breaks_nothing() -> None:
    bus = Bus()
    emit = bus.emitter()
    loop = asyncio.new_event_loop()

    async def waits_for_an_event() -> Coroutine[Any, Any, Envelope]:
        reading = events.__anext__()
        reading.send(None).add_done_callback(lambda _: None)
        return reading

    with bus.subscribe() as events:
        reading = loop.run_until_complete(waits_for_an_event())
        loop.close()

        emit(said(1))

        reading.close()


# Listeners, each in a thread of its own


def test_a_listener_hears_every_event_in_order_before_the_block_is_left() -> None:
    bus, heard = Bus(), list[Envelope]()
    emit = bus.emitter()

    with bus.listen(heard.append):
        for number in range(100):
            emit(said(number))

    assert [envelope.event for envelope in heard] == [said(number) for number in range(100)]
    assert [envelope.seq for envelope in heard] == list(range(1, 101))


def test_a_broken_listener_is_logged_and_hears_the_rest(caplog: pytest.LogCaptureFixture) -> None:
    bus, heard = Bus(), list[Envelope]()
    emit = bus.emitter()

    def broken(envelope: Envelope) -> None:
        heard.append(envelope)
        raise RuntimeError("the listener's fault")

    with bus.listen(broken):
        emit(said(1))
        emit(said(2))

    assert len(heard) == 2
    assert "a listener failed on TextStreamed" in caplog.text
    assert "the listener's fault" in caplog.text


def test_a_slow_listener_misses_events_and_is_told_how_many() -> None:
    bus, heard = Bus(), list[Envelope]()
    emit = bus.emitter()
    begun, release = threading.Event(), threading.Event()

    def slow(envelope: Envelope) -> None:
        heard.append(envelope)
        begun.set()
        release.wait(5)

    with bus.listen(slow, buffer=2):
        emit(said(0))
        assert begun.wait(5)
        for number in range(1, 6):
            emit(said(number))
        release.set()

    assert [envelope.event for envelope in heard] == [said(0), said(1), said(2), Missed(3)]


@requirement("PIPE-4")
async def test_calls_go_on_while_listeners_hang_or_break() -> None:
    release = threading.Event()

    def hangs(envelope: Envelope) -> None:
        release.wait(5)

    def breaks(envelope: Envelope) -> None:
        raise RuntimeError("broken")

    at = stage(Act())
    with ExitStack() as listeners:
        listeners.enter_context(at.session.bus.listen(hangs))
        listeners.enter_context(at.session.bus.listen(breaks))
        listeners.enter_context(at.session.bus.subscribe(1))

        async with asyncio.timeout(5):
            outcomes = await at.run(*(call("Act", str(index)) for index in range(20)))

        not_waited = not release.is_set()
        release.set()

    assert [outcome.status for outcome in outcomes] == [Status.OK] * 20
    assert not_waited


# The events of calls


@requirement("PIPE-1", "PIPE-4")
async def test_the_events_of_each_call_come_in_order_though_calls_run_side_by_side() -> None:
    both = asyncio.Barrier(2)

    async def body(input: Given, ctx: ToolContext) -> None:
        await both.wait()
        ctx.report(Line("together"))
        await both.wait()

    at = stage(Act(body=body))
    with at.session.bus.subscribe() as events:
        async with asyncio.timeout(5):
            await at.run(call("Act", "1"), call("Act", "2"))
        at.session.bus.close()
        received = await all_of(events)

    assert [envelope.seq for envelope in received] == list(range(1, 11))
    for id in ("1", "2"):
        kinds = [type(envelope.event) for envelope in received if call_of(envelope) == id]
        assert kinds == [ToolRequested, ToolStarted, PermissionDecided, ToolProgressed, ToolFinished]


def call_of(envelope: Envelope) -> str:
    match envelope.event:
        case ToolRequested(called) | ToolStarted(called, _) | ToolFinished(ToolOutcome(called)):
            return called.id
        case ToolProgressed(call_id, _) | PermissionDecided(call_id, _):
            return call_id
        case event:
            raise AssertionError(event)
