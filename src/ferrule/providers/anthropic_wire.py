"""The Anthropic Messages API: requests as bytes, and its events as ours."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal, assert_never, cast

from ..core.call_ids import narrow_id
from ..core.calls import ToolCall
from ..core.content import Block, Text, encodable, wire
from ..core.model import (
    AssistantPart,
    AssistantTurn,
    CallDelta,
    CallReady,
    ModelEvent,
    Request,
    ResultTurn,
    Stopped,
    TextDelta,
    Thought,
    ThoughtDelta,
    ThoughtReady,
    ToolResult,
    Turn,
    Usage,
    UserTurn,
)
from .json_fragments import ToolFragments, TurnFragments, encode_json, join_fragments
from .known_models import Thinking
from .service_errors import ServiceAddress, cut, trouble_of_report, unreadable
from .service_requests import parse_object
from .sse import ServerSentEvent

if TYPE_CHECKING:
    from ..core.tool import ToolSpec

LEAST_THINKING = 1024
BREAKPOINT = b',"cache_control":{"type":"ephemeral"}'
EMPTY = {"type": "text", "text": "(empty)"}


class AnthropicBodies:
    """Request bodies. Those of one conversation begin with the same bytes, and what was sent is never encoded again."""

    def __init__(
        self, model: str, *, most_output: int, thinking: Thinking, opening: Mapping[str, Any] | None = None
    ) -> None:
        """`opening` is what a cloud that names the model elsewhere wants in the place of its name."""
        self._opening = opening or {"model": model, "stream": True}
        self._most_output = most_output
        self._thinking: Thinking = thinking
        self._turns = TurnFragments(_turn)
        self._tools = ToolFragments(_tool)

    def body(self, request: Request) -> bytes:
        limit = min(request.max_tokens or self._most_output, self._most_output)
        head: dict[str, Any] = {**self._opening, "max_tokens": limit}
        if thinking := self._thinking_for(request, limit):
            head["thinking"] = thinking
        if request.effort:
            head["output_config"] = {"effort": request.effort}
        parts = [encode_json(head)[:-1]]
        if request.tools:
            parts += (b',"tools":[', self._tool_list(request), b"]")
        if request.system:
            system = encode_json({"type": "text", "text": request.system})
            parts += (b',"system":[', _mark_breakpoint(system, closing=1), b"]")
        parts.append(b',"messages":[')
        return join_fragments(b"".join(parts), self._messages(request.history), b"]}")

    def _thinking_for(self, request: Request, limit: int) -> dict[str, Any] | None:
        tokens = request.thinking_tokens
        if not tokens:
            return None
        if self._thinking == "adaptive":
            return {"type": "adaptive"}
        if _continues_without_thought(request.history):
            return None
        budget = min(max(tokens, LEAST_THINKING), limit - 1)
        return {"type": "enabled", "budget_tokens": budget} if budget >= LEAST_THINKING else None

    def _tool_list(self, request: Request) -> bytes:
        fragments = self._tools.of(request.tools)
        if request.cache_after:
            last = min(request.cache_after, len(fragments)) - 1
            fragments[last] = _mark_breakpoint(fragments[last], closing=1)
        return b",".join(fragments)

    def _messages(self, history: Sequence[Turn]) -> list[bytes]:
        """The next request finds this one in the cache by the last message; this request finds the previous one by
        the message before it, even if more came between than the service looks back.
        """
        fragments = self._turns.of(history)
        backwards = range(len(history) - 1, -1, -1)
        for at in islice((at for at in backwards if not isinstance(history[at], AssistantTurn)), 2):
            fragments[at] = _mark_breakpoint(fragments[at], closing=3)
        return fragments


def _continues_without_thought(history: Sequence[Turn]) -> bool:
    """Whether the last message of the model made calls and has no reasoning, as after a compaction.

    With a budget for reasoning the service refuses such a message until the user has said something new.
    """
    last = next((turn for turn in reversed(history) if isinstance(turn, AssistantTurn)), None)
    if last is None or not last.calls:
        return False
    first = next((part for part in last.parts if _part(part) is not None), None)
    return not isinstance(first, Thought)


def _mark_breakpoint(fragment: bytes, *, closing: int) -> bytes:
    """With a breakpoint in its last block, whose closing bytes have the given length."""
    return fragment[:-closing] + BREAKPOINT + fragment[-closing:]


def _tool(spec: ToolSpec) -> dict[str, Any]:
    return {"name": spec.name, "description": spec.description, "input_schema": dict(spec.input_schema)}


def _turn(turn: Turn) -> bytes:
    match turn:
        case UserTurn(content):
            return encode_json({"role": "user", "content": _blocks(content) or [EMPTY]})
        case ResultTurn(results, messages):
            said = _blocks((*_beside_errors(results), *map(Text, messages)))
            return encode_json({"role": "user", "content": [*map(_result, results), *said] or [EMPTY]})
        case AssistantTurn(parts):
            content = [block for part in parts if (block := _part(part)) is not None]
            return encode_json({"role": "assistant", "content": content}) if content else b""
        case _:
            assert_never(turn)


def _blocks(content: tuple[Block, ...]) -> list[dict[str, Any]]:
    """The service refuses blank text, which means nothing anyway."""
    return [wire(block) for block in content if not (isinstance(block, Text) and not block.text.strip())]


def _beside_errors(results: tuple[ToolResult, ...]) -> Iterator[Block]:
    """An error can only be text; its pictures follow all results, as if the user had sent them."""
    for result in results:
        shown = [block for block in result.content if not isinstance(block, Text)] if result.is_error else []
        if shown:
            yield from (Text(f"Result of the call {narrow_id(result.call_id)}:"), *shown)


def _result(result: ToolResult) -> dict[str, Any]:
    content = _blocks(result.content)
    if result.is_error:  # which the service refuses without text
        content = [block for block in content if block["type"] == "text"] or [EMPTY]
    return {
        "type": "tool_result",
        "tool_use_id": narrow_id(result.call_id),
        **({"content": content} if content else {}),
        **({"is_error": True} if result.is_error else {}),
    }


def _part(part: AssistantPart) -> dict[str, Any] | None:
    match part:
        case Text(text):
            return {"type": "text", "text": encodable(text)} if text.strip() else None
        case Thought(text, signature, redacted):
            if redacted:
                return {"type": "redacted_thinking", "data": redacted}
            # Unsigned reasoning comes from another service, and would be refused.
            return {"type": "thinking", "thinking": text, "signature": signature} if signature else None
        case ToolCall(id, name, arguments):
            return {"type": "tool_use", "id": narrow_id(id), "name": narrow_id(name), "input": dict(arguments)}
        case _:
            assert_never(part)


class AnthropicReader:
    """The events of one message."""

    def __init__(self, service: ServiceAddress) -> None:
        self._service = service
        self._blocks: dict[int, _Block] = {}
        self._usage = Usage()
        self._stop: str | None = None
        self._called = False
        self.is_over = False

    @property
    def is_whole(self) -> bool:
        return self.is_over or (self._stop is not None and not self._blocks)

    def event(self, event: ServerSentEvent) -> Iterable[ModelEvent]:
        value = parse_object(self._service, event.data)
        try:
            yield from self._read_event(value)
        except (KeyError, TypeError, AttributeError, ValueError):
            raise unreadable(self._service, event.data) from None

    def _read_event(self, value: dict[str, Any]) -> Iterator[ModelEvent]:
        match value.get("type"):
            case "message_start":
                yield self._merge_usage(value["message"].get("usage"))
            case "content_block_start":
                block = _Block(value["content_block"])
                self._blocks[value["index"]] = block
                yield from block.open()
            case "content_block_delta":
                if (block := self._blocks.get(value["index"])) is not None:
                    yield from block.delta(value["delta"])
            case "content_block_stop":
                yield from self._close(value["index"])
            case "message_delta":
                self._stop = value["delta"].get("stop_reason") or self._stop
                yield self._merge_usage(value.get("usage"))
            case "message_stop":
                for index in list(self._blocks):
                    yield from self._close(index)
                self.is_over = True
            case "error":
                raise trouble_of_report(self._service, value)
            case _:
                pass  # a ping, or something that this version does not know

    def _close(self, index: int) -> Iterator[ModelEvent]:
        if (block := self._blocks.pop(index, None)) is not None:
            for event in block.close():
                self._called = self._called or isinstance(event, CallReady)
                yield event

    def _merge_usage(self, usage: Any) -> Usage:
        """A later report contains what has changed; what it leaves out stays the same."""
        new = cast(dict[str, Any], usage) if isinstance(usage, dict) else {}
        old = self._usage
        self._usage = Usage(
            _count(new.get("input_tokens"), old.input_tokens),
            _count(new.get("output_tokens"), old.output_tokens),
            _count(new.get("cache_read_input_tokens"), old.cache_read_tokens),
            _count(new.get("cache_creation_input_tokens"), old.cache_write_tokens),
        )
        return self._usage

    def whole(self, message: dict[str, Any]) -> Iterable[ModelEvent]:
        if message.get("type") == "error" or "content" not in message:
            raise trouble_of_report(self._service, message)
        try:
            for block in message["content"]:
                piece = _Block(block)
                yield from piece.open()
                self._called = self._called or piece.is_call
                yield from piece.close()
            yield self._merge_usage(message.get("usage"))
        except (KeyError, TypeError, AttributeError, ValueError):
            raise unreadable(self._service, str(message)) from None
        self._stop = message.get("stop_reason") or "end_turn"
        self.is_over = True

    def end(self, *, is_framed: bool) -> Iterable[ModelEvent]:
        if not self.is_whole:
            raise cut(self._service)
        yield Stopped(self._reason())

    def _reason(self) -> Literal["end", "tool_use", "max_tokens", "refusal"]:
        match self._stop:
            case "max_tokens" | "model_context_window_exceeded":
                return "max_tokens"
            case "refusal":
                return "refusal"
            case _:
                return "tool_use" if self._called else "end"


class _Block:
    """A content block while it is being received."""

    def __init__(self, start: dict[str, Any]) -> None:
        self._start = start
        self._kind: str = start["type"]
        self._pieces: list[str] = []
        self._signature = _text(start.get("signature"))

    @property
    def is_call(self) -> bool:
        return self._kind == "tool_use"

    def open(self) -> Iterator[ModelEvent]:
        if self._kind == "text" and (text := _text(self._start.get("text"))):
            yield TextDelta(text)
        elif self._kind == "thinking" and (text := _text(self._start.get("thinking"))):
            self._pieces.append(text)
            yield ThoughtDelta(text)
        elif self.is_call:
            yield CallDelta(self._id, self._name)

    def delta(self, delta: dict[str, Any]) -> Iterator[ModelEvent]:
        match delta.get("type"):
            case "text_delta" if text := _text(delta["text"]):
                yield TextDelta(text)
            case "thinking_delta":
                self._pieces.append(text := _text(delta["thinking"]))
                yield ThoughtDelta(text)
            case "signature_delta":
                self._signature += _text(delta["signature"])
            case "input_json_delta" if self.is_call and (text := _text(delta["partial_json"])):
                self._pieces.append(text)
                yield CallDelta(self._id, self._name, text)
            case _:
                pass

    def close(self) -> Iterator[ModelEvent]:
        text = "".join(self._pieces)
        if self._kind == "thinking":
            yield ThoughtReady(Thought(text, self._signature))
        elif self._kind == "redacted_thinking":
            yield ThoughtReady(Thought("", redacted=str(self._start["data"])))
        elif self.is_call:
            # Some services send the input whole, in the start of the block.
            arguments = text or encode_json(self._start.get("input") or {}).decode()
            yield CallReady(ToolCall.from_text(self._id, self._name, arguments, may_be_cut=True))

    @property
    def _id(self) -> str:
        return str(self._start["id"])

    @property
    def _name(self) -> str:
        return str(self._start["name"])


def _text(value: Any) -> str:
    """Raises `TypeError` for anything but a string or `None`."""
    if value is not None and not isinstance(value, str):
        raise TypeError(f"{type(value).__name__} instead of a string")
    return value or ""


def _count(value: Any, default: int) -> int:
    return value if isinstance(value, int) else default
