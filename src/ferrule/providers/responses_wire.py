"""Requests of OpenAI's Responses API as bytes.

Nothing is stored at the service, so every request has the whole conversation. Reasoning
goes back encrypted, to the model that it came from, before the call or text it led to.
"""

from __future__ import annotations

import re
from binascii import crc32
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, assert_never, cast

from ..core.call_ids import narrow_id
from ..core.calls import ToolCall
from ..core.content import Block, Document, Image, Text, encodable
from ..core.model import AssistantTurn, Request, ResultTurn, Thought, ToolResult, Turn, UserTurn
from .json_fragments import ToolFragments, TurnFragments, encode_json, join_fragments
from .service_fields import fields_from

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..core.tool import ToolSpec

ITEM: Final = "item"
"""The extra field with an item of the answer that goes back whole: reasoning, or something unknown."""
MESSAGE: Final = "message"
"""The extra field with what belongs to the text before it, such as its phase."""
MOST_ID: Final = 64
LEAST_OUTPUT: Final = 16
SHORT_ANSWER: Final = 4_096
"""Fewer tokens are a short answer; so many more are left for reasoning before one."""
ENCRYPTED: Final = "reasoning.encrypted_content"

REFUSED: Final = {
    "items": r"encrypted content .*could not be|item with id .* not found|without its required",
    "summary": r"reasoning\.summary|reasoning summar",
    "effort": r"unsupported value: '(none|minimal|low|medium|high|xhigh|max)'",
    "include": r"encrypted content is not supported|(unsupported|unknown) parameter: '?include",
    "reasoning": r"(unsupported|unknown) parameter: '?reasoning",
}
"""What a request can do without, and the words in which it is refused: another key or model, or an account that may
not see summaries."""


class ResponsesBodies:
    """Request bodies; what was sent once is never encoded again."""

    def __init__(
        self,
        model: str,
        *,
        origin: str,
        effort: Callable[[Request], str] = lambda request: request.effort or "",
        reasons: bool = True,
    ) -> None:
        """`effort` gives the name of the effort as the model takes it, or nothing.

        Items that came from `origin` are sent back to it. A model that does not reason refuses to be asked for it.
        """
        self._model = model
        self._effort = effort
        self._left_out: set[str] = set() if reasons else {"reasoning"}
        self._turns = _fragments(origin)
        self._tools = ToolFragments(_tool)

    def body(self, request: Request) -> bytes:
        head: dict[str, Any] = {"model": self._model, "stream": True, "store": False}
        reasoning = self._reasoning(request)
        if request.max_tokens:
            room = SHORT_ANSWER if is_short_answer(request) and reasoning.get("effort") != "none" else 0
            head["max_output_tokens"] = max(request.max_tokens, LEAST_OUTPUT) + room
        if not self._left_out & {"reasoning", "include"}:
            head["include"] = [ENCRYPTED]
        if reasoning:
            head["reasoning"] = reasoning
        fragments = self._turns.of(request.history)
        head["prompt_cache_key"] = _cache_key(request.system, fragments)
        if request.system:
            head["instructions"] = request.system
        parts = [encode_json(head)[:-1]]
        if request.tools:
            parts += (b',"tools":[', b",".join(self._tools.of(request.tools)), b"]")
        parts.append(b',"input":[')
        return join_fragments(b"".join(parts), fragments, b"]}")

    def leave_out(self, said: str) -> bool:
        """Leaves out of all further bodies what the service refuses in these words; false if nothing can be."""
        part = next((part for part, words in REFUSED.items() if re.search(words, said, re.IGNORECASE)), None)
        if part is None or part in self._left_out:
            return False
        self._left_out.add(part)
        if part == "items":
            self._turns = _fragments(origin="")
        return True

    def _reasoning(self, request: Request) -> dict[str, str]:
        """A summary only where somebody asked for reasoning: not every account may have one."""
        if "reasoning" in self._left_out:
            return {}
        asked: dict[str, str] = {}
        if "effort" not in self._left_out and (effort := self._effort(request)):
            asked["effort"] = effort
        if "summary" not in self._left_out and request.thinking_tokens:
            asked["summary"] = "auto"
        return asked


def is_short_answer(request: Request) -> bool:
    """Whether reasoning could take up all of the answer that is asked for."""
    return 0 < (request.max_tokens or 0) < SHORT_ANSWER


