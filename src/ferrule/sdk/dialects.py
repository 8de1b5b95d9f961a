"""How model services write tools, calls and results: Anthropic's messages, and both of OpenAI's interfaces."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, assert_never, cast

from ..core.calls import ToolCall, ToolOutcome
from ..core.content import Block, Document, Image, Text, encodable, wire
from ..core.tool import ToolSpec

Wire = dict[str, Any]


class Dialect(StrEnum):
    ANTHROPIC = "anthropic"
    OPENAI = "openai"
    """Chat completions."""
    OPENAI_RESPONSES = "openai-responses"


@dataclass(frozen=True, slots=True)
class Heard:
    """The calls of one response, and the turns that repeat it in the next request."""

    dialect: Dialect
    calls: tuple[ToolCall, ...]
    turns: tuple[Wire, ...]


def definition(spec: ToolSpec, dialect: Dialect) -> Wire:
    schema = dict(spec.input_schema)
    match dialect:
        case Dialect.ANTHROPIC:
            return {"name": spec.name, "description": spec.description, "input_schema": schema}
        case Dialect.OPENAI:
            function = {"name": spec.name, "description": spec.description, "parameters": schema}
            return {"type": "function", "function": function}
        case Dialect.OPENAI_RESPONSES:
            function = {"name": spec.name, "description": spec.description, "parameters": schema}
            return {"type": "function", **function, "strict": False}
        case _:
            assert_never(dialect)


def parse_response(response: Any) -> Heard:
    """What a response asks for. Takes the objects of both packages, and the same as plain dicts.

    Raises `TypeError` for anything else.
    """
    plain = _plain(response)
    if choices := plain.get("choices"):
        return _from_chat(_plain(_plain(choices[0]).get("message")))
    if isinstance(items := plain.get("output"), list):
        return _from_responses([_plain(item) for item in cast(list[Any], items)])
    if plain.get("role") == "assistant":
        content = plain.get("content")
        if isinstance(content, list) and "tool_calls" not in plain:
            return _from_anthropic([_plain(block) for block in cast(list[Any], content)])
        return _from_chat(plain)
    raise TypeError(
        f"{type(response).__name__} is not a supported response. "
        "Pass what messages.create, chat.completions.create or responses.create returned, not a stream."
    )


def results(dialect: Dialect, outcomes: Sequence[ToolOutcome], said: Iterable[str]) -> list[Wire]:
    """One result for each outcome, in their order, then further notes for the model."""
    words = [*(text for outcome in outcomes for text in outcome.messages), *said]
    match dialect:
        case Dialect.ANTHROPIC:
            texts = [{"type": "text", "text": encodable(text)} for text in words]
            return [{"role": "user", "content": [*map(_to_anthropic, outcomes), *texts]}]
        case Dialect.OPENAI:
            return [*map(_to_chat, outcomes), *_pictures(outcomes), *_as_user(words)]
        case Dialect.OPENAI_RESPONSES:
            return [*map(_to_responses, outcomes), *_as_user(words)]
        case _:
            assert_never(dialect)


def _plain(response: Any) -> Wire:
    if isinstance(response, Mapping):
        return dict(cast(Mapping[str, Any], response))
    if hasattr(response, "model_dump"):
        return response.model_dump(mode="json", exclude_none=True, warnings=False)
    return {}


# Anthropic


def _from_anthropic(content: list[Wire]) -> Heard:
    calls = tuple(_anthropic_call(block) for block in content if block.get("type") == "tool_use")
    return Heard(Dialect.ANTHROPIC, calls, ({"role": "assistant", "content": content},))


def _anthropic_call(block: Wire) -> ToolCall:
    input = block.get("input")
    if isinstance(input, Mapping):
        return ToolCall(block["id"], block["name"], cast(Mapping[str, Any], input))
    return ToolCall(block["id"], block["name"], {}, malformed=str(input))


def _to_anthropic(outcome: ToolOutcome) -> Wire:
    content = [wire(_readable(block)) for block in outcome.content]
    result: Wire = {"type": "tool_result", "tool_use_id": outcome.call.id, "content": content}
    return {**result, "is_error": True} if outcome.is_error else result


def _readable(block: Block) -> Block:
    """A document of an unsupported kind is named instead."""
    if isinstance(block, Document) and block.media_type != "application/pdf":
        return Text(f"[{block.media_type}]")
    return block


# OpenAI, chat completions

_NOT_SENT_BACK = frozenset({"annotations", "audio", "parsed"})


def _from_chat(message: Wire) -> Heard:
    calls = tuple(_chat_call(call) for call in cast(list[Wire], message.get("tool_calls") or []))
    turn = {key: value for key, value in message.items() if key not in _NOT_SENT_BACK}
    return Heard(Dialect.OPENAI, calls, ({"content": None, **turn, "role": "assistant"},))


def _chat_call(call: Wire) -> ToolCall:
    if "function" in call:
        return ToolCall.from_text(call["id"], call["function"]["name"], call["function"].get("arguments") or "")
    custom = call.get("custom", {})  # a tool that takes plain text, which ours do not
    return ToolCall(call["id"], custom.get("name", ""), {}, malformed=str(custom.get("input", "")))


def _to_chat(outcome: ToolOutcome) -> Wire:
    return {"role": "tool", "tool_call_id": outcome.call.id, "content": _text_of_outcome(outcome)}


def _pictures(outcomes: Sequence[ToolOutcome]) -> list[Wire]:
    """Results there are text only, so pictures follow as if the user showed them."""
    shown = [
        {"type": "image_url", "image_url": {"url": _data_url(block)}}
        for outcome in outcomes
        for block in outcome.content
        if isinstance(block, Image)
    ]
    lead = {"type": "text", "text": "The pictures of the results above, in their order:"}
    return [{"role": "user", "content": [lead, *shown]}] if shown else []


# OpenAI, responses


def _from_responses(items: list[Wire]) -> Heard:
    calls = tuple(
        ToolCall.from_text(item["call_id"], item["name"], item.get("arguments") or "")
        for item in items
        if item.get("type") == "function_call"
    )
    return Heard(Dialect.OPENAI_RESPONSES, calls, tuple(items))


def _to_responses(outcome: ToolOutcome) -> Wire:
    images = [{"type": "input_image", "image_url": _data_url(one)} for one in outcome.content if isinstance(one, Image)]
    text = _text_of_outcome(outcome)
    output: Any = [{"type": "input_text", "text": text}, *images] if images else text
    return {"type": "function_call_output", "call_id": outcome.call.id, "output": output}


# Both of OpenAI's


def _text_of_outcome(outcome: ToolOutcome) -> str:
    parts = [block.text if isinstance(block, Text) else f"[{block.media_type}]" for block in outcome.content]
    return encodable("\n".join(parts))


def _as_user(words: list[str]) -> list[Wire]:
    return [{"role": "user", "content": encodable("\n\n".join(words))}] if words else []


def _data_url(image: Image) -> str:
    return f"data:{image.media_type};base64,{image.base64}"
