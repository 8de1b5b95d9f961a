"""The lines of `ferrule call --jsonl`: requests in, results out."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from typing import Any, cast

from ..core.calls import Status, ToolCall, ToolOutcome
from ..core.content import wire
from ..core.values import plain_value


@plain_value
class CallLine:
    """A call as a line asked for it. `id` is what the answer carries: a string, a number or the line's own."""

    id: Any
    call: ToolCall


@plain_value
class Rejected:
    """A line, or a part of a batch, that is not a valid request."""

    id: Any
    line: int
    reason: str


def requests(line: bytes, number: int) -> list[CallLine | Rejected]:
    """The calls a line asks for, in order; an invalid one is replaced by its error."""
    try:
        return list(_parse_calls(content_of(line, number), number))
    except BadLine as error:
        return [Rejected(None, number, str(error))]


class BadLine(ValueError):
    """The message says what is wrong with a line."""


def content_of(line: bytes, number: int) -> Any:
    """Raises `BadLine`."""
    try:
        text = line.decode("utf-8-sig" if number == 1 else "utf-8")
        return json.loads(text, parse_constant=_not_json)
    except UnicodeDecodeError as error:
        raise BadLine(f"The line is not UTF-8: {error.reason} at byte {error.start}.") from None
    except (ValueError, RecursionError) as error:
        raise BadLine(f"The line is not valid JSON: {error or type(error).__name__}.") from None


def _parse_calls(content: Any, number: int) -> Iterator[CallLine | Rejected]:
    if isinstance(content, dict) and "batch" in content:
        request = cast(Mapping[str, Any], content)
        if "tool" in request or not isinstance(request["batch"], list):
            yield Rejected(id_of(request), number, "`batch` must be a list of calls and the only key.")
            return
        for item in cast(list[Any], request["batch"]):
            yield _one(item, number)
    else:
        yield _one(content, number)


def _one(content: Any, number: int) -> CallLine | Rejected:
    if not isinstance(content, dict):
        return Rejected(None, number, 'A call must be a JSON object: {"id", "tool", "input"}.')
    request = cast(Mapping[str, Any], content)
    given = id_of(request)
    if request.get("id") is not None and given is None:
        return Rejected(None, number, "`id` must be a string or a number.")
    name = request.get("tool")
    if not isinstance(name, str) or not name:
        return Rejected(given, number, "`tool` must be the name of a tool.")
    id = number if given is None else given
    return CallLine(id, _call(str(id), name, request.get("input")))


def _call(id: str, name: str, input: Any) -> ToolCall:
    match input:
        case None:
            return ToolCall(id, name, {})
        case dict():
            return ToolCall(id, name, cast(dict[str, Any], input))
        case str():
            return ToolCall.from_text(id, name, input)
        case _:
            return ToolCall(id, name, {}, malformed=json.dumps(input))


def id_of(request: Mapping[str, Any]) -> Any:
    """What the answer can carry as its id: a string or a number that JSON can represent; otherwise `None`."""
    id = request.get("id")
    if isinstance(id, float) and not math.isfinite(id):
        return None
    return id if isinstance(id, str | int | float) and not isinstance(id, bool) else None


def _not_json(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


def answer(asked: CallLine, outcome: ToolOutcome) -> dict[str, Any]:
    return {
        "id": asked.id,
        "tool": asked.call.name,
        "is_error": outcome.is_error,
        "status": str(outcome.status),
        "content": [wire(block) for block in outcome.content],
        "ms": round(outcome.record.seconds * 1000, 3) if outcome.record else 0.0,
    }


def rejection(rejected: Rejected) -> dict[str, Any]:
    return {
        "id": rejected.id,
        "tool": None,
        "is_error": True,
        "status": str(Status.INVALID),
        "content": [{"type": "text", "text": rejected.reason}],
        "line": rejected.line,
    }


def encode_line(answer: Mapping[str, Any]) -> bytes:
    return json.dumps(answer, ensure_ascii=False).encode("utf-8", "replace") + b"\n"
