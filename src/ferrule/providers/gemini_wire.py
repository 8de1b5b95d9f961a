"""The Gemini API: requests as bytes, and the chunks of a stream as events.

Calls are answered by the name of their function, and by the id where the service gave one. Signatures of reasoning
belong to the part they came with and go back in it; a service that misses the one of a call refuses the request.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, assert_never, cast

from ..core.call_ids import narrow_id
from ..core.calls import ServiceFields, ToolCall
from ..core.content import Block, Document, Image, Text, encodable, plain_text
from ..core.model import (
    AssistantTurn,
    CallDelta,
    CallReady,
    ModelEvent,
    Request,
    ResultTurn,
    Stopped,
    StopReason,
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
from .service_errors import ServiceAddress, Trouble, cut, trouble_of_report, unreadable
from .service_fields import fields_from
from .service_requests import parse_object
from .sse import ServerSentEvent

if TYPE_CHECKING:
    from ..core.tool import ToolSpec

Part: TypeAlias = dict[str, Any]
Reasoning: TypeAlias = Literal["none", "budget", "level"]
"""How a model is told how much to reason: not at all, with a number of tokens, or with a word."""

SIGNATURE = "thoughtSignature"
SIGNED_LENGTH = "signedLength"
"""Ours: how many characters of the text before it the signature came with."""
FOREIGN_SIGNATURE = "skip_thought_signature_validator"
"""What the service documents for calls that it did not write itself."""
EMPTY: Part = {"text": "(empty)"}

LEVELS = {"low": "LOW", "medium": "MEDIUM", "high": "HIGH", "xhigh": "HIGH", "max": "HIGH"}
BUDGETS = {"low": 1_024, "medium": 8_192, "high": 24_576, "xhigh": 24_576, "max": 32_768}
LOW_LEVEL_TOKENS = 4_096
"""Up to so many tokens of reasoning, the low level is what was meant."""
QUICK_ANSWER = 4_096
"""An answer that may not be longer is a small question, which takes little reasoning."""
REASONING_ROOM = 8_192
"""The service counts reasoning as part of the answer. A short limit would leave nothing for words."""

_REFUSALS = (
    "SAFETY",
    "RECITATION",
    "BLOCKLIST",
    "PROHIBITED_CONTENT",
    "SPII",
    "LANGUAGE",
    "IMAGE_SAFETY",
    "MODEL_ARMOR",
)
_NOT_WRITTEN = (
    "MALFORMED_FUNCTION_CALL",
    "MALFORMED_RESPONSE",
    "MISSING_THOUGHT_SIGNATURE",
    "TOO_MANY_TOOL_CALLS",
    "UNEXPECTED_TOOL_CALL",
)
"""The model wrote something that the service could not use. Another try may go better."""


def reasoning_of(model: str) -> Reasoning:
    """
    >>> reasoning_of("gemini-3.8-flash"), reasoning_of("gemini-2.5-pro"), reasoning_of("gemma-4-31b-it")
    ('level', 'budget', 'none')
    """
    if not model.startswith("gemini-") or re.match(r"gemini-(1|2\.0)", model):
        return "none"
    return "budget" if model.startswith("gemini-2.5") else "level"


class GeminiBodies:
    """Request bodies; what was sent once is never encoded again."""

    def __init__(self, model: str, *, origin: str, most_output: int) -> None:
        """What came from `origin` in opaque fields is sent back to it."""
        self._model = model
        self._origin = origin
        self._most_output = most_output
        self._reasoning = reasoning_of(model)
        self._calls: dict[str, ToolCall] = {}
        self._turns = TurnFragments(self._encode_turn)
        self._tools = ToolFragments(_declaration)

    def body(self, request: Request) -> bytes:
        head: dict[str, Any] = {"generationConfig": self._config(request)}
        if request.system:
            head["systemInstruction"] = {"parts": [{"text": request.system}]}
        parts = [encode_json(head)[:-1]]
        if request.tools:
            parts += (b',"tools":[{"functionDeclarations":[', b",".join(self._tools.of(request.tools)), b"]}]")
        parts.append(b',"contents":[')
        return join_fragments(b"".join(parts), self._contents(request.history), b"]}")

    def _config(self, request: Request) -> dict[str, Any]:
        config: dict[str, Any] = {}
        if request.max_tokens:
            room = REASONING_ROOM if self._reasoning != "none" else 0
            config["maxOutputTokens"] = min(request.max_tokens + room, self._most_output)
        if self._reasoning != "none":
            config["thinkingConfig"] = {"includeThoughts": True, **self._amount(request)}
        return config

    def _amount(self, request: Request) -> dict[str, Any]:
        """Nothing where nothing is asked for: these models reason as they see fit."""
        is_quick = bool(request.max_tokens) and (request.max_tokens or 0) <= QUICK_ANSWER
        tokens, effort = request.thinking_tokens, request.effort
        if self._reasoning == "level":
            level = "LOW" if (tokens or 0) <= LOW_LEVEL_TOKENS else "HIGH"
            return {"thinkingLevel": LEVELS[effort] if effort else level} if effort or tokens or is_quick else {}
        least, most = (128, 32_768) if "pro" in self._model else (512, 24_576)
        wanted = tokens or (BUDGETS[effort] if effort else 0)
        return {"thinkingBudget": min(max(wanted, least), most)} if wanted or is_quick else {}

    def _contents(self, history: Sequence[Turn]) -> list[bytes]:
        """Roles alternate: what the user says in a row is one content."""
        self._calls = {call.id: call for turn in history if isinstance(turn, AssistantTurn) for call in turn.calls}
        contents: list[bytes] = []
        last = ""
        for turn, fragment in zip(history, self._turns.of(history), strict=True):
            if not fragment:
                continue
            role = "model" if isinstance(turn, AssistantTurn) else "user"
            if role == last:
                contents[-1] = b"%s,%s]}" % (contents[-1][:-2], fragment)
            else:
                contents.append(b'{"role":"%s","parts":[%s]}' % (role.encode(), fragment))
            last = role
        return contents

    def _encode_turn(self, turn: Turn) -> bytes:
        return b",".join(map(encode_json, self._parts_of(turn)))

    def _parts_of(self, turn: Turn) -> list[Part]:
        match turn:
            case UserTurn(content):
                return list(_blocks(content)) or [EMPTY]
            case ResultTurn(results, messages):
                responses = [self._response(result) for result in results]
                shown = [part for result in results for part in self._pictures(result)]
                return [*responses, *shown, *_blocks(tuple(map(Text, messages)))] or [EMPTY]
            case AssistantTurn():
                return self._answer(turn)
            case _:
                assert_never(turn)

    def _response(self, result: ToolResult) -> Part:
        words = "\n\n".join(encodable(block.text) for block in result.content if isinstance(block, Text))
        call = self._calls.get(result.call_id)
        if call is None:  # a response without its call is refused
            return {"text": f"Result of an earlier call:\n{words or plain_text(result.content)}"}
        given = fields_from(self._origin, call.extras).get("id")
        return {
            "functionResponse": {
                **({"id": given} if given else {}),
                "name": function_name(call.name),
                "response": {"error" if result.is_error else "output": words},
            }
        }

    def _pictures(self, result: ToolResult) -> Iterator[Part]:
        """Only new models take pictures inside of a response; all take them beside it."""
        shown = [block for block in result.content if not isinstance(block, Text)]
        if shown:
            call = self._calls.get(result.call_id)
            yield {
                "text": f"Result of the call of {function_name(call.name)}:" if call else "Result of an earlier call:"
            }
            yield from _blocks(tuple(shown))

    def _answer(self, turn: AssistantTurn) -> list[Part]:
        parts: list[Part] = []
        has_called = False
        for part in turn.parts:
            match part:
                case Text(text):
                    parts += [{"text": encodable(text)}] if text.strip() else []
                case Thought():
                    _add_signed(parts, part, fields_from(self._origin, part.extras))
                case ToolCall():
                    parts.append(self._call(part, is_first=not has_called))
                    has_called = True
                case _:
                    assert_never(part)
        return parts

    def _call(self, call: ToolCall, *, is_first: bool) -> Part:
        own = fields_from(self._origin, call.extras)
        function: Part = {"name": function_name(call.name), "args": dict(call.arguments)}
        if own.get("id"):
            function["id"] = own["id"]
        wants_signature = is_first and self._reasoning == "level"
        signature = own.get(SIGNATURE) or (FOREIGN_SIGNATURE if wants_signature else None)
        return {"functionCall": function, **({SIGNATURE: signature} if signature else {})}


def function_name(name: str) -> str:
    """As the service takes it: letters, digits, `_` and `-`, a letter or `_` first, at most 64.

    >>> function_name("Read"), function_name("functions.Read 1"), function_name("7up")
    ('Read', 'functions_Read_1', '_7up')
    """
    narrow = narrow_id(name)
    return (narrow if narrow[0].isalpha() or narrow[0] == "_" else f"_{narrow}")[:64]


def _declaration(spec: ToolSpec) -> Part:
    return {"name": spec.name, "description": spec.description, "parametersJsonSchema": dict(spec.input_schema)}


def _blocks(content: tuple[Block, ...]) -> Iterator[Part]:
    for block in content:
        match block:
            case Text(text):
                if text.strip():
                    yield {"text": encodable(text)}
            case Image(media_type, data):
                yield {"inlineData": {"mimeType": media_type, "data": data}}
            case Document(media_type, data, title):
                if title:
                    yield {"text": f"{encodable(title)}:"}
                yield {"inlineData": {"mimeType": media_type, "data": data}}
            case _:
                assert_never(block)


def _add_signed(parts: list[Part], thought: Thought, own: Mapping[str, Any]) -> None:
    """Reasoning goes back only where it is signed; a signature of text goes back with the text it came with."""
    signature = own.get(SIGNATURE)
    if not signature:
        return
    if thought.text:
        parts.append({"text": encodable(thought.text), "thought": True, SIGNATURE: signature})
        return
    length = int(own.get(SIGNED_LENGTH) or 0)
    before, signed = "", ""
    if length and parts and parts[-1].keys() == {"text"}:
        text = parts.pop()["text"]
        before, signed = text[:-length], text[-length:]
    if before:
        parts.append({"text": before})
    parts.append({"text": signed, SIGNATURE: signature})


class GeminiReader:
    """The chunks of one message."""

    is_over = False
    """Never before the stream ends: usage may follow the last part."""

    def __init__(self, service: ServiceAddress) -> None:
        self._service = service
        self._thought: list[str] = []
        self._has_content = False
        self._called = False
        self._finish = ""
        self._blocked = ""

    @property
    def is_whole(self) -> bool:
        return bool(self._finish or self._blocked)

    def event(self, event: ServerSentEvent) -> Iterable[ModelEvent]:
        yield from self._chunk(parse_object(self._service, event.data), event.data)

    def whole(self, message: dict[str, Any]) -> Iterable[ModelEvent]:
        yield from self._chunk(message, str(message))

    def _chunk(self, chunk: dict[str, Any], text: str) -> Iterator[ModelEvent]:
        if chunk.get("error"):
            raise trouble_of_report(self._service, chunk)
        try:
            for candidate in (chunk.get("candidates") or ())[:1]:
                yield from self._candidate(candidate)
            feedback: dict[str, Any] = chunk.get("promptFeedback") or {}
            self._blocked = str(feedback.get("blockReason") or self._blocked)
            if usage := chunk.get("usageMetadata"):
                yield read_usage(usage)
        except (KeyError, TypeError, AttributeError, ValueError):
            raise unreadable(self._service, text) from None

    def _candidate(self, candidate: dict[str, Any]) -> Iterator[ModelEvent]:
        content: dict[str, Any] = candidate.get("content") or {}
        for part in content.get("parts") or ():
            yield from self._part(part)
        if finish := candidate.get("finishReason"):
            self._finish = str(finish)
            if finish in _NOT_WRITTEN:
                said = f"{finish} {candidate.get('finishMessage') or ''}".strip()
                raise Trouble(
                    f"{self._service.name} could not use what the model wrote: {said}.", "answer", passing=True
                )

    def _part(self, part: Part) -> Iterator[ModelEvent]:
        signature = part.get(SIGNATURE)
        own: dict[str, Any] = {SIGNATURE: signature} if signature else {}
        self._has_content = True
        if call := part.get("functionCall"):
            yield from self._end_thought()
            yield from self._read_call(call, own)
        elif part.get("thought"):
            text = str(part.get("text") or "")
            self._thought.append(text)
            yield ThoughtDelta(text)
            if own:
                yield from self._end_thought(own)
        else:
            yield from self._end_thought()
            text = str(part.get("text") or "")
            if text:
                yield TextDelta(text)
            if own:
                fields = {**own, SIGNED_LENGTH: len(text)}
                yield ThoughtReady(Thought("", extras=ServiceFields(self._service.origin, fields)))

    def _read_call(self, call: dict[str, Any], own: dict[str, Any]) -> Iterator[ModelEvent]:
        self._called = True
        given, name = str(call.get("id") or ""), str(call["name"])
        arguments = dict(cast(Mapping[str, Any], call.get("args") or {}))
        id = given or f"call_{os.urandom(9).hex()}"
        fields = {**own, **({"id": given} if given else {})}
        yield CallDelta(id, name)
        yield CallDelta(id, name, encode_json(arguments).decode())
        extras = ServiceFields(self._service.origin, fields) if fields else None
        yield CallReady(ToolCall(id, name, arguments, extras=extras))

    def _end_thought(self, own: dict[str, Any] | None = None) -> Iterator[ModelEvent]:
        if self._thought:
            text = "".join(self._thought)
            yield ThoughtReady(Thought(text, extras=ServiceFields(self._service.origin, own) if own else None))
            self._thought.clear()

    def end(self, *, is_framed: bool) -> Iterable[ModelEvent]:
        if not self.is_whole:
            raise cut(self._service)
        yield from self._end_thought()
        reason = self._reason()
        if reason == "end" and not self._has_content:  # these models sometimes stop before they begin
            raise Trouble(f"{self._service.name} sent an empty answer ({self._finish}).", "answer", passing=True)
        yield Stopped(reason)

    def _reason(self) -> StopReason:
        if self._blocked or self._finish in _REFUSALS:
            return "refusal"
        if self._finish == "MAX_TOKENS":
            return "max_tokens"
        return "tool_use" if self._called else "end"


def read_usage(usage: Mapping[str, Any]) -> Usage:
    """Here the input includes cached tokens and the output leaves out reasoning; ours are the other way round.

    >>> read_usage({"promptTokenCount": 10, "cachedContentTokenCount": 4, "thoughtsTokenCount": 3})
    Usage(input_tokens=6, output_tokens=3, cache_read_tokens=4, cache_write_tokens=0, cache_hour_tokens=0)
    """
    prompt, tools, cached, words, thoughts = (
        value if isinstance(value := usage.get(f"{name}TokenCount"), int) else 0
        for name in ("prompt", "toolUsePrompt", "cachedContent", "candidates", "thoughts")
    )
    return Usage(max(0, prompt + tools - cached), words + thoughts, cached)
