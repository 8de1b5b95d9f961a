"""What a session counts, where its limits end a turn, and what runs after one."""

from __future__ import annotations

import asyncio

import pytest

from ferrule.core.content import Image, Text
from ferrule.core.context import ToolContext
from ferrule.core.effects import Effects
from ferrule.core.events import MessageEnded, NoteAdded, TurnEnded, TurnStarted
from ferrule.core.model import (
    AssistantTurn,
    ModelError,
    ModelEvent,
    ModelFacts,
    ResultTurn,
    Stopped,
    TextDelta,
    Usage,
    UserTurn,
)
from ferrule.core.ports import Note
from ferrule.core.state import Queued
from ferrule.core.tool import Result
from ferrule.engine.spending import TurnLimits, cost_of
from ferrule.providers.scripted import says
from ferrule.testing import RecordingModel, well_formed
from tests.requirement import requirement

from .conversing import Faulty, Stream, ask, result
from .stage import Act, Given, call, echo, stage

PRICED = ModelFacts(input_price=3.0, output_price=15.0, cache_read_price=0.3, cache_write_price=3.75)


def costing(usage: Usage, *events: ModelEvent) -> list[ModelEvent]:
    return [Usage(usage.input_tokens), *events[:-1], usage, events[-1]]


# What is counted


@requirement("LOOP-1")
async def test_the_last_usage_of_each_message_counts() -> None:
    at = stage(Act())
    model = Faulty(
        costing(Usage(1_000, 100), *says("", call())),
        costing(Usage(2_000, 200, 5_000, 400), *says("done")),
        facts=PRICED,
    )

    events = await ask(at, "go", model)

    spending = at.session.spending
    assert spending.usage == Usage(3_000, 300, 5_000, 400)
    assert spending.by_model.keys() == {"of a test"}
    assert spending.dollars == pytest.approx((3_000 * 3 + 300 * 15 + 5_000 * 0.3 + 400 * 3.75) / 1e6)
    assert [event.usage for event in events if isinstance(event, MessageEnded)] == [
        Usage(1_000, 100),
        Usage(2_000, 200, 5_000, 400),
    ]


async def test_a_message_that_came_to_nothing_is_paid_for_as_well() -> None:
    at = stage(Act())
    cut = [Usage(500), TextDelta("ha"), ModelError("cut", "cut")]

    await ask(at, "go", Faulty(cut, costing(Usage(500, 5), *says("done")), facts=PRICED))

    assert at.session.spending.usage == Usage(1_000, 5)


@requirement("LOOP-1")
def test_without_prices_nobody_knows_the_cost() -> None:
    assert cost_of(Usage(1), ModelFacts(input_price=1.0)) is None


# Limits


async def test_a_turn_ends_after_as_many_messages_as_it_may_have() -> None:
    at = stage(Act(body=echo))
    at.session.limits = TurnLimits(max_turns=2)
    model = Faulty(*[says("", call("Act", str(number), text="x")) for number in range(5)])

    events = await ask(at, "go", model)

    assert events[-1] == TurnEnded("max_turns")
    assert len(model.requests) == 2
    assert at.session.history[-1] == ResultTurn((result("1", "x"),))


async def test_the_limit_counts_for_each_prompt_anew() -> None:
    at = stage(Act())
    at.session.limits = TurnLimits(max_turns=1)

    first = await ask(at, "go", RecordingModel(says("one")))
    second = await ask(at, "go", RecordingModel(says("two")))

    assert (first[-1], second[-1]) == (TurnEnded("end"), TurnEnded("end"))


async def test_a_turn_ends_when_the_budget_is_spent() -> None:
    at = stage(Act())
    at.session.limits = TurnLimits(max_budget=0.01)
    model = Faulty(*[costing(Usage(2_000), *says("", call("Act", str(number)))) for number in range(5)], facts=PRICED)

    events = await ask(at, "go", model)
    after = await ask(at, "more", model)

    assert events[-1] == after[-1] == TurnEnded("max_budget")
    assert len(model.requests) == 2, "two messages cost 0.012 dollars, and nothing is asked after that"
    assert well_formed(at.session.history)


async def test_a_budget_in_dollars_needs_prices() -> None:
    at = stage(Act())
    at.session.limits = TurnLimits(max_budget=1.0)
    model = RecordingModel(says("never"))

    events = await ask(at, "go", model)

    ended = events[-1]
    assert isinstance(ended, TurnEnded)
    assert (ended.reason, "price of scripted is unknown" in ended.error) == ("error", True)
    assert model.requests == []


