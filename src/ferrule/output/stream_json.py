"""A conversation as lines of JSON, in the shapes that consumers of `stream-json` know.

Text and calls of the model come as one `assistant` line for each block, as
soon as the block is whole. Results come as `user` lines once the message they
answer is whole, in the order of its calls.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, assert_never, cast

from ..core.calls import ToolCall, ToolOutcome
from ..core.content import Text, encodable, plain_text, wire
from ..core.events import (
    AgentStarted,
    CallDrafted,
    Compacted,
    Envelope,
    HookRan,
    HookStarted,
    ListChanged,
    MessageEnded,
    MessageStarted,
    Missed,
    NoteAdded,
    PermissionDecided,
    PrefixMoved,
    ResultsAdded,
    Retried,
    TextStreamed,
    ThoughtFinished,
    ThoughtStreamed,
    ToolFinished,
    ToolProgressed,
    ToolRequested,
    ToolStarted,
    TurnEnded,
    TurnStarted,
    UsageReported,
    ValueChanged,
)
from ..core.ids import new_uuid
from ..core.model import Retrying, StopReason, Thought, Usage
from ..core.ports import Note
from .block_events import BlockEvents
from .run_answer import usage_object

LONGEST = 100_000
"""Characters of one string; the text for the model is already bounded, the output may not be."""


Shape: TypeAlias = Callable[[ToolOutcome], Mapping[str, Any] | None]
"""Gives the output of a call as others know it; `None` for one that they do not know."""


def own_shape(outcome: ToolOutcome) -> None:
    """Every output as its tool gave it."""


def as_json(outcome: ToolOutcome, shape: Shape = own_shape) -> Any:
    """The output of a call that went well; of any other, and of one that JSON cannot hold, the words for the model."""
    if not outcome.is_error and outcome.output is not None:
        from pydantic_core import PydanticSerializationError, to_jsonable_python

        try:
            return _bound(to_jsonable_python(shape(outcome) or outcome.output, bytes_mode="base64"))
        except (PydanticSerializationError, ValueError, RecursionError):
            pass  # a value of a kind that JSON does not know
    text = encodable(plain_text(outcome.content))
    return f"Error: {text}" if outcome.is_error else text


def without_nan(value: Any) -> Any:
    """With text for the numbers that JSON has no word for."""
    match value:
        case float() if not math.isfinite(value):
            return str(value)
        case list():
            return [without_nan(item) for item in cast(list[Any], value)]
        case dict():
            return {key: without_nan(item) for key, item in cast(dict[Any, Any], value).items()}
        case _:
            return value


def _bound(value: Any) -> Any:
    match value:
        case str():
            text = encodable(value)
            return text if len(text) <= LONGEST else f"{text[:LONGEST]}… ({len(text):,} characters)"
        case list():
            return [_bound(item) for item in cast(list[Any], value)]
        case dict():
            items = cast(dict[Any, Any], value).items()
            return {key: item if key == "base64" else _bound(item) for key, item in items}  # of no use when cut
        case _:
            return value


STOP_REASONS: Mapping[StopReason, str] = {
    "end": "end_turn",
    "tool_use": "tool_use",
    "max_tokens": "max_tokens",
    "refusal": "refusal",
}

_Beside: TypeAlias = (
    NoteAdded
    | Retried
    | Compacted
    | Missed
    | TurnStarted
    | AgentStarted
    | ToolStarted
    | ToolProgressed
    | PermissionDecided
    | HookStarted
    | HookRan
    | ListChanged
    | PrefixMoved
    | ValueChanged
    | ResultsAdded
)


@dataclass(slots=True)
class _Message:
    """A message of the model that is being written, or whose calls still run."""

    id: str
    text: list[str] = field(default_factory=list[str])
    usage: Usage = field(default_factory=Usage)
    is_whole: bool = False
    waiting: dict[str, ToolOutcome | None] = field(default_factory=dict[str, ToolOutcome | None])
    """Calls whose results have not been reported, in order; with the result if it is known."""


class StreamJson:
    """Reads the events of one agent, gives lines. `parent` is the call that an agent other than the main one is for."""

    def __init__(
        self,
        session_id: str,
        *,
        model: Callable[[], str],
        partial: bool = False,
        parent: str | None = None,
        shape: Shape = own_shape,
        new_id: Callable[[], str] = new_uuid,
    ) -> None:
        """`shape` turns an outcome into the value shown beside the text that the model reads."""
        self._session_id = session_id
        self._model = model
        self._parent = parent
        self._shape = shape
        self.new_id = new_id
        self._message: _Message | None = None
        self._nested: dict[str, ToolCall] = {}
        self._blocks = BlockEvents() if partial else None

    def lines(self, envelope: Envelope) -> list[dict[str, Any]]:
        return list(self._lines(envelope))

    def line(self, type: str, **more: Any) -> dict[str, Any]:
        """A line of any type, with what every line carries."""
        return {"type": type, **more, "session_id": self._session_id, "uuid": self.new_id()}

    def outermost_call(self, call_id: str) -> str:
        """The call that has a line: where one was made by another, the outermost of them."""
        while call_id in self._nested:
            call_id = call_id.rpartition(".")[0]
        return call_id

    def _lines(self, envelope: Envelope) -> Iterator[dict[str, Any]]:
        match event := envelope.event:
            case MessageStarted():
                yield from self._results_due(whole=True)
                self._message = _Message(f"msg_{self.new_id().replace('-', '')}")
            case TextStreamed() | ThoughtStreamed() | ThoughtFinished() | CallDrafted() | ToolRequested():
                yield from self._lines_of(event)
            case UsageReported(usage):
                self._writing.usage = usage
            case MessageEnded(reason, turn):
                if turn is None or not isinstance(turn.parts[-1], Text):
                    self._writing.text.clear()  # it was cut off, and is asked for again
                yield from self._text()
                yield from self._partial(lambda blocks: blocks.end(STOP_REASONS[reason], self._writing.usage))
                yield from self._results_due(whole=True)
            case ToolFinished(outcome):
                yield from self._on_finished(outcome)
            case TurnEnded():
                yield from self._text()
                yield from self._results_due(whole=True)
                self._message = None
            case _:
                yield from self._beside(event)

    def _beside(self, event: _Beside) -> Iterator[dict[str, Any]]:
        """What is not written by the model, nor a result."""
        match event:
            case NoteAdded(kind, text):
                yield self._user([_text_block(str(Note(kind, text)))], isSynthetic=True)
            case Retried(retrying):
                yield self._retry(retrying)
            case Compacted():
                yield from self._compaction(event)
            case HookStarted(moment, name, id):
                yield self.line("system", subtype="hook_started", hook_id=id, hook_name=name, hook_event=moment)
            case HookRan(moment, name, decision, _, message, id):
                known = {"hook_id": id, "hook_name": name, "hook_event": moment}
                outcome = "error" if decision == "failed" else "success"
                said = {"outcome": outcome, "decision": decision, "output": message, "stdout": "", "stderr": ""}
                yield self.line("system", subtype="hook_response", **known, **said)
            case Missed(count):
                yield self.line("system", subtype="events_missed", count=count)
            case TurnStarted() | AgentStarted() | ToolStarted() | ToolProgressed() | PermissionDecided():
                pass
            case ListChanged() | PrefixMoved() | ResultsAdded() | ValueChanged():
                pass
            case _:
                assert_never(event)

    def _compaction(self, event: Compacted) -> Iterator[dict[str, Any]]:
        """The boundary, and then what replaces the older turns, if anything does."""
        about = {"trigger": event.trigger, "pre_tokens": event.before, "post_tokens": event.after, "how": event.how}
        yield self.line("system", subtype="compact_boundary", compact_metadata=about, parent_tool_use_id=self._parent)
        if event.summary:
            yield self._user([_text_block(event.summary)], isSynthetic=True)

    @property
    def _writing(self) -> _Message:
        if self._message is None:
            self._message = _Message(f"msg_{self.new_id().replace('-', '')}")
        return self._message

    def _lines_of(
        self, event: TextStreamed | ThoughtStreamed | ThoughtFinished | CallDrafted | ToolRequested
    ) -> Iterator[dict[str, Any]]:
        message = self._writing
        yield from self._partial(lambda blocks: blocks.begin(message.id, self._model(), message.usage))
        match event:
            case TextStreamed(text):
                message.text.append(text)
                yield from self._partial(lambda blocks: blocks.text(text))
            case ThoughtStreamed(text):
                yield from self._text()
                yield from self._partial(lambda blocks: blocks.add_thought(text))
            case ThoughtFinished(thought):
                yield from self._text()
                yield from self._partial(lambda blocks: blocks.end_thought(thought))
                yield self._assistant(_block_of_thought(thought))
            case CallDrafted(call_id, name, piece):
                yield from self._text()
                yield from self._partial(lambda blocks: blocks.call(call_id, name, piece))
            case ToolRequested(call):
                yield from self._on_requested(call)

    def _on_requested(self, call: ToolCall) -> Iterator[dict[str, Any]]:
        parent = call.id.rpartition(".")[0]
        if parent and (parent in self._writing.waiting or parent in self._nested):
            self._nested[call.id] = call  # a call that another call makes is not part of the conversation
            return
        yield from self._text()
        yield from self._partial(lambda blocks: blocks.end_call(call))
        self._writing.waiting[call.id] = None
        yield self._assistant(_call_block(call))

    def _text(self) -> Iterator[dict[str, Any]]:
        """The text that was streamed so far, as the block it is once something else follows."""
        message = self._message
        if message is not None and message.text:
            text = "".join(message.text)
            message.text.clear()
            yield from self._partial(lambda blocks: blocks.close())
            yield self._assistant(_text_block(text))

    def _on_finished(self, outcome: ToolOutcome) -> Iterator[dict[str, Any]]:
        if self._nested.pop(outcome.call.id, None) is not None:
            return
        message = self._writing
        message.waiting[outcome.call.id] = outcome
        yield from self._results_due(whole=message.is_whole)

    def _results_due(self, *, whole: bool) -> Iterator[dict[str, Any]]:
        """The results that can be reported: those of a complete message, each once all before it were reported."""
        message = self._message
        if message is None or not whole:
            return
        message.is_whole = True
        while message.waiting:
            call_id, outcome = next(iter(message.waiting.items()))
            if outcome is None:
                return
            del message.waiting[call_id]
            yield self._result(outcome)

    def _result(self, outcome: ToolOutcome) -> dict[str, Any]:
        block: dict[str, Any] = {"type": "tool_result", "tool_use_id": outcome.call.id}
        match outcome.content:
            case (Text(text),):
                block["content"] = encodable(text)
            case content:
                block["content"] = [wire(part) for part in content]
        if outcome.is_error:
            block["is_error"] = True
        texts = [_text_block(text) for text in outcome.messages]
        return self._user([block, *texts], tool_use_result=as_json(outcome, self._shape))

    def _assistant(self, block: dict[str, Any]) -> dict[str, Any]:
        message = {
            "id": self._writing.id,
            "type": "message",
            "role": "assistant",
            "model": self._model(),
            "content": [block],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": usage_object(self._writing.usage),
        }
        return self.line("assistant", message=message, parent_tool_use_id=self._parent)

    def _user(self, content: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
        message = {"role": "user", "content": content}
        return self.line("user", message=message, parent_tool_use_id=self._parent, **more, timestamp=now_as_text())

    def _retry(self, retrying: Retrying) -> dict[str, Any]:
        return self.line(
            "system",
            subtype="api_retry",
            attempt=retrying.attempt - 1,
            max_retries=retrying.attempts - 1,
            retry_delay_ms=round(retrying.seconds * 1000),
            error_status=retrying.status,
            error=retrying.reason,
        )

    def _partial(self, make: Callable[[BlockEvents], Iterator[dict[str, Any]]]) -> Iterator[dict[str, Any]]:
        if self._blocks is not None:
            for event in make(self._blocks):
                yield self.line("stream_event", event=event, parent_tool_use_id=self._parent)


def now_as_text() -> str:
    """In the form that others write.

    >>> len(now_as_text()), now_as_text()[-1]
    (24, 'Z')
    """
    now = time.time()
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(now))}.{int(now * 1000) % 1000:03}Z"


def encode_json_line(line: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> bytes:
    """One line, whatever it contains: JSON escapes line breaks, and half a character becomes a replacement."""
    try:
        text = json.dumps(line, ensure_ascii=False, allow_nan=False)
    except ValueError:  # a model may write a number that JSON has no word for
        text = json.dumps(without_nan(line), ensure_ascii=False)
    return text.encode("utf-8", "replace") + b"\n"


def _text_block(text: str) -> dict[str, Any]:
    return {"type": "text", "text": encodable(text)}


def _block_of_thought(thought: Thought) -> dict[str, Any]:
    if thought.redacted:
        return {"type": "redacted_thinking", "data": thought.redacted}
    return {"type": "thinking", "thinking": thought.text, "signature": thought.signature}


def _call_block(call: ToolCall) -> dict[str, Any]:
    return {"type": "tool_use", "id": call.id, "name": call.name, "input": dict(call.arguments)}
