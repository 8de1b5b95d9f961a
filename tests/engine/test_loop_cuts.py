"""What a stream that ends too early leaves in the conversation, and when the model is asked again."""

from __future__ import annotations

import pytest

from ferrule.core.calls import ToolCall
from ferrule.core.content import Text
from ferrule.core.context import ToolContext
from ferrule.core.effects import Effects, WritesPath
from ferrule.core.events import MessageEnded, NoteAdded, Retried, TurnEnded
from ferrule.core.model import (
    AssistantTurn,
    CallDelta,
    CallReady,
    FailureKind,
    ModelError,
    ResultTurn,
    Retrying,
    Stopped,
    TextDelta,
    Thought,
    ThoughtReady,
    UserTurn,
)
from ferrule.engine.message_history import last_answer
from ferrule.providers.scripted import says
from ferrule.testing import well_formed
from tests.requirement import requirement

from .conversing import Faulty, Stream, ask, result
from .stage import Act, Given, call, echo, stage

CUT = ModelError("The stream ended too early.", "cut")


@requirement("SCHED-4", "PIPE-4")
async def test_a_cut_stream_keeps_complete_calls_with_their_results_and_the_turn_goes_on() -> None:
    ran: list[str] = []

    async def body(input: Given, ctx: ToolContext) -> str:
        ran.append(ctx.call_id)
        return "found"

    at = stage(
        Act("Look", body, effects=Effects.reading("/a")), Act("Write", body, effects=Effects.of(WritesPath("/b")))
    )
    cut = [TextDelta("Looking"), CallReady(call("Look", "1")), CallReady(call("Write", "2")), TextDelta("and"), CUT]
    model = Faulty(cut, says("Done."))

    events = await ask(at, "go", model)

    kept = AssistantTurn((Text("Looking"), call("Look", "1"), call("Write", "2")))
    assert at.session.history[1:] == [
        kept,
        ResultTurn((result("1", "found"), result("2", "found"))),
        AssistantTurn((Text("Done."),)),
    ]
    assert ran == ["1", "2"]
    assert len(model.requests) == 2
    assert next(event.turn for event in events if isinstance(event, MessageEnded)) == kept
    assert events[-1] == TurnEnded("end")


@requirement("SCHED-4")
@pytest.mark.parametrize(
    "nothing_whole",
    [
        [CUT],
        [TextDelta("half a sen"), CUT],
        [ThoughtReady(Thought("hm", "s")), CUT],
        [TextDelta("text"), CallDelta("1", "Act"), CallDelta("1", "Act", '{"te'), CUT],
    ],
)
async def test_with_nothing_whole_the_same_is_asked_again(nothing_whole: list[object]) -> None:
    at = stage(Act())
    model = Faulty(nothing_whole, says("All of it."))  # type: ignore[arg-type]

    events = await ask(at, "go", model)

    assert at.session.history == [UserTurn.saying("go"), AssistantTurn((Text("All of it."),))]
    assert model.requests[0][1] == model.requests[1][1]
    assert Retried(Retrying(2, 3, 0.0, str(CUT))) in events
    assert [event.turn is None for event in events if isinstance(event, MessageEnded)] == [True, False]


async def test_after_three_tries_the_turn_ends_and_the_prompt_is_all_there_is() -> None:
    at = stage(Act())
    model = Faulty([TextDelta("a"), CUT], [CUT], [TextDelta("b"), CUT])

    events = await ask(at, "go", model)

    assert events[-1] == TurnEnded("error", str(CUT))
    assert at.session.history == [UserTurn.saying("go")]


@requirement("SCHED-4")
@pytest.mark.parametrize("kind", ["key", "request", "limit", "overload", "network"])
async def test_other_failures_end_the_turn_and_keep_what_was_complete(kind: FailureKind) -> None:
    at = stage(Act(body=echo))
    model = Faulty([CallReady(call("Act", "1", text="x")), ModelError("No.", kind)])

    events = await ask(at, "go", model)

    assert events[-1] == TurnEnded("error", "No.")
    assert at.session.history[1:] == [AssistantTurn((call("Act", "1", text="x"),)), ResultTurn((result("1", "x"),))]
    assert len(model.requests) == 1


