"""OpenAI's chat completions: requests as bytes, and the chunks of a stream as events.

Many services differ in details. What can be understood is accepted: calls without
an id or an index, arguments as an object, an end without a reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, assert_never, cast

from ..core.calls import ServiceFields, ToolCall
from ..core.content import Block, Document, Image, Text, encodable
from ..core.model import (
    AssistantTurn,
    ModelEvent,
    Request,
    ResultTurn,
    Stopped,
    Thought,
    ThoughtDelta,
    ThoughtReady,
    ToolResult,
    Turn,
    Usage,
    UserTurn,
)
from .json_fragments import ToolFragments, TurnFragments, encode_json, join_fragments
from .openai_calls import LONGEST_ID, CallsInProgress, short_id
from .service_errors import ServiceAddress, cut, empty, trouble_of_report, unreadable
from .service_fields import fields_from, merge_pieces
from .service_requests import DONE, parse_object
from .sse import ServerSentEvent
from .written_text import TextCall, WrittenText

if TYPE_CHECKING:
    from ..core.tool import ToolSpec

StopReason = Literal["end", "tool_use", "max_tokens", "refusal"]
Content: TypeAlias = str | list[dict[str, Any]]

REASONING_FIELDS = ("reasoning_content", "reasoning")
"""Two names for readable reasoning. Services that want it back want it under the name they used."""
REASONING_NAME = "reasoning_name"
RETURNED = ("reasoning_details", "thinking_blocks", "extra_content")
"""What else some services send with a message and want back: signed or encrypted reasoning."""


class OpenAiBodies:
    """Request bodies; what was sent once is never encoded again."""

    def __init__(self, model: str, *, limit_name: str, origin: str = "") -> None:
        """`limit_name` is the service's parameter for the longest answer; new models and old servers differ.

        What came from `origin` in opaque fields is sent back to it.
        """
        self._model = model
        self._limit_name = limit_name
        self._origin = origin
        self._turns = TurnFragments(lambda turn: _turn(turn, origin))
        self._tools = ToolFragments(tool_object)

    def body(self, request: Request) -> bytes:
        parts = [encode_json(self.head(request))[:-1]]
        if request.tools:
            parts += (b',"tools":[', b",".join(self._tools.of(request.tools)), b"]")
        system = [encode_json({"role": "system", "content": request.system})] if request.system else []
        parts.append(b',"messages":[')
        return join_fragments(b"".join(parts), [*system, *self._messages(request.history)], b"]}")

    def head(self, request: Request) -> dict[str, Any]:
        """Everything but the tools and the messages."""
        head: dict[str, Any] = {
            "model": self._model,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        if request.max_tokens:
            head[self._limit_name] = request.max_tokens
        if request.effort:
            head["reasoning_effort"] = "xhigh" if request.effort == "max" else request.effort
        return head

    def _messages(self, history: Sequence[Turn]) -> list[bytes]:
        """Consecutive messages of the user are merged: many chat templates require roles to alternate."""
        fragments = self._turns.of(history)
        for first, after in _runs_of_user(history, fragments):
            messages = [message for turn in history[first:after] for message in messages_of(turn, self._origin)]
            fragments[first] = b",".join(map(encode_json, merge_users(messages)))
            fragments[first + 1 : after] = [b""] * (after - first - 1)
        return fragments


def _runs_of_user(history: Sequence[Turn], fragments: Sequence[bytes]) -> list[tuple[int, int]]:
    """Runs of turns to merge because user text follows user text: the first index, and the one after the last."""
    runs: list[tuple[int, int]] = []
    first = None
    for at, turn in enumerate(history):
        if not fragments[at]:
            continue
        if isinstance(turn, UserTurn) and first is not None:
            if runs and runs[-1][0] == first:
                runs.pop()
            runs.append((first, at + 1))
        elif isinstance(turn, UserTurn) or (isinstance(turn, ResultTurn) and _ends_with_user(turn)):
            first = at
        else:
            first = None
    return runs


def _ends_with_user(turn: ResultTurn) -> bool:
    return bool(turn.messages) or any(not isinstance(block, Text) for one in turn.results for block in one.content)


def merge_users(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    merged: list[dict[str, Any]] = []
    for message in messages:
        if merged and merged[-1]["role"] == message["role"] == "user":
            merged[-1] = {"role": "user", "content": _join(merged[-1]["content"], message["content"])}
        else:
            merged.append(message)
    return merged


def _join(one: Content, other: Content) -> Content:
    if isinstance(one, str) and isinstance(other, str):
        return "\n\n".join(text for text in (one, other) if text.strip())
    return [*content_parts(one), *content_parts(other)]


def content_parts(content: Content) -> list[dict[str, Any]]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content.strip() else []
    return content


def tool_object(spec: ToolSpec) -> dict[str, Any]:
    function = {"name": spec.name, "description": spec.description, "parameters": dict(spec.input_schema)}
    return {"type": "function", "function": function}


def _turn(turn: Turn, origin: str) -> bytes:
    return b",".join(map(encode_json, messages_of(turn, origin)))


def messages_of(turn: Turn, origin: str) -> list[dict[str, Any]]:
    """The turn as messages; of what a service sent in fields of its own, only those of `origin`."""
    match turn:
        case UserTurn(content):
            return [{"role": "user", "content": _content(content)}]
        case ResultTurn(results, texts):
            return list(_results(results, texts))
        case AssistantTurn():
            return list(_answer(turn, origin))
        case _:
            assert_never(turn)


def _content(blocks: tuple[Block, ...]) -> Content:
    """Plain text wherever possible: not every service accepts a list."""
    if all(isinstance(block, Text) for block in blocks):
        return _text(blocks)
    return [_part(block) for block in blocks]


def _text(blocks: tuple[Block, ...]) -> str:
    return "\n\n".join(block.text for block in blocks if isinstance(block, Text))


def _part(block: Block) -> dict[str, Any]:
    match block:
        case Text(text):
            return {"type": "text", "text": encodable(text)}
        case Image(media_type, data):
            return {"type": "image_url", "image_url": {"url": f"data:{media_type};base64,{data}"}}
        case Document(media_type, data, title):
            file = {"filename": title or "document.pdf", "file_data": f"data:{media_type};base64,{data}"}
            return {"type": "file", "file": file}
        case _:
            assert_never(block)


def _results(results: tuple[ToolResult, ...], texts: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    """A result can only be text; the pictures of all results follow, as if the user had sent them."""
    shown: list[Block] = []
    for result in results:
        pictures = [block for block in result.content if not isinstance(block, Text)]
        words = _text(result.content)
        if pictures:
            shown += (Text(f"Result of the call {result.call_id}:"), *pictures)
            words = words or "See the next message of the user."
        yield {"role": "tool", "tool_call_id": _sent_id(result.call_id), "content": words}
    shown += map(Text, texts)
    if shown:
        yield {"role": "user", "content": _content(tuple(shown))}


def _answer(turn: AssistantTurn, origin: str) -> Iterator[dict[str, Any]]:
    calls = [_call(call, origin) for call in turn.calls]
    if turn.text or calls:
        message: dict[str, Any] = {"role": "assistant", "content": turn.text or None}
        message |= _reasoning(turn, origin)
        yield {**message, "tool_calls": calls} if calls else message


def _call(call: ToolCall, origin: str) -> dict[str, Any]:
    arguments = encode_json(dict(call.arguments)).decode()
    function = {"name": call.name, "arguments": arguments}
    return {"id": _sent_id(call.id), "type": "function", "function": function, **fields_from(origin, call.extras)}


def _sent_id(id: str) -> str:
    return id if len(id) <= LONGEST_ID else short_id(id)


def _reasoning(turn: AssistantTurn, origin: str) -> dict[str, Any]:
    """The reasoning under the name that the service gave it, and whatever else it sent with the message."""
    fields: dict[str, Any] = {}
    for part in turn.parts:
        if isinstance(part, Thought) and (own := dict(fields_from(origin, part.extras))):
            name = own.pop(REASONING_NAME, None)
            if name:
                fields[name] = fields.get(name, "") + part.text
            fields |= own
    return fields


class OpenAiReader:
    """The chunks of one message."""

    def __init__(self, service: ServiceAddress, calls: CallsInProgress, text: WrittenText | None = None) -> None:
        """`text` knows which tools may be called in the text."""
        self._service = service
        self._calls = calls
        self._written = text or WrittenText(())
        self._thought: list[str] = []
        self._reasoning_name = ""
        self._returned: dict[str, Any] = {}
        self._has_content = False
        self._refused = False
        self._finish: str | None = None
        self.is_over = False

    @property
    def is_whole(self) -> bool:
        return self.is_over or self._finish is not None

    def event(self, event: ServerSentEvent) -> Iterable[ModelEvent]:
        if event.data.strip() == DONE:
            self.is_over = True
            return
        yield from self._chunk(parse_object(self._service, event.data), event.data)

    def whole(self, message: dict[str, Any]) -> Iterable[ModelEvent]:
        if not message.get("choices"):
            raise trouble_of_report(self._service, message)
        yield from self._chunk(message, str(message))
        self.is_over = True

    def _chunk(self, chunk: dict[str, Any], text: str) -> Iterator[ModelEvent]:
        if chunk.get("error"):
            raise trouble_of_report(self._service, chunk)
        try:
            for choice in chunk.get("choices") or ():
                if not choice.get("index"):  # the first, or the only one
                    yield from self._choice(choice)
            if isinstance(usage := chunk.get("usage"), dict):
                yield _usage(cast(dict[str, Any], usage))
        except (KeyError, TypeError, AttributeError, ValueError):
            raise unreadable(self._service, text) from None

    def _choice(self, choice: dict[str, Any]) -> Iterator[ModelEvent]:
        delta: dict[str, Any] = choice.get("delta") or choice.get("message") or {}
        self._collect_returned(delta)
        if name := next((name for name in REASONING_FIELDS if delta.get(name)), ""):
            self._has_content = True
            self._reasoning_name = name
            self._thought.append(str(delta[name]))
            yield from self._written.end_guess()
            yield ThoughtDelta(str(delta[name]))
        if thought := _thinking_parts(delta.get("content")):
            self._has_content = True
            self._thought.append(thought)
            yield ThoughtDelta(thought)
        if words := _words(delta.get("content")) or _words(delta.get("refusal")):
            yield from self._end_thought()
            self._has_content = True
            self._refused = self._refused or bool(delta.get("refusal"))
            yield from self._written.feed(words)
        if calls := delta.get("tool_calls") or _old_call(delta.get("function_call")):
            yield from self._end_thought()
            yield from self._written.release()
            self._has_content = True
            for call in cast(list[dict[str, Any]], [calls] if isinstance(calls, dict) else calls):
                yield from self._calls.piece(call)
        if choice.get("finish_reason"):
            self._finish = str(choice["finish_reason"])
            yield from self._finish_parts()

    def _end_thought(self) -> Iterator[ModelEvent]:
        if self._thought:
            extras = ServiceFields(self._service.origin, {REASONING_NAME: self._reasoning_name})
            yield ThoughtReady(Thought("".join(self._thought), extras=extras))
            self._thought.clear()

    def _collect_returned(self, delta: dict[str, Any]) -> None:
        for name in RETURNED:
            if value := delta.get(name):
                self._returned[name] = merge_pieces(self._returned.get(name), value)

    def end(self, *, is_framed: bool) -> Iterable[ModelEvent]:
        """Without a stop reason, a marked end of a non-empty message is an end, if no call is incomplete."""
        is_silent_end = is_framed and self._has_content and not self._calls.has_half
        if not self.is_whole and not is_silent_end:
            raise cut(self._service)
        yield from self._finish_parts()
        if self._finish == "error":
            raise cut(self._service, "it reports an error without saying which")
        if not self._has_content and self._reason() == "end":
            raise empty(self._service)
        if self._returned:
            yield ThoughtReady(Thought("", extras=ServiceFields(self._service.origin, self._returned)))
        yield Stopped(self._reason())

    def _finish_parts(self) -> Iterator[ModelEvent]:
        """Reasoning, text and calls that wait for the end of the message. Calls in the text become calls here."""
        yield from self._end_thought()
        is_cut = self._finish in (None, "length", "error")
        for part in self._written.end(is_cut=is_cut):
            if isinstance(part, TextCall):
                yield from self._calls.add(part.name, part.arguments)
            else:
                yield part
        yield from self._calls.finish(is_cut=is_cut)

    def _reason(self) -> StopReason:
        if self._finish == "length":
            return "max_tokens"
        if self._finish == "content_filter" or self._refused:
            return "refusal"
        return "tool_use" if self._calls.count else "end"


def _thinking_parts(content: Any) -> str:
    """Reasoning that a service sends as parts of the content."""
    if not isinstance(content, list):
        return ""
    parts = cast(list[dict[str, Any]], content)
    return "".join(_words(part.get("thinking")) for part in parts if part.get("type") == "thinking")


def _words(content: Any) -> str:
    """The text of a string, or of a list of parts."""
    if isinstance(content, list):
        parts = cast(list[dict[str, Any]], content)
        return "".join(str(part.get("text") or "") for part in parts)
    return str(content) if content else ""


def _old_call(function: Any) -> list[dict[str, Any]]:
    """The older form for a single call, which some servers still use."""
    return [{"index": 0, "function": function}] if function else []


def _usage(usage: dict[str, Any]) -> Usage:
    """Here the input includes cached tokens; ours does not."""
    details: dict[str, Any] = usage.get("prompt_tokens_details") or {}
    read = _count(details.get("cached_tokens")) or _count(usage.get("prompt_cache_hit_tokens"))
    written = _count(details.get("cache_write_tokens"))
    fresh = max(0, _count(usage.get("prompt_tokens")) - read - written)
    return Usage(fresh, _count(usage.get("completion_tokens")), read, written)


def _count(value: Any) -> int:
    return value if isinstance(value, int) else 0
