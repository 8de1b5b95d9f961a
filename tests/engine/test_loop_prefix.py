"""What a provider has cached stays of use: each request begins with the one before it, or says why not."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from ferrule.core.context import ToolContext
from ferrule.core.events import Event, PrefixMoved
from ferrule.core.model import (
    CallDelta,
    CallReady,
    ModelError,
    ModelEvent,
    ModelFacts,
    Request,
    Stopped,
    TextDelta,
    Turn,
)
from ferrule.core.ports import Note
from ferrule.core.state import ToolsFound
from ferrule.core.tool import Exposure, Result, ToolSpec
from ferrule.providers.scripted import says
from tests.requirement import requirement

from .conversing import ask
from .stage import Act, Given, call, run_virtually, stage, steps


class Hidden(Act):
    exposure = Exposure.DEFERRED


Sent = tuple[tuple[ToolSpec, ...], str, tuple[Turn, ...]]


class Watched:
    """Plays messages for ever, and notes what was sent and where the prefix is said to have moved."""

    name = "of a test"

    def __init__(self, messages: Sequence[Sequence[ModelEvent | Exception]], window: int = 200_000) -> None:
        self.facts = ModelFacts(window=window)
        self.log: list[Sent | PrefixMoved] = []
        self._messages = messages
        self._asked = 0

    def heard(self, event: Event) -> None:
        if isinstance(event, PrefixMoved):
            self.log.append(event)

    @asynccontextmanager
    async def stream(self, request: Request, /) -> AsyncGenerator[AsyncIterator[ModelEvent]]:
        self.log.append((tuple(request.tools), request.system, tuple(request.history)))
        events = self._play()
        try:
            yield events
        finally:
            await events.aclose()

    async def _play(self) -> AsyncGenerator[ModelEvent]:
        message = self._messages[self._asked] if self._asked < len(self._messages) else says("the end")
        self._asked += 1
        for event in message:
            if isinstance(event, Exception):
                raise event
            yield event
            await steps(1)

    def unmarked(self) -> list[tuple[Sent, Sent]]:
        """The requests that do not begin with the one before them, and of which nobody said so."""
        last: Sent | None = None
        broken: list[tuple[Sent, Sent]] = []
        for entry in self.log:
            if isinstance(entry, PrefixMoved):
                last = None
                continue
            if last is not None and not (entry[:2] == last[:2] and entry[2][: len(last[2])] == last[2]):
                broken.append((last, entry))
            last = entry
        return broken


class Talkative:
    def __init__(self, when: list[bool]) -> None:
        self._when = when

    async def notes(self, agent: str, /) -> tuple[Note, ...]:
        return (Note("news", "something changed"),) if self._when and self._when.pop() else ()


async def prints(input: Given, ctx: ToolContext) -> str:
    return "word " * 200


async def find(input: Given, ctx: ToolContext) -> Result[str]:
    return Result("found", messages=("a message",), changes=(ToolsFound((input.text,)),))


MESSAGES = st.sampled_from(
    [
        says("", call("Act", "1"), call("Nope", "2")),
        says("", call("Find", "3", text="Alpha")),
        says("", call("Find", "4", text="Zeta"), call("Act", "5")),
        [TextDelta("a"), CallReady(call("Act", "6")), TextDelta("half"), ModelError("cut", "cut")],
        [TextDelta("nothing whole"), ModelError("cut", "cut")],
        [CallReady(call("Act", "7")), ModelError("down", "overload")],
        [ModelError("too long", "overflow")],
        [CallDelta("8", "Act", "{"), Stopped("max_tokens")],
        says("the end"),
    ]
)
BETWEEN = st.sampled_from(["nothing", "nothing", "system", "add", "remove", "note"])


@requirement("LOOP-2", "POOL-4")
@given(
    st.lists(MESSAGES, max_size=10),
    st.lists(st.booleans(), max_size=20),
    st.lists(BETWEEN, max_size=4),
    st.integers(0, 60),
    st.sampled_from([200_000, 2_000]),
)
def test_each_request_begins_with_the_one_before_it_or_says_why_not(
    messages: list[Any], notes: list[bool], between: list[str], interrupted_after: int, window: int
) -> None:
    model = Watched(messages, window)
    at = stage(Act(body=prints), Act("Find", find), Hidden("Alpha"), Hidden("Zeta"), watch=model.heard)
    session = at.session
    session.note_sources = (Talkative(notes),)

    async def talk() -> None:
        async with session.ask("first", model):
            await steps(interrupted_after)
        for number, change in enumerate(between):
            match change:
                case "system":
                    session.system = f"System {number}."
                case "add":
                    session.registry.add(Act(f"More{number}"))
                case "remove":
                    session.registry.remove("Act")
                case "note":
                    session.note(Note("mode", "another"))
                case _:
                    pass
            await ask(at, f"prompt {number}", model)

    run_virtually(talk())

    assert model.unmarked() == []


@requirement("POOL-4")
async def test_why_the_prefix_moved_is_told_before_the_request() -> None:
    model = Watched([says("", call("Find", "1", text="Zeta")), says("one"), says("two"), says("three")])
    at = stage(Act("Find", find), Hidden("Zeta"), watch=model.heard)

    await ask(at, "go", model)
    at.session.registry.add(Act("Another"))
    await ask(at, "go", model)
    at.session.system = "You are brief."
    await ask(at, "go", model)

    told = [entry.reason if isinstance(entry, PrefixMoved) else "request" for entry in model.log]
    assert told == [
        "request",
        "tool_found",
        "request",
        "tools_changed",
        "request",
        "system_changed",
        "request",
    ]


async def test_a_conversation_in_which_nothing_was_found_moves_nothing() -> None:
    model = Watched([says("", call("Act", str(number))) for number in range(20)])
    at = stage(Act(), watch=model.heard)

    await ask(at, "go", model)
    await ask(at, "and on", model)

    assert not [entry for entry in model.log if isinstance(entry, PrefixMoved)]
    assert len(model.log) == 22
    assert model.unmarked() == []
