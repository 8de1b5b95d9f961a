"""When and how a conversation is shortened, before it grows beyond what the model can read.

The older turns are replaced by a summary that the model writes itself. If it
cannot write one, the long results of those turns are replaced by a mark.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

from ..core.content import Block, Text
from ..core.model import (
    AssistantTurn,
    ModelError,
    ModelFacts,
    ModelProvider,
    Request,
    ResultTurn,
    TextDelta,
    Thought,
    Turn,
    Usage,
    UserTurn,
)
from ..core.ports import Lasting, Note
from ..core.state import SessionState
from ..core.values import plain_value
from .spending import NOTHING
from .window import Meter, estimate

Trigger: TypeAlias = Literal["auto", "manual"]

KEPT_SHARE = 10
"""The last turns that stay whole take up to this fraction of the window."""
LEAST_GAIN = 20
"""A compaction that frees less than this fraction of the window is not worth what it loses."""
SHORT = 400
"""Characters of a result that is left alone."""
TRIES = 2
LEFT_OUT = "[This was left out to make room in the conversation. If it is needed, get it again.]"

INSTRUCTIONS = """\
This conversation is almost as long as you can read, so its older part will be replaced by what you write now. \
You will continue from your text alone, and from the last few turns, which stay as they are. Make no calls and do not \
continue the work: only write the handover, for a reader who was not here.

Use these headings, and leave one out only if there is nothing to say under it:

# Task
What the user asked for, in their words where the words matter: wishes, limits, corrections, things they forbade. \
Say which request is still open.

# State
What is done and verified, what is done and not yet verified, and what is left, in order. The very next step comes last.

# Findings
What was learned and would be costly to find again: how the parts work together, causes of failures, exact error \
messages, commands that work, approaches that were tried and failed, and why.

# Files
Each file that matters, with its full path: what it is for, what was changed in it, and the few lines, names or \
signatures that the work depends on, quoted exactly.

Be exact with paths, names, numbers and quotations, and mark as unsure what you did not see yourself. \
Leave out greetings, opinions about the work, and what can be read again in a moment."""

SUMMARY = """\
<summary_of_earlier_turns>
The conversation before this place was replaced by the summary below. Files that were read there are treated as \
not read: read a file again before you change it.

{}
</summary_of_earlier_turns>"""


CLEARED = "[The user cleared the conversation before this place.]"


Extent: TypeAlias = Literal["older", "overflowed", "entirely"]
"""What is shortened: the older turns, those of a conversation that is too long for the model, or all turns."""


@plain_value
class Shortened:
    """A conversation in its new form; see `shorter`."""

    turns: tuple[Turn, ...]
    summary: str
    """Empty where results were dropped instead."""
    kept: int
    whole: int
    """How many of the last turns have all their results."""

    @property
    def how(self) -> Literal["summary", "results_dropped"]:
        return "summary" if self.summary else "results_dropped"


@dataclass(slots=True, kw_only=True)
class Compaction:
    """The compaction of one conversation. The callbacks are set by the code that assembles the session."""

    is_automatic: bool = True
    lasting: tuple[Lasting, ...] = ()
    """Sources of what must be kept beyond a summary."""
    before: Callable[[Trigger, str], Awaitable[str | None]] | None = None
    """Called before each compaction, with the person's instructions for it; a returned reason prevents it."""
    after: Callable[[Trigger, str], Awaitable[None]] | None = None
    """Called after each one, with the summary, which is empty if only results were dropped."""
    only_these_stand: tuple[Callable[[str, frozenset[str]], None], ...] = ()
    """Called afterwards, for an agent, with the ids of all calls whose results can still be read."""
    meter: Meter = field(default_factory=Meter)
    _next: int = 0
    """Tokens below which it is not repeated: what one compaction could not free, the next cannot either."""
    _is_fresh: bool = False
    _overflowed: bool = False

    def is_due(self, request: Request, facts: ModelFacts) -> bool:
        if not self.is_automatic:
            return False
        return self.meter.measure(request) > max(self._next, limit(facts, request.max_tokens))

    def may_follow_overflow(self) -> bool:
        """Once for each message: if that was not enough, nothing will be."""
        first, self._overflowed = not self._overflowed, True
        return first and self.is_automatic

    def note_usage(self, usage: Usage, turns: int, facts: ModelFacts, *, stays: bool) -> None:
        """A message was written on top of that many turns."""
        self._overflowed = self._overflowed and not stays
        if self.meter.report(usage, turns + stays) and self._is_fresh:
            self.put_off(facts)
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


@plain_value
class StateNotes:
    """Some of the session's state in words for the model: the todo list, the plan. Satisfies `core.ports.Lasting`."""

    state: SessionState
    kinds: Mapping[str, str]
    """How each key is described to the model."""

    def lasting(self, agent: str, /) -> tuple[Note, ...]:
        kept = ((kind, self.state.values.get(key)) for key, kind in self.kinds.items())
        return tuple(
            Note(kind, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str))
            for kind, value in kept
            if value
        )


