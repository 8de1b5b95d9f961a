"""The agent loop: ask the model, run its calls, repeat until it stops asking."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from ..core.calls import ToolCall, ToolOutcome
from ..core.content import Text
from ..core.events import (
    CallDrafted,
    Event,
    MessageEnded,
    MessageStarted,
    NoteAdded,
    ResultsAdded,
    Retried,
    TextStreamed,
    ThoughtFinished,
    ThoughtStreamed,
    TurnEnded,
    UsageReported,
)
from ..core.model import (
    AssistantPart,
    AssistantTurn,
    CallDelta,
    CallReady,
    ModelError,
    ModelProvider,
    Request,
    ResultTurn,
    Retrying,
    Stopped,
    StopReason,
    TextDelta,
    Thought,
    ThoughtDelta,
    ThoughtReady,
    ToolResult,
    Usage,
)
from ..core.ports import Note
from .executor import Executor
from .message_history import CUT_ANSWER, MessageHistory
from .spending import NOTHING

TRIES = 3
"""How often a message is requested again if nothing complete arrives, or only part of a call."""
CUT_SHORT = ("cut", "answer")
"""Failures after which complete parts stay usable, and the same request may be repeated."""
REFUSED = ("overflow", "images")
"""Failures that another form of the conversation may cure."""
CONTINUATIONS = 3
"""How often an answer that the length limit cut off is continued."""
HALF_A_CALL = (
    "Your message reached the length limit in the middle of a call of {}, so that call was not made. "
    "Make it again with less in it, or do it in several calls."
)


class TurnPort(Protocol):
    """What a turn needs from its session."""

    conversation: MessageHistory

    def emit(self, event: Event, /) -> None: ...

    def executor(self) -> Executor:
        """Fresh for every message."""
        ...

    def next_request(self) -> Request: ...

    async def collect_notes(self) -> Sequence[Note]:
        """What the model is to know before its next message."""
        ...

    def record_message(
        self, model: ModelProvider, turn: AssistantTurn | None, stopped: StopReason, usage: Usage
    ) -> None:
        """Called as soon as a message is written, before those of its calls that change something run."""
        ...

    def record_state(self) -> None:
        """Called when all calls of a message have their results."""
        ...

    def end_if_due(self, model: ModelProvider, messages: int) -> TurnEnded | None:
        """The end of the turn, if a limit is reached after this many messages."""
        ...

    def is_stopped(self) -> bool:
        """Whether a call of the last message ends the turn."""
        ...

    async def end_after_calls(self, outcomes: Sequence[ToolOutcome]) -> TurnEnded | None:
        """The end of the turn, if the model is not to read the results of a message."""
        ...

    async def make_room(self, model: ModelProvider, refused: ModelError | None = None) -> bool:
        """Shorten the conversation if it is near the end of the window, or as the service that refused it demands.

        Whether it is another one now.
        """
        ...

    async def wait_for_news(self) -> bool:
        """Called when the model has answered: whether there is something new that it has to hear of."""
        ...


async def run_turn(at: TurnPort, model: ModelProvider) -> TurnEnded:
    """Extend the conversation until the model answers without a call.

    Interrupted, cut off or not: every call in it is followed by its result.
    """
    messages = 0
    while True:
        ended = at.end_if_due(model, messages) or await _answer_once(at, model, messages)
        if ended and not await _has_news(at, ended):
            return ended
        messages += 1


async def _has_news(at: TurnPort, ended: TurnEnded) -> bool:
    """Whether the model, which is done, has to hear of something first."""
    if ended.reason not in ("end", "max_tokens") or at.is_stopped():
        return False
    return await at.wait_for_news()


async def _answer_once(at: TurnPort, model: ModelProvider, messages: int) -> TurnEnded | None:
    """One message with the results of its calls, or the end of the turn."""
    await at.make_room(model)
    attempt, continued = 1, 0
    while True:
        _tell(at, await at.collect_notes())
        message = await _message(at, model)
        if message.stops:
            return TurnEnded("stopped", message.stops)
        if at.is_stopped():
            return TurnEnded("end")
        if message.goes_on():
            return await at.end_after_calls(message.outcomes)
        if message.is_cut_answer() and continued < CONTINUATIONS and not at.end_if_due(model, messages):
            continued += 1
            await at.make_room(model)
            _tell(at, (CUT_ANSWER,))
            continue
        if message.failure is None and not message.half:
            return TurnEnded("end" if message.stopped == "tool_use" else message.stopped)
        if message.failure and message.failure.kind in REFUSED and await at.make_room(model, message.failure):
            continue
        if attempt == TRIES or not _may_ask_again(at, message, attempt):
            failure = message.failure
            return TurnEnded("max_tokens") if failure is None else TurnEnded("error", str(failure), failure.status)
        attempt += 1


def _may_ask_again(at: TurnPort, message: _Message, attempt: int) -> bool:
    failure = message.failure
    if failure is None:
        _tell(at, (Note("unfinished_call", HALF_A_CALL.format(message.half)),))
        return True
    if failure.kind in CUT_SHORT:
        at.emit(Retried(Retrying(attempt + 1, TRIES, 0.0, str(failure))))
        return True
    return False


def _tell(at: TurnPort, notes: Sequence[Note]) -> None:
    at.conversation.tell(notes)
    for note in notes:
        at.emit(NoteAdded(note.kind, note.text))


@dataclass(slots=True)
class _Message:
    """What the model wrote so far. Text is kept in pieces until something else follows it."""

    parts: list[AssistantPart] = field(default_factory=list[AssistantPart])
    pieces: list[str] = field(default_factory=list[str])
    stopped: StopReason = "end"
    is_whole: bool = False
    usage: Usage = NOTHING
    failure: ModelError | None = None
    drafted: str = ""
    """The tool of a call that is begun and not complete."""
    drafts: dict[str, str] = field(default_factory=dict[str, str])
    """Calls that are begun and not complete: the id that each has in the conversation, by the one it came with."""
    half: str = ""
    """The tool of a call that was never completed because the message was too long."""
    turn: AssistantTurn | None = None
    """What stays of it."""
    stops: str = ""
    """Why the turn is to end with it, if a call of it was stopped."""
    outcomes: Sequence[ToolOutcome] = ()

    def add(self, part: AssistantPart) -> None:
        self.close_text()
        self.parts.append(part)

    def close_text(self) -> None:
        if self.pieces:
            self.parts.append(Text("".join(self.pieces)))
            self.pieces.clear()

    def goes_on(self) -> bool:
        """Whether results of it are to be answered."""
        if self.failure is not None and self.failure.kind not in CUT_SHORT:
            return False
        return self.turn is not None and bool(self.turn.calls)

    def is_cut_answer(self) -> bool:
        """Whether it is text that the length limit cut off. Reasoning alone would only be cut off again."""
        return (
            self.failure is None
            and self.stopped == "max_tokens"
            and not self.half
            and self.turn is not None
            and bool(self.turn.text)
        )

    def close(self) -> None:
        """Nothing more will come. What stays is complete, and none of it would prevent a next message."""
        self.close_text()
        parts = self.parts
        if self.stopped == "max_tokens":
            last = parts[-1] if parts else None
            if isinstance(last, ToolCall) and last.malformed is not None:
                self.drafted = last.name
                parts.pop()
            self.half = self.drafted
        elif self.failure is not None and self.failure.kind in CUT_SHORT:
            while parts and not isinstance(parts[-1], ToolCall):
                parts.pop()
        while parts and not self.is_whole and isinstance(parts[-1], Thought):
            parts.pop()  # a message that ends in its reasoning is not taken back by those who wrote it
        self.turn = AssistantTurn(tuple(parts)) if parts else None


async def _message(at: TurnPort, model: ModelProvider) -> _Message:
    message = _Message()
    at.emit(MessageStarted())
    executor = at.executor()
    outcomes: list[ToolOutcome] | None = None
    try:
        async with executor:
            try:
                await _stream(at, model, executor, message)
            except ModelError as error:  # calls that were complete before the stream broke keep their results
                message.failure = error
            finally:
                message.close()
                at.record_message(model, message.turn, message.stopped, message.usage)
            at.emit(MessageEnded(message.stopped, message.turn, message.usage))
            message.outcomes = outcomes = await executor.drain()
            message.stops = next((outcome.stops for outcome in outcomes if outcome.stops), "")
    finally:
        _remember(at, message.turn, executor.outcomes() if outcomes is None else outcomes)
    return message


async def _stream(at: TurnPort, model: ModelProvider, executor: Executor, message: _Message) -> None:
    async with model.stream(at.next_request()) as events:
        async for event in events:
            match event:
                case TextDelta(text):
                    message.pieces.append(text)
                    at.emit(TextStreamed(text))
                case CallReady(call):
                    message.drafted = ""
                    own_id = message.drafts.pop(call.id, None) or at.conversation.call_ids.claim(call.id)
                    own = call if own_id == call.id else replace(call, id=own_id)
                    message.add(own)
                    executor.submit(own)
                case ThoughtReady(thought):
                    message.add(thought)
                    if thought.text or thought.redacted:  # otherwise it is for the service alone
                        at.emit(ThoughtFinished(thought))
                case ThoughtDelta(text):
                    at.emit(ThoughtStreamed(text))
                case CallDelta(call_id, name, json):
                    message.drafted = name or message.drafted
                    if call_id not in message.drafts:
                        message.drafts[call_id] = at.conversation.call_ids.claim(call_id)
                    at.emit(CallDrafted(message.drafts[call_id], name, json))
                case Usage():
                    message.usage = event
                    at.emit(UsageReported(event))
                case Retrying():
                    at.emit(Retried(event))
                case Stopped(reason):
                    message.stopped = reason
                    message.is_whole = True
                    return


def _remember(at: TurnPort, turn: AssistantTurn | None, outcomes: list[ToolOutcome]) -> None:
    """Results are in the order of the calls. An incomplete call has an outcome too, and leaves nothing."""
    asked = [call.id for call in turn.calls] if turn else []
    outcomes = outcomes[: len(asked)]
    if not asked:
        at.conversation.add_message(turn, None)
        return
    results = tuple(ToolResult(outcome.call.id, outcome.content, outcome.is_error) for outcome in outcomes)
    added = ResultTurn(results, tuple(text for outcome in outcomes for text in outcome.messages))
    at.conversation.add_message(turn, added)
    at.record_state()
    at.emit(ResultsAdded(added))
