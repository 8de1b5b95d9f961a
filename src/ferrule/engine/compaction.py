"""When and how a conversation is shortened, before it grows beyond what the model can read.

The older turns are replaced by a summary that the model writes itself. If it cannot write one, or if that is not
enough, parts of the conversation give way in a fixed order; see `shortening`.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal, Protocol, TypeAlias

from ..core.events import Compacted, Event, PrefixMoved
from ..core.model import ModelError, ModelFacts, ModelProvider, Request, Turn, Usage, UserTurn
from ..core.ports import Lasting, Note, TurnWords
from ..core.state import SessionState
from ..core.values import plain_value
from .message_history import MessageHistory, prompt_text
from .shortening import (
    CHARACTERS,
    Form,
    Shortened,
    cut_text,
    first_kept_turn,
    fit,
    shorter,
    standing,
    without_pictures,
)
from .summaries import join_summary, write_summary
from .window import LearnedWindows, Meter, TurnSizes, estimate, estimate_around

Trigger: TypeAlias = Literal["auto", "manual"]

KEPT_SHARE = 10
"""The last turns that stay whole take up to this fraction of the window."""
LEAST_GAIN = 20
"""A compaction that frees less than this fraction of the window is not worth what it loses."""
SUMMARY_SHARE = 10
"""A summary takes up to this fraction of the window."""
LEAST_ROOM = 8
"""The fraction of the window that a conversation is given, however much the system prompt and the tools take."""
OVERFLOWS = 5
"""How often one message is asked for again after a shorter conversation was found too long as well."""
SHRINKING = 0.6
"""What is left of the room for the conversation after each of them: the estimate was too low."""

Extent: TypeAlias = Literal["older", "overflowed", "entirely"]
"""What is shortened: the older turns, those of a conversation that is too long for the model, or all turns."""


@dataclass(slots=True, kw_only=True)
class Compaction:
    """The compaction of one conversation. The callbacks are set by the code that assembles the session."""

    is_automatic: bool = True
    lasting: tuple[Lasting, ...] = ()
    """Sources of what must be kept beyond a summary."""
    before: Callable[[Trigger, str], Awaitable[TurnWords]] | None = None
    """Called before each compaction, with the person's instructions for it. What it says is added to them, and a
    block prevents the compaction."""
    after: Callable[[Trigger, str], Awaitable[None]] | None = None
    """Called after each one, with the summary, which is empty if only results were dropped."""
    only_these_stand: tuple[Callable[[str, frozenset[str]], None], ...] = ()
    """Called afterwards, for an agent, with the ids of all calls whose results can still be read."""
    meter: Meter = field(default_factory=Meter)
    windows: LearnedWindows = field(default_factory=LearnedWindows)
    _next: int = 0
    """Tokens below which it is not repeated: what one compaction could not free, the next cannot either."""
    _is_fresh: bool = False
    _overflows: int = 0
    """How often the message that is being asked for was refused as too long."""

    def for_agent(self) -> Compaction:
        """That of an agent: it has its own conversation, and knows what is known of windows."""
        return Compaction(
            is_automatic=self.is_automatic,
            lasting=self.lasting,
            before=self.before,
            only_these_stand=self.only_these_stand,
            windows=self.windows,
        )

    def is_due(self, request: Request, facts: ModelFacts) -> bool:
        """Asked before each message."""
        self._overflows = 0
        if not self.is_automatic:
            return False
        return self.meter.measure(request) > max(self._next, limit(facts, request.max_tokens))

    def note_overflow(self, request: Request, model: ModelProvider, window: int | None) -> int | None:
        """A request was refused as too long, and this is the window in the service's words.

        How often that has happened for this message; `None` if nothing more can be done about it.
        """
        if not self.is_automatic or self._overflows == OVERFLOWS:
            return None
        size, again = self.meter.measure(request), self._overflows > 0
        self.windows.learn_from_overflow(model, window, size=size, again=again)
        self._overflows += 1
        return self._overflows

    def note_usage(self, usage: Usage, turns: int, model: ModelProvider, *, stays: bool) -> None:
        """A message was written on top of that many turns."""
        if stays:
            read = usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens
            self.windows.note_passed(model, read or self.meter.tokens)
        if self.meter.report(usage, turns + stays) and self._is_fresh:
            self.put_off(self.windows.facts_of(model))
            self._is_fresh = False

    def put_off(self, facts: ModelFacts) -> None:
        """It is not repeated before a good part of the window has been filled again."""
        self._next = self.meter.tokens + facts.window // KEPT_SHARE

    def measure_result(self, request: Request, facts: ModelFacts) -> int:
        """Measure the new conversation; how many tokens it has now."""
        self.meter.reset()
        after = self.meter.measure(request)
        self.put_off(facts)
        self._is_fresh = True
        return after

    def notes(self, agent: str) -> tuple[Note, ...]:
        return tuple(note for one in self.lasting for note in one.lasting(agent))


class RoomPort(Protocol):
    """What a compaction needs from its session."""

    agent: str
    conversation: MessageHistory
    compaction: Compaction

    def emit(self, event: Event, /) -> None: ...

    def plain_request(self) -> Request:
        """What would be asked now."""
        ...

    def mark_moved_prefix(self, request: Request, /) -> Request: ...

    def add_side_spending(self, model: ModelProvider, usage: Usage, /) -> None:
        """For a message that is not part of the conversation."""
        ...

    def replace_turns(self, turns: Sequence[Turn], /) -> None: ...


async def make_room(at: RoomPort, model: ModelProvider, refused: ModelError | None) -> bool:
    """Shorten the conversation if it is near the end of the window, or as the service that refused it demands.

    Whether it is another one now.
    """
    compaction, request = at.compaction, at.plain_request()
    if refused is None:
        return compaction.is_due(request, compaction.windows.facts_of(model)) and await compact(at, model, "auto")
    if refused.kind == "images":
        made = without_pictures(at.conversation.turns)
        if made is not None:
            adopt(at, model, made, "auto", before=compaction.meter.measure(request))
        return made is not None
    overflows = compaction.note_overflow(request, model, refused.window)
    return overflows is not None and await compact(at, model, "auto", extent="overflowed", overflows=overflows)


async def compact(
    at: RoomPort,
    model: ModelProvider,
    trigger: Trigger,
    *,
    instructions: str = "",
    extent: Extent = "older",
    overflows: int = 0,
) -> bool:
    compaction, request = at.compaction, at.plain_request()
    facts = compaction.windows.facts_of(model)
    before = compaction.meter.measure(request)
    said = await compaction.before(trigger, instructions) if compaction.before else TurnWords()
    made = None
    if not (said.blocks or said.stops):
        instructions = "\n\n".join(filter(None, (instructions, *said.context)))
        made = await _shorten(at, model, _Task(request, facts, instructions, extent, overflows))
    if made is None:
        compaction.put_off(facts)
        return False
    adopt(at, model, made, trigger, before=before)
    if compaction.after:
        await compaction.after(trigger, made.summary)
    return True


def adopt(at: RoomPort, model: ModelProvider, made: Shortened, trigger: Trigger, *, before: int) -> None:
    """Go on with the conversation in its new form."""
    compaction, conversation = at.compaction, at.conversation
    at.emit(PrefixMoved("compaction"))
    at.replace_turns(made.turns)
    if made.summary:
        conversation.prompts = list(made.prompts)
    after = compaction.measure_result(at.plain_request(), compaction.windows.facts_of(model))
    for note_standing in compaction.only_these_stand:
        note_standing(at.agent, standing(made.turns))
    if conversation.transcript:
        conversation.transcript.compaction(made, trigger=trigger, before=before, after=after)
    at.emit(Compacted(before, after, made.how, trigger, made.summary))


@dataclass(frozen=True)
class _Task:
    """One compaction that is to be made."""

    request: Request
    facts: ModelFacts
    instructions: str
    extent: Extent
    overflows: int

    @cached_property
    def room(self) -> int:
        """Tokens that the conversation may have."""
        left = limit(self.facts, self.request.max_tokens) - estimate_around(self.request)
        room = max(left, self.facts.window // LEAST_ROOM)
        if not self.overflows:
            return room
        return int(min(room, estimate(self.request.history) * SHRINKING) * SHRINKING ** (self.overflows - 1))


async def _shorten(at: RoomPort, model: ModelProvider, task: _Task) -> Shortened | None:
    """The conversation in fewer tokens; `None` where little would be gained, or for want of a summary of all of it."""
    turns, extent = task.request.history, task.extent
    window, room, sizes = task.facts.window, task.room, TurnSizes()
    first = len(turns) if extent == "entirely" else first_kept_turn(turns, min(window // KEPT_SHARE, room // 2))
    last = len(turns) - first
    written = ""
    if first and task.overflows <= 1:
        written = await _ask_for_summary(at, model, task)
    if extent == "entirely" and not written:
        return None
    apart = _KeptApart(at.conversation.prompts, at.compaction.notes(at.agent))
    made = _fit_summary(turns, written, last, apart, task, sizes) if written else None
    if made is None and task.overflows < OVERFLOWS - 1:
        made = _fit_all(turns, last, room, sizes)
    if made is None or (task.overflows and sizes.estimate(made.turns) >= sizes.estimate(turns)):
        made = _fit_summary(turns, "", last, apart, task, sizes)
    if made is None or extent == "entirely":
        return made
    gain = sizes.estimate(turns) - sizes.estimate(made.turns)
    return made if gain > (0 if task.overflows else window // LEAST_GAIN) else None


async def _ask_for_summary(at: RoomPort, model: ModelProvider, task: _Task) -> str:
    window = task.facts.window
    answer = min(task.request.max_tokens or task.facts.most_output, window // SUMMARY_SHARE)
    room = window - answer - window // 40 - estimate_around(task.request)
    if task.overflows:
        room = min(room, task.room)

    def tell_moved() -> None:
        at.emit(PrefixMoved("compaction"))

    try:
        return await write_summary(
            replace(at.mark_moved_prefix(task.request), max_tokens=answer),
            model,
            instructions=task.instructions,
            room=room,
            used=lambda usage: at.add_side_spending(model, usage),
            moved=tell_moved,
        )
    finally:  # whatever comes of it, what is asked next does not begin with the question for a summary
        tell_moved()


def _fit_all(turns: Sequence[Turn], last: int, room: int, sizes: TurnSizes) -> Shortened | None:
    """All turns, with marks for what had to give way."""
    found = fit(turns, sizes, kept=len(turns), last=last, room=room)
    return Shortened(found[0], "", found[1]) if found else None


def _fit_summary(
    turns: Sequence[Turn], written: str, last: int, kept_apart: _KeptApart, task: _Task, sizes: TurnSizes
) -> Shortened | None:
    """A summary, written or not, the user's prompts and the last turns, as many as fit; in the end not even those."""
    window, room = task.facts.window, task.room
    for kept, share in ((last, window), (0, window), (0, room), (0, room // 4)):
        summary, prompts = kept_apart.join(written, turns[len(turns) - kept :], share)
        found = fit(turns, sizes, kept=kept, last=kept, room=room, summary=summary)
        if found is not None:
            return Shortened(found[0], summary, found[1], bool(written), prompts)
        written = cut_text(written, room * CHARACTERS // 2)
    summary, prompts = _KeptApart(kept_apart.prompts, ()).join(written, (), room // 8)
    form = Form(kept=0, whole=0)
    return Shortened(shorter(turns, form, summary=summary), summary, form, bool(written), prompts)


@plain_value
class _KeptApart:
    """What is kept beside a summary."""

    prompts: Sequence[str]
    notes: Sequence[Note]

    def join(self, written: str, last: Sequence[Turn], window: int) -> tuple[str, tuple[str, ...]]:
        """The text that precedes these last turns, and all prompts that can then be read."""
        still = {prompt_text(turn) for turn in last if isinstance(turn, UserTurn)}
        earlier = [prompt for prompt in self.prompts if prompt not in still]
        text, shown = join_summary(written, earlier, self.notes, window)
        return text, (*shown, *(prompt for prompt in self.prompts if prompt in still))


@plain_value
class StateNotes:
    """Some of an agent's state in words for the model: the todo list, the plan. Satisfies `core.ports.Lasting`."""

    states: Mapping[str, SessionState]
    """By the names of agents."""
    kinds: Mapping[str, str]
    """How each key is described to the model."""

    def lasting(self, agent: str, /) -> tuple[Note, ...]:
        state = self.states.get(agent)
        values = state.values if state else {}
        kept = ((kind, values.get(key)) for key, kind in self.kinds.items())
        return tuple(
            Note(kind, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str))
            for kind, value in kept
            if value
        )


@plain_value
class PlaceNotes:
    """Where an agent works, and where its conversation is kept. Satisfies `core.ports.Lasting`."""

    states: Mapping[str, SessionState]
    transcript: Callable[[], str]
    """Its path, or nothing."""

    def lasting(self, agent: str, /) -> tuple[Note, ...]:
        state, path = self.states.get(agent), self.transcript()
        lines = (
            f"The working directory is {state.cwd}." if state else "",
            f"The whole conversation is in {path}, a JSON object to a line: search it for details." if path else "",
        )
        told = "\n".join(filter(None, lines))
        return (Note("where_you_are", told),) if told else ()


def limit(facts: ModelFacts, max_tokens: int | None) -> int:
    """Tokens of a request that leave room for an answer and for what an estimate may be wrong by.

    >>> limit(ModelFacts(window=200_000, most_output=32_000), None)
    158000
    """
    answer = min(max_tokens or facts.most_output, facts.window // 5)
    return facts.window - answer - facts.window // 20
