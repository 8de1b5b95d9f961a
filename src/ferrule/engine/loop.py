"""The agent loop: ask the model, run its calls, repeat until it stops asking."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableSequence, Sequence
from dataclasses import dataclass, field
from typing import Literal

from ..core.calls import ToolOutcome
from ..core.content import Text
from ..core.events import (
    CallDrafted,
    Emit,
    MessageEnded,
    MessageStarted,
    NoteAdded,
    Retried,
    TextStreamed,
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
    TextDelta,
    ThoughtDelta,
    ThoughtReady,
    ToolResult,
    Turn,
    Usage,
    UserTurn,
)
from ..core.ports import Note
from .executor import Executor


@dataclass(frozen=True, slots=True, kw_only=True)
class Turnstile:
    """What one turn works with: the conversation, a model, and fresh parts for every message."""

    history: MutableSequence[Turn]
    model: ModelProvider
    request: Callable[[], Request]
    executor: Callable[[], Executor]
    emit: Emit
    notes: Callable[[], Awaitable[Sequence[Note]]]
    stopped: Callable[[], bool] = lambda: False
    """Whether a call of the last message wants the turn to end."""


async def run_turn(at: Turnstile) -> TurnEnded:
    """Extend the history until the model answers without a call.

    Interrupted, cut off or not: every call in the history is followed by its result.
    """
    while True:
        _tell(at, await at.notes())
        message = await _message(at)
        if message.error:
            return TurnEnded("error", message.error)
        if message.stops:
            return TurnEnded("stopped", message.stops)
        if at.stopped():
            return TurnEnded("end")
        if not message.called:
            return TurnEnded("end" if message.stopped == "tool_use" else message.stopped)


def _tell(at: Turnstile, notes: Sequence[Note]) -> None:
    """Behind what the model has not read yet, so that nothing it has read moves."""
    if not notes:
        return
    texts = tuple(map(str, notes))
    match at.history[-1]:
        case UserTurn(content):
            at.history[-1] = UserTurn((*content, *map(Text, texts)))
        case ResultTurn(results, messages):
            at.history[-1] = ResultTurn(results, (*messages, *texts))
        case AssistantTurn():
            at.history.append(UserTurn(tuple(map(Text, texts))))
    for note in notes:
        at.emit(NoteAdded(note.kind, note.text))


@dataclass(slots=True)
class _Message:
    """What the model wrote so far. Text is kept in pieces until something else follows it."""

    parts: list[AssistantPart] = field(default_factory=list[AssistantPart])
    pieces: list[str] = field(default_factory=list[str])
    stopped: Literal["end", "tool_use", "max_tokens", "refusal"] = "end"
    error: str = ""
    called: bool = False
    stops: str = ""

    def add(self, part: AssistantPart) -> None:
        self.close_text()
        self.parts.append(part)

    def close_text(self) -> None:
        if self.pieces:
            self.parts.append(Text("".join(self.pieces)))
            self.pieces.clear()


async def _message(at: Turnstile) -> _Message:
    message = _Message()
    at.emit(MessageStarted())
    executor = at.executor()
    outcomes: list[ToolOutcome] | None = None
    try:
        async with executor:
            try:
                await _stream(at, executor, message)
            except ModelError as error:  # calls that were complete before the stream broke keep their results
                message.error = str(error)
            at.emit(MessageEnded())
            outcomes = await executor.drain()
            message.stops = next((outcome.stops for outcome in outcomes if outcome.stops), "")
    finally:
        _remember(at.history, message, executor.outcomes() if outcomes is None else outcomes)
    return message


async def _stream(at: Turnstile, executor: Executor, message: _Message) -> None:
    async with at.model.stream(at.request()) as events:
        async for event in events:
            match event:
                case TextDelta(text):
                    message.pieces.append(text)
                    at.emit(TextStreamed(text))
                case CallReady(call):
                    message.called = True
                    message.add(call)
                    executor.submit(call)
                case ThoughtReady(thought):
                    message.add(thought)
                case ThoughtDelta(text):
                    at.emit(ThoughtStreamed(text))
                case CallDelta(call_id, name, json):
                    at.emit(CallDrafted(call_id, name, json))
                case Usage():
                    at.emit(UsageReported(event))
                case Retrying():
                    at.emit(Retried(event))
                case Stopped(reason):
                    message.stopped = reason
                    return


def _remember(history: MutableSequence[Turn], message: _Message, outcomes: list[ToolOutcome]) -> None:
    message.close_text()
    if message.parts:
        history.append(AssistantTurn(tuple(message.parts)))
    if outcomes:
        results = tuple(ToolResult(outcome.call.id, outcome.content, outcome.is_error) for outcome in outcomes)
        history.append(ResultTurn(results, tuple(text for outcome in outcomes for text in outcome.messages)))
