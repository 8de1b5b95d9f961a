"""The conversation: what a turn leaves in the history, however it ends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot

from ferrule.core.calls import Status, ToolCall
from ferrule.core.content import Text
from ferrule.core.context import ToolContext
from ferrule.core.effects import Effects, WritesPath
from ferrule.core.events import Event, TextStreamed, ToolFinished, TurnEnded, TurnStarted, UsageReported
from ferrule.core.model import (
    AssistantTurn,
    CallReady,
    ModelError,
    ModelEvent,
    ModelFacts,
    Request,
    ResultTurn,
    Stopped,
    TextDelta,
    Thought,
    ThoughtReady,
    Usage,
    UserTurn,
)
from ferrule.core.tool import Exposure, Result, ToolSpec
from ferrule.providers.scripted import says
from ferrule.testing import RecordingModel, well_formed
from ferrule.tools.tool_search import ToolSearch
from tests.drawing import examples
from tests.requirement import requirement

from .conversing import Stream, ask, result
from .stage import Act, Given, call, echo, run_virtually, stage, steps

# A turn


@requirement("PIPE-4", "PIPE-1", "LOOP-1")
async def test_a_turn_runs_from_the_prompt_over_the_tool_result_to_the_answer() -> None:
    at = stage(Act(body=echo))
    asked = call("Act", "c1", text="hi")
    model = RecordingModel(says("Let me look.", asked), says("It says hi."))

    events = await ask(at, "What does it say?", model)

    assert at.session.history == [
        UserTurn.saying("What does it say?"),
        AssistantTurn((Text("Let me look."), asked)),
        ResultTurn((result("c1", "hi"),)),
        AssistantTurn((Text("It says hi."),)),
    ]
    assert [history for _, history in model.requests] == [
        tuple(at.session.history[:1]),
        tuple(at.session.history[:3]),
    ]
    assert (events[0], events[-1]) == (TurnStarted("What does it say?"), TurnEnded("end"))


@requirement("PIPE-4", "SCHED-1")
async def test_several_messages_with_several_calls_keep_every_result_in_its_place() -> None:
    at = stage(Act(body=echo))
    first = [call("Act", f"a{index}", text=f"first {index}") for index in range(3)]
    second = [call("Nope", "b0"), call("Act", "b1", text="second")]

    await ask(at, "go", RecordingModel(says("", *first), says("On.", *second), says("Done.")))

    assert well_formed(at.session.history)
    results = [turn for turn in at.session.history if isinstance(turn, ResultTurn)]
    assert [[each.call_id for each in turn.results] for turn in results] == [["a0", "a1", "a2"], ["b0", "b1"]]
    assert [each.is_error for each in results[1].results] == [True, False]


async def test_thoughts_and_text_keep_their_places_between_the_calls() -> None:
    at = stage(Act(body=echo))
    thought, asked = Thought("hm", "signature"), call("Act", "1", text="x")
    message = [ThoughtReady(thought), *[TextDelta(word) for word in ("a ", "b")], CallReady(asked), TextDelta("c")]

    events = await ask(at, "go", RecordingModel([*message, Usage(3, 4), Stopped("tool_use")], says("end")))

    assert at.session.history[1] == AssistantTurn((thought, Text("a b"), asked, Text("c")))
    assert UsageReported(Usage(3, 4)) in events
    assert [event.text for event in events if isinstance(event, TextStreamed)] == ["a ", "b", "c", "end"]


@pytest.mark.parametrize("reason", ["end", "refusal"])
async def test_a_turn_ends_for_the_reason_the_model_gives(reason: Any) -> None:
    events = await ask(stage(Act()), "go", RecordingModel([TextDelta("t"), Stopped(reason)]))

    assert events[-1] == TurnEnded(reason)


async def test_a_message_that_stops_for_tools_without_a_call_ends_the_turn() -> None:
    events = await ask(stage(Act()), "go", RecordingModel([Stopped("tool_use")]))

    assert events[-1] == TurnEnded("end")


async def test_turns_are_counted_and_follow_one_another() -> None:
    known: list[tuple[int, int]] = []

    async def body(input: Given, ctx: ToolContext) -> None:
        known.append((ctx.facts.turn, len(ctx.facts.conversation)))

    at = stage(Act(body=body))
    for prompt in ("one", "two"):
        await ask(at, prompt, RecordingModel(says("", call()), says("ok")))

    assert known == [(1, 1), (2, 5)]
    assert well_formed(at.session.history)


@requirement("LOOP-5", "CON-10")
async def test_messages_that_results_add_stand_after_all_results() -> None:
    async def body(input: Given, ctx: ToolContext) -> Result[str]:
        return Result("r", messages=(f"note of {ctx.call_id}",))

    at = stage(Act("Note", body), Act(body=echo))

    await ask(at, "go", RecordingModel(says("", call("Note", "1"), call("Act", "2"), call("Note", "3")), says("ok")))

    turn = at.session.history[2]
    assert isinstance(turn, ResultTurn)
    assert [each.call_id for each in turn.results] == ["1", "2", "3"]
    assert turn.messages == ("note of 1", "note of 3")


# When the provider is broken


@requirement("PIPE-2")
async def test_a_provider_that_raises_what_it_should_not_ends_the_turn_and_not_the_session(
    caplog: pytest.LogCaptureFixture,
) -> None:
    at = stage(Act(body=echo))
    broken = Stream(CallReady(call("Act", "1", text="x")), ending=ZeroDivisionError("oops"))

    events = await ask(at, "go", broken)
    again = await ask(at, "again", RecordingModel(says("fine")))

    assert events[-1] == TurnEnded("error", "ZeroDivisionError: oops")
    assert "the turn failed" in caplog.text
    assert well_formed(at.session.history)
    assert again[-1] == TurnEnded("end")


# Interrupts


@requirement("PIPE-5", "PIPE-4")
async def test_leaving_the_block_interrupts_a_model_that_never_ends() -> None:
    at = stage(Act(body=echo, effects=Effects.reading("/a")))
    model = Stream(TextDelta("thinking"), CallReady(call("Act", "1", text="x")), ending=asyncio.Event())

    seen: list[Event] = []
    async with asyncio.timeout(5):
        with at.session.bus.subscribe() as watching:
            async with at.session.ask("go", model) as events:
                async for envelope in events:
                    if isinstance(envelope.event, ToolFinished):
                        break
            at.session.bus.close()
            seen = [envelope.event async for envelope in watching]

    assert seen[-1] == TurnEnded("interrupted")
    assert model.closed
    assert at.session.history[1:] == [
        AssistantTurn((Text("thinking"), call("Act", "1", text="x"))),
        ResultTurn((result("1", "x"),)),
    ]


@requirement("PIPE-5")
async def test_leaving_the_block_interrupts_a_model_that_calls_for_ever() -> None:
    class Endless:
        name = "of a test"
        facts = ModelFacts()
        asked = 0

        @asynccontextmanager
        async def stream(self, request: Request, /) -> AsyncGenerator[AsyncIterator[ModelEvent]]:
            self.asked += 1
            async with Stream(*says("", call("Act", str(self.asked)))).stream(request) as events:
                yield events

    at, model = stage(Act()), Endless()

    async with asyncio.timeout(5), at.session.ask("go", model) as events:
        async for _ in events:
            if model.asked > 5:
                break

    assert well_formed(at.session.history)
    assert at.seen.events[-1] == TurnEnded("interrupted")


@requirement("PIPE-5", "PIPE-4")
async def test_an_interrupted_call_says_so_to_the_model_and_the_conversation_goes_on() -> None:
    begun = asyncio.Event()

    async def body(input: Given, ctx: ToolContext) -> None:
        begun.set()
        await asyncio.Event().wait()

    at = stage(Act(body=body))
    async with asyncio.timeout(5), at.session.ask("go", RecordingModel(says("", call()))):
        await begun.wait()
    following = RecordingModel(says("I see."))
    await ask(at, "stop that", following)

    _, history = following.requests[0]
    assert history[2] == ResultTurn(
        (
            result(
                "1",
                snapshot("The call was interrupted while it ran. Changes it had already made may remain."),
                is_error=True,
            ),
        )
    )
    assert history[3] == UserTurn.saying("stop that")


async def dawdles(input: Given, ctx: ToolContext) -> Result[str]:
    await steps(3)
    return Result("dawdled", messages=("a message",))


@requirement("PIPE-4", "PIPE-5", "LOOP-2")
@given(
    st.lists(st.lists(st.sampled_from(["Look", "Write", "Any", "Nope"]), max_size=3), min_size=1, max_size=3),
    st.integers(0, 80),
    st.sampled_from([None, ModelError("broke"), RuntimeError("bug")]),
)
@examples(80)
def test_interrupted_at_any_step_the_history_is_well_formed_and_the_next_turn_works(
    messages: list[list[str]], turns: int, ending: Exception | None
) -> None:
    at = stage(
        Act("Look", dawdles, effects=Effects.reading("/a")),
        Act("Write", dawdles, effects=Effects.of(WritesPath("/a"))),
        Act("Any", dawdles, effects=Effects()),
    )

    class Model:
        name = "of a test"
        facts = ModelFacts()
        sent = 0

        @asynccontextmanager
        async def stream(self, request: Request, /) -> AsyncGenerator[AsyncIterator[ModelEvent]]:
            names: Sequence[str] = messages[self.sent] if self.sent < len(messages) else ()
            calls = [ToolCall(f"{self.sent}.{index}", name, {}) for index, name in enumerate(names)]
            self.sent += 1
            stream = Stream(*says("some words", *calls)[: None if ending is None else -1], ending=ending)
            async with stream.stream(request) as events:
                yield events

    async def interrupted() -> list[Event]:
        async with at.session.ask("go", Model()):
            await steps(turns)
        assert well_formed(at.session.history)
        return await ask(at, "next", RecordingModel(says("", call("Any")), says("ok")))

    events, _ = run_virtually(interrupted())

    assert well_formed(at.session.history)
    assert events[-1] == TurnEnded("end")
    started, ended = at.seen.of(TurnStarted), at.seen.of(TurnEnded)
    assert len(started) == len(ended)


# Tools that are found


@requirement("POOL-4")
async def test_found_tools_are_appended_to_the_next_request_and_nothing_before_them_moves() -> None:
    class Hidden(Act):
        exposure = Exposure.DEFERRED
        hint = "three hidden words"

    at = stage(Act(), ToolSearch(), Hidden("Alpha"), Hidden("Zeta", echo))
    model = RecordingModel(
        says("", call("ToolSearch", "1", query="select:Zeta")),
        says("", call("Zeta", "2", text="found"), call("ToolSearch", "3", query="select:Alpha,Zeta")),
        says("done"),
    )

    await ask(at, "go", model)

    offered = [[wire(spec) for spec in request.tools] for request, _ in model.requests]
    assert [spec.name for spec in model.requests[2][0].tools] == ["Act", "ToolSearch", "Zeta", "Alpha"]
    assert [len(each) for each in offered] == [2, 3, 4]
    assert offered[1][:2] == offered[0]
    assert offered[2][:3] == offered[1]
    assert {request.cache_after for request, _ in model.requests} == {2}
    turn = at.session.history[4]
    assert isinstance(turn, ResultTurn)
    assert turn.results[0] == result("2", "found")


def wire(spec: ToolSpec) -> bytes:
    return f"{spec.name}\0{spec.description}\0{spec.schema_json()}".encode()


async def test_a_prompt_given_up_before_it_began_leaves_nothing() -> None:
    at = stage(Act())

    async with at.session.ask("go", RecordingModel(says("never"))):
        pass

    assert at.session.history == []
    assert at.seen.events == []


@requirement("PIPE-4")
async def test_what_the_session_ran_by_itself_has_the_same_outcomes() -> None:
    outcomes = await stage(Act(body=echo)).session.run([call("Act", "1", text="a"), call("Act", "2", text="b")])

    assert [(outcome.status, outcome.output) for outcome in outcomes] == [(Status.OK, "a"), (Status.OK, "b")]


async def test_a_second_prompt_while_one_is_answered_is_refused() -> None:
    at = stage(Act())

    async with asyncio.timeout(5), at.session.ask("one", RecordingModel(says("first"))) as events:
        with pytest.raises(RuntimeError, match="already answering"):
            async with at.session.ask("two", RecordingModel(says("second"))):
                pass
        async for _ in events:
            pass
    async with asyncio.timeout(5), at.session.ask("three", RecordingModel(says("third"))) as events:
        async for _ in events:
            pass

    prompts = [turn for turn in at.session.history if isinstance(turn, UserTurn)]
    assert prompts == [UserTurn.saying("one"), UserTurn.saying("three")]


@requirement("CON-17")
async def test_a_call_knows_which_model_made_it() -> None:
    seen: list[str] = []

    async def look(input: Given, ctx: ToolContext) -> str:
        seen.append(ctx.facts.model)
        return "seen"

    at = stage(Act(body=look))
    async with at.session.ask("go", RecordingModel(says("", call()), says("done"))) as events:
        async for _ in events:
            pass

    assert seen == ["scripted"]