def limit(facts: ModelFacts, max_tokens: int | None) -> int:
    """Tokens of a request that leave room for an answer and for what an estimate may be wrong by.

    >>> limit(ModelFacts(window=200_000, most_output=32_000), None)
    158000
    """
    answer = min(max_tokens or facts.most_output, facts.window // 5)
    return facts.window - answer - facts.window // 20


def first_kept_turn(turns: Sequence[Turn], tokens: int) -> int:
    """Where the last turns of at most that many tokens begin. A result stays with its call, the last turn always.

    >>> first_kept_turn([UserTurn.saying("x" * 90), UserTurn.saying("y" * 90)], 40)
    1
    """
    if not turns:
        return 0
    first = len(turns) - 1
    room = tokens - estimate(turns[first:])
    while first and (room := room - estimate(turns[first - 1 : first])) >= 0:
        first -= 1
    if isinstance(turns[first], ResultTurn):
        first += -1 if first == len(turns) - 1 else 1
    return first


def shorter(turns: Sequence[Turn], *, summary: str, kept: int, whole: int) -> tuple[Turn, ...]:
    """The summary, if there is one, and the last `kept` turns; with marks for what is long before the last `whole`.

    Reasoning is dropped: services that sign it accept it only after the same turns that it followed originally.
    """
    if summary:
        turns = (UserTurn.saying(summary), *turns[max(0, len(turns) - kept) :])
    first = max(0, len(turns) - whole)
    return tuple(_without_thoughts((*map(_slim, turns[:first]), *turns[first:])))


def without_turns() -> Shortened:
    """A conversation that was cleared."""
    return Shortened((UserTurn.saying(CLEARED),), CLEARED, 0, 0)


def _without_thoughts(turns: Sequence[Turn]) -> Iterator[Turn]:
    for turn in turns:
        if not isinstance(turn, AssistantTurn):
            yield turn
        elif parts := tuple(part for part in turn.parts if not isinstance(part, Thought)):
            yield AssistantTurn(parts)


def standing(turns: Sequence[Turn]) -> frozenset[str]:
    """The ids of the calls whose results can be read in these turns."""
    mark = (Text(LEFT_OUT),)
    results = (result for turn in turns if isinstance(turn, ResultTurn) for result in turn.results)
    return frozenset(result.call_id for result in results if result.content != mark)


def _slim(turn: Turn) -> Turn:
    match turn:
        case UserTurn(content):
            return UserTurn(tuple(block if isinstance(block, Text) else Text(LEFT_OUT) for block in content))
        case ResultTurn(results, messages):
            short = tuple(one if _is_short(one.content) else replace(one, content=(Text(LEFT_OUT),)) for one in results)
            return ResultTurn(short, messages)
        case AssistantTurn():
            return turn


def _is_short(content: Collection[Block]) -> bool:
    return all(isinstance(block, Text) and len(block.text) <= SHORT for block in content)


async def shorten(
    request: Request,
    model: ModelProvider,
    *,
    notes: Sequence[Note],
    instructions: str = "",
    extent: Extent = "older",
    used: Callable[[Usage], None],
) -> Shortened | None:
    """The conversation of this request in fewer tokens; `None` where little would be gained.

    If it has overflowed the window, the model sees it without its older results. `entirely` leaves nothing but the
    summary, and then `None` means that there is none.
    """
    turns, facts = request.history, model.facts
    first = len(turns) if extent == "entirely" else first_kept_turn(turns, facts.window // KEPT_SHARE)
    last = len(turns) - first
    summary = ""
    if first:
        shown = shorter(turns, summary="", kept=len(turns), whole=last) if extent == "overflowed" else turns
        summary = await _summary(replace(request, history=(*shown, _asking(instructions))), model, used)
    if summary:
        summary = "\n\n".join((SUMMARY.format(summary), *map(str, notes)))
    kept = last if summary else len(turns)
    made = shorter(turns, summary=summary, kept=kept, whole=last)
    if estimate(made) > limit(facts, request.max_tokens):  # the last turns alone are too long
        last = 0
        made = shorter(turns, summary=summary, kept=kept, whole=last)
    if extent == "entirely":
        return Shortened(made, summary, kept, last) if summary else None
    gain = estimate(turns) - estimate(made)
    return Shortened(made, summary, kept, last) if gain > facts.window // LEAST_GAIN else None


def _asking(instructions: str) -> UserTurn:
    more = f"\n\nThe user's instructions for this text: {instructions}" if instructions else ""
    return UserTurn.saying(INSTRUCTIONS + more)


async def _summary(request: Request, model: ModelProvider, used: Callable[[Usage], None]) -> str:
    """What the model writes; empty where it fails or writes nothing."""
    for _ in range(TRIES):
        pieces: list[str] = []
        usage = NOTHING
        try:
            async with model.stream(request) as events:
                async for event in events:
                    if isinstance(event, TextDelta):
                        pieces.append(event.text)
                    elif isinstance(event, Usage):
                        usage = event
        except ModelError as error:
            if error.kind not in ("cut", "answer"):
                return ""
        else:
            return "".join(pieces).strip()
        finally:
            used(usage)
    return ""
