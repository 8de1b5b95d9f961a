"""What a compaction must not lose, and that nothing which is too long makes a conversation unusable."""

from __future__ import annotations

from typing import Any

import pytest

from ferrule.core.calls import ServiceFields
from ferrule.core.content import Image, Text, plain_text
from ferrule.core.context import ToolContext
from ferrule.core.events import Compacted, TurnEnded
from ferrule.core.model import (
    AssistantTurn,
    ModelError,
    ModelEvent,
    ModelFacts,
    Request,
    ResultTurn,
    Stopped,
    TextDelta,
    Thought,
    Turn,
    Usage,
    UserTurn,
)
from ferrule.core.ports import TurnWords
from ferrule.engine.compaction import Trigger
from ferrule.engine.message_history import MessageHistory
from ferrule.engine.restoring import restore_conversation
from ferrule.engine.shortening import LEFT_OUT, SHORT, Form, cut_text, shorter, standing
from ferrule.engine.summaries import INSTRUCTIONS, join_summary, latest_prompts
from ferrule.engine.transcript import Transcript
from ferrule.engine.window import estimate, estimate_around
from ferrule.providers.scripted import says
from ferrule.testing import well_formed
from tests.requirement import requirement

from .conversing import Faulty, InMemory, ask, result, sums
from .stage import Act, Given, Stage, call, stage

SMALL = ModelFacts(window=10_000, most_output=1_000)
REFUSES: list[ModelEvent] = [TextDelta("I can't help with that."), Stopped("refusal")]
CUT_OFF: list[ModelEvent] = [TextDelta("# Task\nAll of it.\n\n# State\nhalf a summ"), Stopped("max_tokens")]


def too_long(window: int | None = None) -> list[ModelError]:
    return [ModelError("Too long.", "overflow", window=window)]


class Silent(Faulty):
    """Refuses to write summaries."""

    def stream(self, request: Request, /) -> Any:
        if "at most about" in str(request.history[-1]):
            at = len(self.requests)
            self._messages = (*self._messages[:at], REFUSES, *self._messages[at:])
        return super().stream(request)


def a_stage(store: InMemory | None = None, *turns: Turn) -> Stage:
    async def prints(input: Given, ctx: ToolContext) -> str:
        return input.text

    at = stage(Act(body=prints))
    at.session.conversation = MessageHistory(turns, Transcript(store, "s") if store else None)
    return at


def first_text(at: Stage) -> str:
    first = at.session.history[0]
    assert isinstance(first, UserTurn)
    return plain_text(first.content)


def long_talk() -> tuple[Turn, ...]:
    return (
        UserTurn.saying("Fix the parser. Never touch main.py!"),
        AssistantTurn((Text("I looked at the parser. " * 900),)),
        UserTurn.saying("Use tabs."),
        AssistantTurn((Text("Done."),)),
    )


# The summary


@requirement("LOOP-2")
@pytest.mark.parametrize(
    ("bad", "why"),
    [
        (REFUSES, "results were left out"),
        (CUT_OFF, "was cut off"),
        (says("Everything went well so far, and I will continue."), "did not have the headings"),
        (says("", call()), "did not have the headings"),
        (too_long(), "longer than you can read"),
    ],
)
async def test_a_summary_that_is_of_no_use_is_asked_for_again_in_short_form(bad: Any, why: str) -> None:
    at = a_stage(None, *long_talk())
    model = Faulty(bad, sums("The parser is fixed."), facts=SMALL)

    assert await at.session.compact(model)

    assert "The parser is fixed." in first_text(at)
    assert why in plain_text(model.requests[1][1][-1].content)  # type: ignore[union-attr]
    assert "at most about 400 words" in plain_text(model.requests[1][1][-1].content)  # type: ignore[union-attr]
    assert len(model.requests) == 2


@requirement("LOOP-2")
@pytest.mark.parametrize("bad", [REFUSES, CUT_OFF, says("Fine.")])
async def test_no_bad_summary_replaces_what_the_user_asked_for(bad: Any) -> None:
    talk = long_talk()
    at = a_stage(None, *talk[:2], AssistantTurn((call(),)), ResultTurn((result("1", "word " * 4_000),)), *talk[2:])
    model = Faulty(bad, bad, facts=SMALL)

    assert await at.session.compact(model)

    texts = [plain_text(turn.content) for turn in at.session.history if isinstance(turn, UserTurn)]
    assert texts == ["Fix the parser. Never touch main.py!", "Use tabs."]
    assert "I can't help" not in str(at.session.history)
    assert "half a summ" not in str(at.session.history)


