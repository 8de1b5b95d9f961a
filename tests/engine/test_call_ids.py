"""Each call has an id of its own, whatever ids the model gives."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ferrule.core.call_ids import CallIds, narrow_id
from ferrule.core.calls import ToolCall
from ferrule.core.content import plain_text
from ferrule.core.events import CallDrafted
from ferrule.core.model import (
    AssistantTurn,
    CallDelta,
    CallReady,
    ModelEvent,
    ResultTurn,
    Stopped,
    Turn,
    Usage,
    UserTurn,
)
from ferrule.engine.restoring import restore_conversation
from ferrule.engine.transcript import Transcript
from ferrule.providers.scripted import says
from ferrule.testing import RecordingModel, well_formed
from tests.requirement import requirement

from .conversing import InMemory, ask, result
from .stage import Act, call, echo, stage

IDS = st.sampled_from(["", "t1", "t2", "a.b", "a b", "a_b", "_", "\ud800"])


def told_apart(turns: Sequence[Turn]) -> bool:
    ids = [narrow_id(call.id) for turn in turns if isinstance(turn, AssistantTurn) for call in turn.calls]
    return len(ids) == len(set(ids))


@requirement("PIPE-4")
@given(st.lists(st.lists(IDS, min_size=1, max_size=4), max_size=4))
@settings(max_examples=40, deadline=None)
def test_calls_that_came_with_one_id_have_one_each_and_their_own_results(messages: list[list[str]]) -> None:
    at, numbers = stage(Act(body=echo)), count()
    script = [says("", *(call("Act", id, text=f"text {next(numbers)}") for id in ids)) for ids in messages]

    asyncio.run(ask(at, "go", RecordingModel(*script, says("done"))))

    history = at.session.history
    assert told_apart(history)
    assert well_formed(history)
    results = [plain_text(one.content) for turn in history if isinstance(turn, ResultTurn) for one in turn.results]
    assert results == [f"text {number}" for number in range(next(numbers))]


async def test_what_is_shown_of_a_call_as_it_is_written_has_the_id_that_it_gets() -> None:
    at = stage(Act(body=echo))
    twice: list[ModelEvent] = []
    for text in ("one", "two"):
        drafted = [CallDelta("t1", "Act"), CallDelta("t1", "Act", f'{{"text": "{text}"}}')]
        twice += [*drafted, CallReady(call("Act", "t1", text=text))]

    events = await ask(at, "go", RecordingModel([*twice, Stopped("tool_use")], says("done")))

    (message,) = [turn for turn in at.session.history if isinstance(turn, AssistantTurn) and turn.calls]
    drafted = [event.call_id for event in events if isinstance(event, CallDrafted)]
    assert drafted == [id for one in message.calls for id in (one.id, one.id)]
    assert message.calls[0].id == "t1"
    assert message.calls[1].id != "t1"


@requirement("LOOP-2")
@pytest.mark.parametrize("ids", [("t1", "t1"), ("", ""), ("a.b", "a b")], ids=str)
async def test_an_old_record_with_one_id_twice_can_be_gone_on_with(ids: tuple[str, str]) -> None:
    store = InMemory()
    transcript = Transcript(store, "s")
    for text in ("first", "again"):  # the same ids in two messages as well
        transcript.user(UserTurn.saying(text))
        turn = AssistantTurn(tuple(ToolCall(id, "Act", {"text": text}) for id in ids))
        transcript.assistant(turn, model="m", stopped="tool_use", usage=Usage())
        transcript.results(ResultTurn(tuple(result(id, f"{text} {at}") for at, id in enumerate(ids)), ("a note",)))

    turns = restore_conversation(store.lines).turns

    assert told_apart(turns)
    assert well_formed(turns)
    answers = [turn for turn in turns if isinstance(turn, ResultTurn)]
    told = [plain_text(one.content) for turn in answers for one in turn.results]
    assert told == ["first 0", "first 1", "again 0", "again 1"]
    assert [turn.messages for turn in answers] == [("a note",)] * 2


def test_an_id_that_nobody_has_stays_as_it_is() -> None:
    ids = CallIds([AssistantTurn((ToolCall("a.b", "Act", {}),))])

    assert ids.claim("toolu_1") == "toolu_1"
    assert ids.claim("toolu_1") != "toolu_1"
    assert ids.claim("a b") != "a b"
    assert ids.claim("")
