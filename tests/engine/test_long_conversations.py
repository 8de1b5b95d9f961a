"""Random conversations of large results, arguments, prompts and pictures, with services of small windows."""

from __future__ import annotations

import json
import os
import random
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from ferrule.core.content import Block, Image, Text, plain_text
from ferrule.core.context import ToolContext
from ferrule.core.events import TurnEnded
from ferrule.core.model import (
    AssistantTurn,
    ModelError,
    ModelEvent,
    ModelFacts,
    Request,
    ResultTurn,
    Stopped,
    TextDelta,
    Usage,
    UserTurn,
)
from ferrule.engine.message_history import MessageHistory
from ferrule.engine.restoring import restore_conversation
from ferrule.engine.summaries import INSTRUCTIONS, SHORT_FORM
from ferrule.engine.transcript import Transcript
from ferrule.engine.window import estimate, estimate_around
from ferrule.providers.scripted import says
from ferrule.testing import well_formed
from tests.requirement import requirement

from .conversing import InMemory, ask, sums
from .stage import Act, Given, Stage, call, stage

SAMPLES = [one["text"] for one in json.loads(Path(__file__).with_name("token_counts.json").read_text("utf-8")).values()]
WINDOWS = (8_000, 12_000, 16_384, 32_768, 65_536, 131_072, 200_000)
QUICK, THOROUGH = 50, 1_000


def some_text(chance: random.Random, most: int) -> str:
    size = int(most ** chance.random())
    sample = chance.choice(SAMPLES)
    return (sample * (size // len(sample) + 1))[:size]


class Strict:
    """A service that refuses what is beyond its window, as real ones do, and calls a tool with long arguments.

    Its tokenizer is not ours, it may say no number when it refuses, and asked for a summary it may write anything.
    """

    name = "strict"

    def __init__(self, chance: random.Random) -> None:
        self.window = chance.choice(WINDOWS)
        self.facts = ModelFacts(window=chance.choice([self.window, 128_000, 200_000]), most_output=16_000)
        self.refused = self.asked = 0
        self.calls = 0
        self._chance = chance
        self._factor = chance.uniform(0.75, 1.35)
        self._names_window = chance.random() < 0.5
        self._reports = chance.random() < 0.7
        self._counts_answer = chance.random() < 0.3
        self._takes_images = chance.random() < 0.8

    @asynccontextmanager
    async def stream(self, request: Request, /) -> AsyncGenerator[AsyncIterator[ModelEvent]]:
        events = self._answer(request)
        try:
            yield events
        finally:
            await events.aclose()

    async def _answer(self, request: Request) -> AsyncGenerator[ModelEvent]:
        self.asked += 1
        assert well_formed(request.history)
        assert not isinstance(request.history[-1], AssistantTurn)
        size = int((estimate_around(request) + estimate(request.history)) * self._factor)
        room = self.window - (request.max_tokens or 0 if self._counts_answer else 0)
        if not self._takes_images and has_pictures(request):
            raise ModelError("This model does not support image input.", "images")
        if size > room:
            self.refused += 1
            raise ModelError("Too long.", "overflow", window=self.window if self._names_window else None)
        if self._reports:
            yield Usage(size, 10)
        for event in self._message(request):
            yield event

    def _message(self, request: Request) -> list[ModelEvent]:
        last = request.history[-1]
        words = plain_text(last.content) if isinstance(last, UserTurn) else ""
        if INSTRUCTIONS in words or SHORT_FORM[:60] in words:
            return self._summary()
        if not self.calls:
            return says("Done.")
        self.calls -= 1
        count = self._chance.choice([1, 1, 1, 3, 12])
        made = [call("Act", f"c{self.asked}_{n}", text=some_text(self._chance, 120_000)) for n in range(count)]
        return says("", *made)

    def _summary(self) -> list[ModelEvent]:
        match self._chance.randrange(8):
            case 0:
                return [TextDelta("I can't help with that."), Stopped("refusal")]
            case 1:
                return [TextDelta("# Task\nhalf a summ"), Stopped("max_tokens")]
            case 2:
                return says("All is well.")
            case 3:
                raise ModelError("Busy.", "overload")
            case _:
                return sums(some_text(self._chance, 4_000))


def has_pictures(request: Request) -> bool:
    for turn in request.history:
        match turn:
            case UserTurn(content):
                blocks = content
            case ResultTurn(results):
                blocks = tuple(block for one in results for block in one.content)
            case AssistantTurn():
                blocks = ()
        if any(isinstance(block, Image) for block in blocks):
            return True
    return False


def a_prompt(chance: random.Random) -> tuple[Block, ...]:
    pictures = [Image("image/png", "aGk=")] * chance.choice([0, 0, 0, 1, 9])
    return (Text(f"Request {chance.random()}. " + some_text(chance, 600_000)), *pictures)


class Prints(Act):
    """Its output is what the model reads, of any length."""

    result_limit = None

    def to_model(self, output: tuple[Block, ...]) -> tuple[Block, ...]:
        return output


def a_stage(chance: random.Random) -> Stage:
    async def answers(input: Given, ctx: ToolContext) -> tuple[Block, ...]:
        pictures = [Image("image/png", "aGk=")] * chance.choice([0, 0, 0, 0, 1, 6])
        return (Text(some_text(chance, 90_000)), *pictures)

    return stage(Prints(body=answers))


async def converse(seed: int) -> None:
    """Prompts and calls until the end; then another process takes the conversation up from its transcript."""
    chance = random.Random(seed)
    model, store = Strict(chance), InMemory()
    at = a_stage(chance)
    at.session.conversation = MessageHistory((), Transcript(store, "s"))
    for _ in range(chance.randrange(1, 5)):
        model.calls = chance.randrange(0, 8)
        (*_, ended) = await ask(at, a_prompt(chance), model)
        assert ended == TurnEnded("end"), (seed, model.window, model.facts.window)
        assert well_formed(at.session.history)
        found = restore_conversation(store.lines)
        assert found.turns == at.session.history, seed
        assert found.asked == at.session.conversation.prompts, seed
    again = a_stage(chance)
    again.session.conversation = MessageHistory(found.turns, Transcript(store, "s"), prompts=found.asked)  # type: ignore[possibly-undefined]
    (*_, ended) = await ask(again, "Go on.", model)
    assert ended == TurnEnded("end"), seed


@requirement("LOOP-2")
@pytest.mark.parametrize("first", range(0, QUICK, 10))
async def test_no_conversation_gets_stuck_whatever_the_window_is(first: int) -> None:
    for seed in range(first, first + 10):
        await converse(seed)


@pytest.mark.slow
@pytest.mark.skipif("FERRULE_THOROUGH" not in os.environ, reason="takes minutes; set FERRULE_THOROUGH=1 to run it")
async def test_none_of_a_thousand_conversations_gets_stuck() -> None:
    for seed in range(QUICK, THOROUGH):
        await converse(seed)