@requirement("LOOP-2")
async def test_the_prompts_of_the_user_outlive_any_number_of_compactions_word_for_word() -> None:
    store = InMemory()
    at = a_stage(store)
    prompts = [f"Request {n}: keep   «{n}» exactly so,\n\tplease." for n in range(4)]
    for prompt in prompts:
        await ask(at, prompt, Faulty(says("word " * 3_000), facts=SMALL))
        assert await at.session.compact(Faulty(sums("Little."), facts=SMALL), entirely=True)

    assert all(f"<prompt>\n{prompt}\n</prompt>" in first_text(at) for prompt in prompts)
    found = restore_conversation(store.lines)
    assert (found.turns, found.asked) == (at.session.history, prompts)


def test_the_newest_prompts_are_kept_and_what_is_left_out_is_said() -> None:
    prompts = [f"{n} " + "word " * 100 for n in range(50)]

    text, shown = join_summary("s", prompts, (), 20_000)

    assert shown == prompts[-len(shown) :]
    assert 5 <= len(shown) <= 12
    assert f"(without the {50 - len(shown)} prompts before these)" in text


def test_a_prompt_of_any_length_leaves_its_beginning_and_its_end() -> None:
    (kept,) = latest_prompts(["First. " + "word " * 90_000 + "Last."], 1_000)

    assert kept.startswith("First. ")
    assert kept.endswith("Last.")
    assert len(kept) <= 2_000


async def test_what_hooks_say_before_a_compaction_is_added_to_the_instructions() -> None:
    async def before(trigger: Trigger, words: str) -> TurnWords:
        return TurnWords(context=("Keep the ports.",))

    at = a_stage(None, *long_talk())
    at.session.compaction.before = before
    model = Faulty(sums("Much."), facts=SMALL)

    assert await at.session.compact(model, "Keep the names.")

    asked = plain_text(model.requests[0][1][-1].content)  # type: ignore[union-attr]
    assert "Keep the names.\n\nKeep the ports." in asked


def test_what_files_say_is_no_wish_of_the_user() -> None:
    assert "Only what the user wrote is a wish" in INSTRUCTIONS


@requirement("LOOP-2")
async def test_a_summary_is_not_asked_for_with_more_than_fits() -> None:
    """A conversation of millions of tokens, as one may resume with a smaller model."""
    turns: list[Turn] = []
    for n in range(400):
        turns += [UserTurn.saying(f"Prompt {n}"), AssistantTurn((call("Act", f"c{n}", text="word " * 2_000),))]
        turns += [ResultTurn((result(f"c{n}", "word " * 2_000),)), AssistantTurn((Text("word " * 50),))]
    at = a_stage(None, *turns)
    model = Faulty(sums("Much."), says("Yes."), facts=SMALL)

    events = await ask(at, "Go on.", model)

    assert events[-1] == TurnEnded("end")
    assert all(estimate(history) + estimate_around(request) <= SMALL.window for request, history in model.requests)
    assert len(model.requests) == 2


def test_fields_that_a_service_wants_back_stay_with_what_stays_of_its_messages() -> None:
    own = Thought("hm", extras=ServiceFields("chat@deepseek", {"reasoning_content": "hm"}))
    signed = Thought("hm", "signature")
    turns = (UserTurn.saying("go"), AssistantTurn((own, call())), ResultTurn((result("1", "x"),)))

    assert shorter(turns, Form(kept=2, whole=2), summary="s")[1:] == turns[1:]
    assert shorter((AssistantTurn((signed, call())),), Form(kept=1, whole=1)) == (AssistantTurn((call(),)),)


# Nothing gets stuck


@requirement("LOOP-2")
@pytest.mark.parametrize("window", [32_768, None])
async def test_long_arguments_of_old_calls_give_way_and_the_window_is_learned(window: int | None) -> None:
    """Files that were written, to a service with a smaller window than believed."""
    store = InMemory()
    at = a_stage(store)
    writes = [says("", call("Act", f"c{n}", text="word " * 6_000)) for n in range(6)]
    model = Silent(*writes[:3], too_long(window), *writes[3:], says("Done."), facts=ModelFacts())

    events = await ask(at, "Write them.", model)

    assert events[-1] == TurnEnded("end")
    first = next(turn for turn in at.session.history if isinstance(turn, AssistantTurn))
    assert len(first.calls[0].arguments["text"]) <= SHORT
    learned = at.session.compaction.windows.facts_of(model)
    assert learned.window == window if window else learned.window < 40_000
    assert (model.requests[-1][0].max_tokens or 0) <= learned.window // 5
    assert restore_conversation(store.lines).turns == at.session.history


