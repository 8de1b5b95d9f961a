"""What stays of a conversation that grows beyond the model's window."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferrule.core.content import Image, Text, plain_text
from ferrule.core.context import ToolContext
from ferrule.core.events import Compacted, PrefixMoved, TurnEnded
from ferrule.core.model import (
    AssistantTurn,
    ModelError,
    ModelEvent,
    ModelFacts,
    Request,
    ResultTurn,
    Turn,
    Usage,
    UserTurn,
)
from ferrule.core.ports import Note, TurnWords
from ferrule.engine.compaction import OVERFLOWS, StateNotes, Trigger, limit
from ferrule.engine.message_history import MessageHistory
from ferrule.engine.restoring import restore_conversation
from ferrule.engine.shortening import LEFT_OUT, Form, first_kept_turn, shorter, standing
from ferrule.engine.summaries import INSTRUCTIONS
from ferrule.engine.transcript import Transcript
from ferrule.engine.window import Meter, estimate
from ferrule.providers.scripted import says
from ferrule.testing import well_formed
from tests.requirement import requirement

from .conversing import Faulty, InMemory, ask, result, sums
from .stage import Act, Given, Stage, call, stage

SMALL = ModelFacts(window=10_000, most_output=2_000, input_price=1.0, output_price=1.0)
LIMIT = limit(SMALL, None)
LONG = "word " * 425
"""500 tokens, as they are estimated."""


async def prints_much(input: Given, ctx: ToolContext) -> str:
    return LONG


def working(count: int) -> list[list[ModelEvent]]:
    return [says("", call("Act", f"c{number}")) for number in range(count)]


def is_asking_for_a_summary(history: tuple[Turn, ...]) -> bool:
    return isinstance(history[-1], UserTurn) and INSTRUCTIONS in plain_text(history[-1].content)


class Summing(Faulty):
    """Calls for so many messages, then ends; asked for a summary, it gives the next one of these."""

    def __init__(self, calls: int, *summaries: Any) -> None:
        super().__init__(facts=SMALL)
        self._working = iter([*working(calls), *[says("the end")] * 9])
        self._summaries = iter(summaries)

    def stream(self, request: Request, /) -> Any:
        source = self._summaries if is_asking_for_a_summary(tuple(request.history)) else self._working
        self._messages = (*self._messages, next(source))
        return super().stream(request)


def a_stage(**parts: Any) -> Stage:
    at = stage(Act(body=prints_much))
    for name, value in parts.items():
        setattr(at.session.compaction, name, value)
    return at


@requirement("LOOP-2")
async def test_near_the_end_of_the_window_older_turns_give_way_to_a_summary() -> None:
    at = a_stage()
    model = Summing(34, sums("What was done."), sums("What was done then."))

    events = await ask(at, "go", model)

    compacted = [event for event in events if isinstance(event, Compacted)]
    assert [event.how for event in compacted] == ["summary"] * len(compacted)
    assert len(compacted) == 2
    assert all(event.before > LIMIT > event.after for event in compacted)
    assert events[-1] == TurnEnded("end")
    first = at.session.history[0]
    assert isinstance(first, UserTurn)
    assert "What was done then." in plain_text(first.content)
    assert well_formed(at.session.history)
    sizes = [estimate(history) for _, history in model.requests]
    assert max(sizes) < SMALL.window


async def test_the_last_turns_stay_whole_and_the_prefix_is_said_to_have_moved() -> None:
    at = a_stage()
    model = Summing(17, sums("Summary."))

    events = await ask(at, "go", model)

    asked = next(i for i, (_, history) in enumerate(model.requests) if is_asking_for_a_summary(history))
    before, after = model.requests[asked][1][:-1], model.requests[asked + 1][1]
    assert len(after) >= 2
    assert after[1:] == before[-len(after) + 1 :]
    assert model.requests[asked - 1][1] == before[: len(model.requests[asked - 1][1])], "what was cached is of use"
    assert model.requests[asked][0].tools == model.requests[asked - 1][0].tools
    assert PrefixMoved("compaction") in events


async def test_what_providers_report_counts_for_more_than_an_estimate() -> None:
    at = a_stage()
    model = Faulty(
        [*says("", call())[:-1], Usage(LIMIT - 100, 0, 50, 60), says("", call())[-1]],
        sums("A summary."),
        says("the end"),
        facts=SMALL,
    )
    at.session.conversation = MessageHistory([UserTurn.saying("old " * 2_000), AssistantTurn((Text("yes"),))])

    events = await ask(at, "go", model)

    (compacted,) = [event for event in events if isinstance(event, Compacted)]
    assert compacted.before > LIMIT
    assert is_asking_for_a_summary(model.requests[1][1])


@requirement("LOOP-2")
@pytest.mark.parametrize("failure", [[ModelError("no", "overload")], says(""), [ModelError("cut", "cut")]])
async def test_where_no_summary_is_to_be_had_older_results_give_way_to_a_mark(failure: Any) -> None:
    at = a_stage()
    model = Summing(17, failure, failure)

    events = await ask(at, "go", model)

    (compacted,) = [event for event in events if isinstance(event, Compacted)]
    assert compacted.how == "results_dropped"
    results = [one for turn in at.session.history if isinstance(turn, ResultTurn) for one in turn.results]
    assert results[0] == result("c0", LEFT_OUT)
    assert results[-1] == result("c16", LONG)
    assert at.session.history[0] == UserTurn.saying("go")
    assert events[-1] == TurnEnded("end")
    assert well_formed(at.session.history)


@requirement("LOOP-2")
async def test_a_conversation_that_the_service_finds_too_long_is_compacted_once_and_asked_again() -> None:
    at = a_stage()
    overflow = [ModelError("Too long.", "overflow")]
    at.session.conversation = MessageHistory([UserTurn.saying("old " * 2_000), AssistantTurn((Text("yes"),))])
    model = Faulty(overflow, sums("A summary."), says("the end"), facts=SMALL)

    events = await ask(at, "go", model)

    assert events[-1] == TurnEnded("end")
    assert len([event for event in events if isinstance(event, Compacted)]) == 1
    assert len(model.requests) == 3


async def test_a_conversation_that_stays_too_long_ends_the_turn_and_not_in_a_circle() -> None:
    at = a_stage()
    overflow = [ModelError("Too long.", "overflow")]
    at.session.conversation = MessageHistory([UserTurn.saying("old " * 2_000), AssistantTurn((Text("yes"),))])
    model = Faulty(overflow, sums("A summary."), *[overflow] * 20, facts=SMALL)

    events = await ask(at, "go", model)

    assert events[-1] == TurnEnded("error", "Too long.")
    assert len(model.requests) <= OVERFLOWS + 2
    assert well_formed(at.session.history)


async def test_one_result_beyond_the_window_is_left_out_as_well() -> None:
    async def prints_too_much(input: Given, ctx: ToolContext) -> str:
        return "word " * 10_000

    at = stage(Act(body=prints_too_much))
    model = Faulty(says("", call()), sums("A summary."), says("the end"), facts=SMALL)

    events = await ask(at, "go", model)

    assert events[-1] == TurnEnded("end")
    assert estimate(at.session.history) < LIMIT


async def test_a_fixed_part_that_alone_fills_the_window_is_no_reason_to_compact_for_ever() -> None:
    at = a_stage()
    at.session.system = "rules " * 5_000
    model = Summing(12, *[sums("Summary.")] * 20)

    await ask(at, "go", model)

    summaries = [history for _, history in model.requests if is_asking_for_a_summary(history)]
    assert len(summaries) <= 6
    assert len(model.requests) == 13 + len(summaries)


# What must not be lost


async def test_todo_list_plan_and_running_commands_stand_behind_the_summary() -> None:
    class Running:
        def lasting(self, agent: str, /) -> tuple[Note, ...]:
            return (Note("running_tasks", f"{agent} runs make"),)

    at = a_stage()
    at.session.state.values.update(todos=({"content": "Fix it", "status": "pending"},), plan="1. Look", other="private")
    notes = StateNotes(
        {"main": at.session.state}, {"todos": "todo_list", "plan": "approved_plan", "missing": "nothing"}
    )
    at.session.compaction.lasting = (notes, Running())

    await ask(at, "go", Summing(17, sums("Summary.")))

    first = at.session.history[0]
    assert isinstance(first, UserTurn)
    text = plain_text(first.content)
    assert '<todo_list>\n[{"content": "Fix it", "status": "pending"}]\n</todo_list>' in text
    assert "<approved_plan>\n1. Look\n</approved_plan>" in text
    assert "<running_tasks>\nmain runs make\n</running_tasks>" in text
    assert "private" not in text


async def test_who_asked_is_told_which_results_can_still_be_read() -> None:
    told: list[tuple[str, frozenset[str]]] = []
    at = a_stage()

    def remember(agent: str, call_ids: frozenset[str]) -> None:
        told.append((agent, call_ids))

    at.session.compaction.only_these_stand = (remember,)

    await ask(at, "go", Summing(17, sums("Summary.")))

    ((agent, ids),) = told
    assert agent == "main"
    assert "c0" not in ids
    assert ids
    assert ids <= {one.call_id for turn in at.session.history if isinstance(turn, ResultTurn) for one in turn.results}


async def test_somebody_may_keep_it_from_happening() -> None:
    asked: list[Trigger] = []

    async def not_now(trigger: Trigger, words: str) -> TurnWords:
        asked.append(trigger)
        return TurnWords(blocks="a hook says no")

    at = a_stage(before=not_now)
    model = Summing(15)

    events = await ask(at, "go", model)

    assert asked == ["auto"]
    assert not [event for event in events if isinstance(event, Compacted)]
    assert not await at.session.compact(model)
    assert asked == ["auto", "manual"]


async def test_a_person_may_ask_for_it_with_words_of_their_own() -> None:
    at = a_stage()
    model = Summing(10, sums("Summary."))
    await ask(at, "go", model)

    assert await at.session.compact(model, "Keep the names.")

    assert "The user's instructions for this text: Keep the names." in plain_text(model.requests[-1][1][-1].content)  # type: ignore[union-attr]
    assert at.session.spending.usage == Usage()
    assert not await at.session.compact(model), "little is left to gain"


@requirement("LOOP-2")
async def test_the_record_gives_the_compacted_conversation() -> None:
    for summaries in ([sums("Summary."), sums("Another.")], [says(""), says("")]):
        at, store = a_stage(), InMemory()
        at.session.conversation = MessageHistory((), Transcript(store, "s"))

        await ask(at, "go", Summing(25, *summaries))
        await ask(at, "more", Summing(2))

        assert "compaction" in store.kinds()
        assert restore_conversation(store.lines).turns == at.session.history


# The pieces

turns = st.lists(
    st.one_of(
        st.just([UserTurn.saying("x" * 300)]),
        st.just([UserTurn((Text("see"), Image("image/png", "aGk=")))]),
        st.just([AssistantTurn((Text("y" * 90),))]),
        st.just([AssistantTurn((call(),)), ResultTurn((result("1", "z" * 900),))]),
    ),
    min_size=1,
    max_size=12,
).map(lambda groups: [UserTurn.saying("go"), *(turn for group in groups for turn in group)])


@given(turns, st.integers(0, 3_000))
def test_wherever_it_is_cut_the_rest_is_well_formed_and_no_longer_than_before(history: list[Turn], tokens: int) -> None:
    first = first_kept_turn(history, tokens)
    kept = len(history) - first

    summed = shorter(history, Form(kept=kept, whole=kept), summary="s")
    form = Form(kept=len(history), whole=kept)
    marked = shorter(history, form)

    assert 0 <= first < len(history)
    assert well_formed(summed)
    assert well_formed(marked)
    assert summed[1:] == tuple(history[first:]) == marked[first:]
    assert estimate(marked) <= estimate(history)
    assert shorter(marked, form) == marked
    assert standing(summed) <= standing(history)


@given(turns, st.integers(1, 40))
def test_a_meter_that_goes_along_counts_what_one_look_would(history: list[Turn], step: int) -> None:
    meter = Meter()
    for end in range(step, len(history) + step, step):
        measured = meter.measure(Request(history[:end], ()))

    assert abs(measured - estimate(history)) <= len(history)  # type: ignore[possibly-undefined]