def _fragments(origin: str) -> TurnFragments:
    return TurnFragments(lambda turn: b",".join(map(encode_json, _items_of(turn, origin))))


def _cache_key(system: str, fragments: list[bytes]) -> str:
    """The same for all requests of a conversation, also after it is resumed: they go to the machine with its cache.

    Two conversations with one key would lose nothing, so a checksum is enough.
    """
    first = next(filter(None, fragments), b"")
    return f"ferrule-{crc32(encodable(system).encode()):08x}-{crc32(first):08x}"


def _tool(spec: ToolSpec) -> dict[str, Any]:
    return {
        "type": "function",
        "name": spec.name,
        "description": spec.description,
        "parameters": dict(spec.input_schema),
        "strict": False,
    }


def _items_of(turn: Turn, origin: str) -> list[dict[str, Any]]:
    match turn:
        case UserTurn(content):
            return [{"type": "message", "role": "user", "content": _content(content)}]
        case ResultTurn(results, texts):
            return list(_results(results, texts))
        case AssistantTurn():
            return _answer(turn, origin)
        case _:
            assert_never(turn)


def _content(blocks: tuple[Block, ...]) -> str | list[dict[str, Any]]:
    if all(isinstance(block, Text) for block in blocks):
        return "\n\n".join(block.text for block in blocks if isinstance(block, Text))
    return [_part(block) for block in blocks]


def _part(block: Block) -> dict[str, Any]:
    match block:
        case Text(text):
            return {"type": "input_text", "text": text}
        case Image(media_type, data):
            return {"type": "input_image", "image_url": f"data:{media_type};base64,{data}", "detail": "auto"}
        case Document(media_type, data, title):
            file = f"data:{media_type};base64,{data}"
            return {"type": "input_file", "filename": _file_name(media_type, title), "file_data": file}
        case _:
            assert_never(block)


def _file_name(media_type: str, title: str) -> str:
    """The service tells the kind of a file by its name."""
    name = title or "document"
    return f"{name}.pdf" if media_type == "application/pdf" and not name.lower().endswith(".pdf") else name


def _results(results: tuple[ToolResult, ...], texts: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    for result in results:
        output = _content(result.content)
        yield {"type": "function_call_output", "call_id": _call_id(result.call_id), "output": output}
    if texts:
        yield {"type": "message", "role": "user", "content": _content(tuple(map(Text, texts)))}


def _answer(turn: AssistantTurn, origin: str) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    for part in turn.parts:
        match part:
            case Text(text):
                if text.strip():
                    items.append({"type": "message", "role": "assistant", "content": text})
            case Thought(extras=extras):
                _add_thought(items, fields_from(origin, extras))
            case ToolCall():
                items.append(_call(part, origin))
            case _:
                assert_never(part)
    while items and items[-1]["type"] == "reasoning":
        items.pop()  # it is refused without what it led to
    if not any(item["type"] == "reasoning" for item in items):
        for item in items:
            if item["type"] == "function_call":
                item.pop("id", None)  # by its id the service would miss the reasoning
    return items


def _add_thought(items: list[dict[str, Any]], fields: Mapping[str, Any]) -> None:
    """A transcript may have been changed, so only what can be an item is one."""
    item, own = fields.get(ITEM), fields.get(MESSAGE)
    if isinstance(item, dict) and isinstance(cast(dict[str, Any], item).get("type"), str):
        items.append({**cast(dict[str, Any], item)})
    elif isinstance(own, dict) and items and items[-1].get("role") == "assistant":
        items[-1] = {**cast(dict[str, Any], own), **items[-1]}


def _call(call: ToolCall, origin: str) -> dict[str, Any]:
    own = {
        "type": "function_call",
        "call_id": _call_id(call.id),
        "name": narrow_id(call.name)[:MOST_ID],
        "arguments": encode_json(dict(call.arguments)).decode(),
    }
    return {**fields_from(origin, call.extras), **own}


def _call_id(text: str) -> str:
    """As the service takes it: another one may have given a longer id.

    >>> _call_id("call_1"), len(_call_id("x" * 100)), _call_id("x" * 100) == _call_id("x" * 101)
    ('call_1', 64, False)
    """
    id = narrow_id(text)
    if len(id) <= MOST_ID:
        return id
    data = encodable(text).encode()
    return f"{id[:47]}_{crc32(data):08x}{crc32(data[::-1]):08x}"
