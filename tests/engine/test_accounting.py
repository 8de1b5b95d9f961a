"""What messages cost: set aside before, estimated where nothing is reported; and prompts that a service cuts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from ferrule.core.content import Image
from ferrule.core.events import Compacted, TurnEnded, Warned
from ferrule.core.model import LongPrices, ModelEvent, ModelFacts, Request, Usage, UserTurn
from ferrule.engine.accounting import Accounting
from ferrule.engine.spending import Spending, TurnLimits, cost_of
from ferrule.providers.scripted import says

from .conversing import Faulty, ask
from .stage import Act, call, echo, stage

PRICED = ModelFacts(input_price=3.0, output_price=15.0, cache_read_price=0.3, cache_write_price=3.75)


# Prices


def test_what_is_cached_for_an_hour_costs_twice_as_much_as_input() -> None:
    usage = Usage(cache_write_tokens=3_000_000, cache_hour_tokens=1_000_000)

    assert cost_of(usage, PRICED) == pytest.approx(2 * 3.75 + 6)


def test_all_of_a_long_request_costs_more() -> None:
    facts = replace(PRICED, long_prices=LongPrices(200_000))

    assert cost_of(Usage(100_000, 1_000, 100_000), facts) == pytest.approx(0.3 + 0.015 + 0.03)
    assert cost_of(Usage(100_001, 1_000, 100_000), facts) == pytest.approx(2 * (0.300003 + 0.03) + 1.5 * 0.015)


# Without usage


async def test_a_budget_is_kept_by_estimates_where_no_usage_is_reported() -> None:
    at = stage(Act(body=echo))
    at.session.limits = TurnLimits(max_budget=0.000001)
    model = Faulty(*[says("", call("Act", str(number), text="x")) for number in range(5)], facts=PRICED)

    events = await ask(at, "go", model)

    assert events[-1] == TurnEnded("max_budget")
    assert len(model.requests) == 1
    spending = at.session.spending
    assert (spending.is_estimate, spending.usage) == (True, Usage()), "what was reported is nothing"
    assert 0 < spending.dollars < 0.01


async def test_the_cost_of_an_unpriced_model_is_unknown_also_without_usage() -> None:
    at = stage(Act())

    await ask(at, "go", Faulty(says("done")))

    assert [total.dollars for total in at.session.spending.by_model.values()] == [None]


# Set aside


def test_what_others_have_set_aside_is_not_spent_twice() -> None:
    spending, limits, model = Spending(), TurnLimits(max_budget=1.0), Faulty(facts=PRICED)
    spending.add(model.name, Usage(100_000), PRICED)  # 30 cents a message

    started = 0
    for number in range(20):
        if limits.end_if_reached(0, spending, model, f"agent_{number}") is None:
            spending.reserve(f"agent_{number}", model, Usage(1, 1))
            started += 1

    assert started == 3, "30 cents are spent, and three times 30 are set aside"
    spending.release("agent_0")
    assert limits.end_if_reached(0, spending, model, "agent_19") is None


class Slow:
    """All that ask wait for each other, then each message costs five cents."""

    name = "slow"
    facts = PRICED

    def __init__(self) -> None:
        self.number = 0

    @asynccontextmanager
    async def stream(self, request: Request, /) -> AsyncGenerator[AsyncIterator[ModelEvent]]:
        yield self._events()

    async def _events(self) -> AsyncIterator[ModelEvent]:
        self.number += 1
        for _ in range(20):
            await asyncio.sleep(0)
        for event in (Usage(16_667), *says("", call("Act", f"call_{self.number}", text="x"))):
            yield event


async def test_many_conversations_that_share_a_budget_end_near_it() -> None:
    spending, model = Spending(), Slow()
    spending.add(model.name, Usage(16_667), PRICED)
    stages = [stage(Act(body=echo)) for _ in range(20)]
    for number, at in enumerate(stages):
        at.session.spending, at.session.limits, at.session.agent = spending, TurnLimits(max_budget=1.0), f"a_{number}"

    endings = await asyncio.gather(*(ask(at, "go", model) for at in stages))

    assert {events[-1] for events in endings} == {TurnEnded("max_budget")}
    assert 1.0 <= spending.dollars <= 1.1
    assert spending.committed("nobody") == spending.dollars, "nothing stays set aside"


# Prompts that are cut


class Cutting(Faulty):
    """A service that reads no more than so many tokens, and reports no more."""

    def __init__(self, window: int, messages: int) -> None:
        calls = [says("", call("Act", str(number), text="word " * 3_000)) for number in range(messages)]
        made = [[Usage(window, 10), *message] for message in (*calls, says("done"))]
        super().__init__(*made, facts=ModelFacts(window=128_000))

    def learn_window(self, window: int, /) -> None:
        self.facts = replace(self.facts, window=window, source="learned")


async def test_a_service_that_cuts_prompts_is_found_out_once_and_the_conversation_kept_short() -> None:
    at = stage(Act(body=echo))
    model = Cutting(20_000, 12)

    events = await ask(at, "go", model)

    (warning,) = [event.text for event in events if isinstance(event, Warned)]
    assert "20,000 tokens" in warning
    assert "OLLAMA_CONTEXT_LENGTH" in warning
    assert model.facts.window == 20_000
    assert [event for event in events if isinstance(event, Compacted)]


@pytest.mark.parametrize(
    ("sent", "reported", "found"),
    [
        ((8_000, 30_000, 60_000), (7_000, 4_096, 4_096), 4_096),
        ((8_000, 30_000, 60_000), (4_096, 4_096, 4_096), 4_096),
        ((8_000, 30_000, 60_000), (8_000, 22_000, 44_000), None),
        ((8_000, 30_000, 60_000), (4_000, 9_000, 18_000), None),
        ((8_000, 30_000, 60_000), (50, 60, 55), None),
        ((8_000, 8_100, 8_150), (4_096, 4_096, 4_096), None),
    ],
    ids=["cut later", "cut at once", "well read", "read with a better tokenizer", "without the cache", "not grown"],
)
def test_only_reports_that_stay_behind_and_do_not_grow_show_a_cut(
    sent: tuple[int, ...], reported: tuple[int, ...], found: int | None
) -> None:
    accounting, last, history = Accounting(), None, []
    for size, tokens in zip(sent, reported, strict=True):
        before = sum(len(turn.content[0].text) for turn in history)  # type: ignore[union-attr]
        history.append(UserTurn.saying("x" * (size * 3 - before)))
        last = accounting.find_cut(Request(history, ()), Usage(tokens))

    assert last == found


def test_pictures_are_left_out_of_it_since_models_differ_in_what_one_takes() -> None:
    accounting, history = Accounting(), [UserTurn.saying("x" * 9_000)]
    found: list[int | None] = []
    for _ in range(6):
        history.append(UserTurn((Image("image/png", "AAAA"),)))
        found.append(accounting.find_cut(Request(history, ()), Usage(3_000)))

    assert found == [None] * 6