@requirement("SCHED-4")
async def test_a_model_that_fails_at_once_leaves_the_prompt_and_nothing_else() -> None:
    at = stage(Act())
    model = Stream(ending=ModelError("Overloaded.", "overload"))

    events = await ask(at, "go", model)

    assert at.session.history == [UserTurn.saying("go")]
    assert events[-1] == TurnEnded("error", "Overloaded.")
    assert model.closed


@requirement("SCHED-4")
@pytest.mark.parametrize("kind", ["limit", "overload", "network"])
async def test_a_thought_at_the_end_of_a_message_that_broke_off_does_not_stay(kind: FailureKind) -> None:
    at = stage(Act(body=echo))
    act, broken = CallReady(call("Act", "1", text="x")), ModelError("No.", kind)
    thoughts = [ThoughtReady(Thought(text, "signed")) for text in ("first", "then", "last")]
    model = Faulty([thoughts[0], act, thoughts[1], thoughts[2], broken], [thoughts[0], broken])

    events = await ask(at, "go", model)
    kept = AssistantTurn((Thought("first", "signed"), call("Act", "1", text="x")))
    assert next(event.turn for event in events if isinstance(event, MessageEnded)) == kept
    assert at.session.history[1:] == [kept, ResultTurn((result("1", "x"),))]

    await ask(at, "go on", model)
    assert isinstance(at.session.history[-1], UserTurn), "nothing is left of a message that was only a thought"
    assert well_formed(at.session.history)


# Half a call


async def test_half_a_call_at_the_limit_of_length_leaves_nothing_and_the_model_is_told() -> None:
    at = stage(Act(body=echo))
    half = [TextDelta("Writing it."), CallDelta("1", "Act", '{"text": "lo'), Stopped("max_tokens")]
    model = Faulty(half, says("", call("Act", "2", text="short")), says("Done."))

    events = await ask(at, "go", model)

    written, told, again, *_ = at.session.history[1:]
    assert written == AssistantTurn((Text("Writing it."),))
    assert isinstance(told, UserTurn)
    assert "in the middle of a call of Act" in str(told)
    assert again == AssistantTurn((call("Act", "2", text="short"),))
    assert events[-1] == TurnEnded("end")


async def test_a_half_call_that_a_provider_hands_over_as_malformed_is_no_call_either() -> None:
    at = stage(Act(body=echo))
    half = ToolCall("2", "Act", {}, malformed='{"text": "lo')
    first = [CallReady(call("Act", "1", text="x")), CallReady(half), Stopped("max_tokens")]

    events = await ask(at, "go", Faulty(first, says("Done.")))

    assert at.session.history[1:3] == [AssistantTurn((call("Act", "1", text="x"),)), ResultTurn((result("1", "x"),))]
    assert well_formed(at.session.history)
    assert events[-1] == TurnEnded("end")


async def test_half_calls_again_and_again_end_the_turn() -> None:
    half = [CallDelta("1", "Act", '{"text": "lo'), Stopped("max_tokens")]
    at = stage(Act())

    events = await ask(at, "go", Faulty(half, half, half))

    assert events[-1] == TurnEnded("max_tokens")
    assert well_formed(at.session.history)


CUT_OFF = Stopped("max_tokens")


@requirement("SCHED-4")
async def test_an_answer_that_the_length_limit_cut_off_is_continued_and_read_as_one() -> None:
    at = stage(Act())
    model = Faulty([TextDelta("It is in a"), CUT_OFF], [TextDelta(".py, li"), CUT_OFF], says("ne 3."))

    events = await ask(at, "go", model)

    assert events[-1] == TurnEnded("end")
    assert last_answer(at.session.history) == "It is in a.py, line 3."
    assert [event.kind for event in events if isinstance(event, NoteAdded)] == ["unfinished_answer"] * 2
    assert well_formed(at.session.history)


async def test_an_answer_without_end_is_continued_three_times_and_no_more() -> None:
    at = stage(Act())
    model = Faulty(*([TextDelta(f"{number} "), CUT_OFF] for number in range(4)))

    events = await ask(at, "go", model)

    assert events[-1] == TurnEnded("max_tokens")
    assert last_answer(at.session.history) == "0 1 2 3 "


async def test_reasoning_that_uses_up_the_length_limit_is_not_asked_for_again() -> None:
    at = stage(Act())

    events = await ask(at, "go", Faulty([ThoughtReady(Thought("hm", "s")), CUT_OFF]))

    assert events[-1] == TurnEnded("max_tokens")
