"""What a conversation is fit for after it was shortened, or cut at a bad moment."""

from __future__ import annotations

from ferrule.core.content import Text, plain_text
from ferrule.core.model import AssistantTurn, ModelError, ModelFacts, ResultTurn, Thought, ThoughtReady, UserTurn
from ferrule.engine.message_history import GO_ON, MessageHistory
from ferrule.engine.restoring import restore_conversation
from ferrule.engine.shortening import Form, shorter
from ferrule.engine.transcript import Transcript
from ferrule.providers.scripted import says, words
from ferrule.testing import well_formed
from tests.requirement import requirement

from .conversing import Faulty, InMemory, ask, sums
from .stage import Act, call, stage


def thinking(text: str, id: str) -> list[object]:
    return [ThoughtReady(Thought(text, f"signed {text}")), *says("", call("Act", id))]


@requirement("LOOP-2")
async def test_reasoning_does_not_outlive_what_it_was_thought_behind() -> None:
    store = InMemory()
    at = stage(Act())
    at.session.conversation = MessageHistory(transcript=Transcript(store, "s"))
    at.session.compaction.is_automatic = False
    model = Faulty(
        thinking("first", "1"),
        thinking("second", "2"),
        says("Done."),
        sums("Much."),
        facts=ModelFacts(window=2_000, most_output=200),
    )
    await ask(at, "long " * 600, model)

    assert await at.session.compact(model)

    kept = [turn for turn in at.session.history if isinstance(turn, AssistantTurn)]
    assert [turn.calls[0].id for turn in kept if turn.calls] == ["1", "2"]
    assert not [part for turn in kept for part in turn.parts if isinstance(part, Thought)]
    assert well_formed(at.session.history)
    assert restore_conversation(store.lines).turns == at.session.history


def test_a_message_that_was_nothing_but_reasoning_is_gone() -> None:
    turns = (UserTurn.saying("hi"), AssistantTurn((Thought("hm"),)), UserTurn.saying("well?"))

    assert shorter(turns, Form(kept=3, whole=3)) == (turns[0], turns[2])


@requirement("LOOP-1")
async def test_a_model_is_not_asked_with_its_own_words_last() -> None:
    store = InMemory()
    at = stage(Act())
    at.session.conversation = MessageHistory(transcript=Transcript(store, "s"))
    too_long = ModelError("The conversation is too long.", "overflow")
    model = Faulty(
        says("Fine."),
        [*words("I was about to"), too_long],
        sums("Much."),
        says("say it."),
        facts=ModelFacts(window=4_000, most_output=200),
    )
    await ask(at, "long " * 600, model)

    await ask(at, "more", model)

    last = model.requests[-1][1]
    assert isinstance(last[-1], UserTurn)
    assert plain_text(last[-1].content) == GO_ON
    assert last[-2] == AssistantTurn((Text("I was about to"),))
    assert not [turn for turn in last if isinstance(turn, ResultTurn)]
    assert restore_conversation(store.lines).turns == at.session.history