@requirement("LOOP-2")
async def test_one_result_that_is_larger_than_the_window_keeps_its_beginning_and_its_end() -> None:
    at = a_stage()
    text = "First. " + "word " * 30_000 + "Last."
    at.session.conversation = MessageHistory(
        [UserTurn.saying("Run it."), AssistantTurn((call("Act", "0"),)), ResultTurn((result("0", text),))]
    )

    events = await ask(at, "go", Silent(too_long(8_192), says("Done."), facts=ModelFacts()))

    assert events[-1] == TurnEnded("end")
    (turn,) = [turn for turn in at.session.history if isinstance(turn, ResultTurn)]
    assert estimate(at.session.history) < 8_192
    assert standing(at.session.history) == frozenset()
    assert turn.results[0].content != (Text(text),)


@requirement("LOOP-2")
async def test_a_prompt_that_is_larger_than_the_window_leaves_a_conversation_that_can_be_continued() -> None:
    store = InMemory()
    at = a_stage(store)
    prompt = "First. " + "word " * 300_000 + "Last."

    events = await ask(at, prompt, Faulty(says("Too much to read."), facts=SMALL))

    assert events[-1] == TurnEnded("end")
    assert first_text(at).startswith("First. ")
    assert first_text(at).endswith("Last.")
    again = a_stage(store, *restore_conversation(store.lines).turns)
    assert again.session.history == at.session.history
    assert (await ask(again, "And now?", Faulty(says("Fine."), facts=SMALL)))[-1] == TurnEnded("end")


async def test_a_window_that_was_learned_is_kept_for_the_run() -> None:
    at = a_stage()
    model = Faulty(says("word " * 9_000), too_long(8_192), sums("Much."), says("word " * 5_000), facts=ModelFacts())
    await ask(at, "one", model)
    await ask(at, "two", model)
    later = Faulty(sums("More."), says("Yes."), facts=ModelFacts())

    events = await ask(at, "three", later)

    assert [event.how for event in events if isinstance(event, Compacted)] == ["summary"]
    assert INSTRUCTIONS in plain_text(later.requests[0][1][-1].content)  # type: ignore[union-attr]


@requirement("LOOP-2")
async def test_pictures_that_a_service_does_not_take_are_left_out_for_good() -> None:
    store = InMemory()
    at = a_stage(store)
    refuses = [ModelError("No images.", "images")]
    model = Faulty(refuses, says("I cannot see it."), says("Yes."))

    events = await ask(at, (Text("See:"), Image("image/png", "aGk=")), model)
    await ask(at, "Well?", model)

    assert TurnEnded("end") in events
    assert at.session.history[0] == UserTurn((Text("See:"), Text(LEFT_OUT)))
    assert restore_conversation(store.lines).turns == at.session.history
    assert well_formed(at.session.history)


async def test_a_refusal_of_pictures_where_there_are_none_ends_the_turn() -> None:
    at = a_stage()
    model = Faulty([ModelError("No images.", "images")], says("never"))

    assert (await ask(at, "hi", model))[-1] == TurnEnded("error", "No images.")


async def test_the_usage_of_a_summary_is_that_of_the_session() -> None:
    at = a_stage(None, *long_talk())

    await at.session.compact(Faulty([Usage(700, 70), *sums("Much.")], facts=SMALL))

    assert at.session.spending.usage == Usage(700, 70)


async def test_all_calls_are_counted_whatever_is_left_of_them() -> None:
    at = a_stage()
    calls = [says("", call("Act", f"c{n}", text="word " * 500)) for n in range(12)]

    await ask(at, "go", Faulty(*calls, says("Done."), facts=ModelFacts()))
    await at.session.compact(Faulty(sums("Much."), facts=ModelFacts()), entirely=True)

    assert at.session.conversation.calls == 12


def test_a_text_that_was_cut_is_not_cut_again() -> None:
    cut = cut_text("x" * 10_000, 1_000)

    assert cut_text(cut, 1_000) == cut