# What a request carries


async def test_a_request_carries_what_the_session_says() -> None:
    at = stage(Act())
    at.session.system, at.session.max_tokens, at.session.thinking_tokens = "Be brief.", 900, 300
    model = RecordingModel(says("ok"))

    await ask(at, "go", model)

    request, _ = model.requests[0]
    assert (request.system, request.max_tokens, request.thinking_tokens) == ("Be brief.", 900, 300)


async def test_a_prompt_may_hold_pictures() -> None:
    at = stage(Act())
    content = (Text("What is this?"), Image("image/png", "aGk="))

    events = await ask(at, content, RecordingModel(says("A picture.")))
    await ask(at, UserTurn(content), RecordingModel(says("Again.")))

    assert at.session.history[0] == at.session.history[2] == UserTurn(content)
    assert events[0] == TurnStarted("What is this?\n[image/png]")


async def test_a_note_stands_behind_the_next_prompt_once() -> None:
    at = stage(Act())
    at.session.note(Note("mode", "Plan mode is on."))

    events = await ask(at, "go", RecordingModel(says("", call()), says("ok")))

    assert at.session.history[0] == UserTurn((Text("go"), Text("<mode>\nPlan mode is on.\n</mode>")))
    assert [event for event in events if isinstance(event, NoteAdded)] == [NoteAdded("mode", "Plan mode is on.")]


# After the turn


def queueing(*prompts: str) -> Act:
    async def body(input: Given, ctx: ToolContext) -> Result[str]:
        return Result("queued", changes=tuple(map(Queued, prompts)))

    return Act(body=body)


@requirement("LOOP-5")
async def test_queued_prompts_run_after_the_turn_in_their_order() -> None:
    at = stage(queueing("second", "third"))
    model = RecordingModel(says("", call()), says("one"), says("two"), says("three"))

    events = await ask(at, "first", model)

    told = [event for event in events if isinstance(event, TurnStarted | TurnEnded)]
    ended = TurnEnded("end")
    assert told == [TurnStarted("first"), ended, TurnStarted("second"), ended, TurnStarted("third"), ended]
    assert at.session.history[-2:] == [UserTurn.saying("third"), AssistantTurn((Text("three"),))]
    assert at.session.state.queue == ()


async def test_after_a_failure_what_is_queued_waits_for_the_next_turn() -> None:
    at = stage(queueing("later"))

    await ask(at, "first", Faulty(says("", call()), [ModelError("down", "network")]))
    events = await ask(at, "second", RecordingModel(says("fine"), says("now")))

    assert [event.prompt for event in events if isinstance(event, TurnStarted)] == ["second", "later"]


# Interrupts


@requirement("PIPE-5")
async def test_an_interrupt_from_outside_ends_the_turn_and_drops_what_is_queued() -> None:
    begun = asyncio.Event()

    async def wait(input: Given, ctx: ToolContext) -> None:
        begun.set()
        await asyncio.Event().wait()

    at = stage(queueing("never"), Act("Wait", wait))
    model = RecordingModel(says("", call("Act", "1"), call("Wait", "2")))

    async with asyncio.timeout(5), at.session.ask("go", model) as events:
        await begun.wait()
        assert at.session.interrupt()
        seen = [envelope.event async for envelope in events]

    assert seen[-1] == TurnEnded("interrupted")
    results = at.session.history[2]
    assert isinstance(results, ResultTurn)
    assert [one.is_error for one in results.results] == [False, True]
    assert at.session.state.queue == ()
    assert not at.session.interrupt()


async def test_an_interrupt_while_the_model_writes_keeps_its_words() -> None:
    at = stage(Act(effects=Effects.reading("/a")))
    model = Stream(TextDelta("half a sentence"), ending=asyncio.Event())

    async with asyncio.timeout(5), at.session.ask("go", model) as events:
        async for envelope in events:
            if type(envelope.event).__name__ == "TextStreamed":
                at.session.interrupt()
    await ask(at, "go on", RecordingModel([TextDelta("."), Stopped("end")]))

    assert at.session.history[:2] == [UserTurn.saying("go"), AssistantTurn((Text("half a sentence"),))]
    assert model.closed
