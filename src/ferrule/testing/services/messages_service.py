"""Anthropic's Messages API, strictly. Bedrock and Vertex take the same messages in other frames."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, Final, cast

from ...providers.script import ScriptedUsage
from ..model_wires import anthropic_values, frame_anthropic, texts_after_answer
from .strict_service import (
    LoggedRequest,
    PlayedTurn,
    Refusal,
    Rule,
    StrictService,
    count_tokens,
    dig,
    first_refusal,
    seal,
)

MOST_BREAKPOINTS: Final = 4
ID: Final = re.compile(r"[A-Za-z0-9_-]+")
NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,128}")
PICTURES: Final = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})


class AnthropicService(StrictService):
    name: ClassVar[str] = "anthropic"
    model: ClassVar[str] = "anthropic:claude-sonnet-4-5"
    path: ClassVar[str] = "/v1/messages"
    rules: ClassVar[tuple[Rule, ...]] = ()

    def environ(self, url: str) -> dict[str, str]:
        return {"ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "a-key"}

    def converses(self, request: LoggedRequest) -> bool:
        return request.plain_path == self.path and request.method == "POST"

    def refuse(self, request: LoggedRequest) -> Refusal | None:
        return first_refusal((with_key, *MESSAGE_RULES, *self.rules, self.refuse_length), request)

    def overflow(self, tokens: int, window: int) -> Refusal:
        return anthropic_error(f"prompt is too long: {tokens} tokens > {window} maximum")

    def events(self, played: PlayedTurn) -> Iterator[bytes]:
        return (frame_anthropic(event).encode() for event in self.values(played))

    def values(self, played: PlayedTurn) -> Iterator[dict[str, Any]]:
        turn = played.turn
        ids = [call.id or f"toolu_{seal(played.place, at)}" for at, call in enumerate(turn.calls)]
        calls = [call.model_copy(update={"id": one}) for call, one in zip(turn.calls, ids, strict=True)]
        usage = turn.usage or ScriptedUsage(input_tokens=count_tokens(played.request), output_tokens=10)
        thinking = turn.thinking or f"Step {played.place + 1}."
        vendor = turn.model_copy(
            update={"calls": calls, "usage": usage, "thinking": thinking if _thinks(played.request) else ""}
        )
        model = str(played.request.body.get("model"))
        yield from anthropic_values(vendor, played.place, played.results, model, signature=seal)

    def results(self, request: LoggedRequest) -> str:
        return texts_after_answer(_messages(request))


def anthropic_error(message: str, *, status: int = 400, kind: str = "invalid_request_error") -> Refusal:
    return Refusal(status, {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_1"})


def with_key(request: LoggedRequest) -> Refusal | None:
    if not (request.headers.get("x-api-key") or request.headers.get("authorization")):
        return anthropic_error("x-api-key header is required", status=401, kind="authentication_error")
    if not request.headers.get("anthropic-version"):
        return anthropic_error("anthropic-version: header is required")
    return None


def whole_body(request: LoggedRequest) -> Refusal | None:
    body = request.body
    most = body.get("max_tokens")
    if not isinstance(most, int) or most < 1:
        return anthropic_error("max_tokens: Field required")
    budget = dig(body, "thinking", "budget_tokens")
    if budget is not None and not 1024 <= budget < most:
        return anthropic_error("`max_tokens` must be greater than `thinking.budget_tokens`.")
    if not _messages(request) or _messages(request)[0]["role"] != "user":
        return anthropic_error('messages: first message must use the "user" role')
    for at, tool in enumerate(cast(list[dict[str, Any]], body.get("tools") or [])):
        if not NAME.fullmatch(str(tool.get("name"))):
            return anthropic_error(f"tools.{at}.custom.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'")
    return None


def usable_blocks(request: LoggedRequest) -> Refusal | None:
    for at, message in enumerate(_messages(request)):
        if message["role"] not in ("user", "assistant"):
            return anthropic_error(f"messages.{at}.role: Input should be 'user' or 'assistant'")
        if not _blocks(message):
            return anthropic_error(f"messages.{at}: all messages must have non-empty content")
        for number, block in enumerate(_blocks(message)):
            if problem := _block_problem(block):
                return anthropic_error(f"messages.{at}.content.{number}{problem}")
    return None


def _block_problem(block: dict[str, Any]) -> str:
    match block["type"]:
        case "text" if not str(block.get("text")).strip():
            return ": text content blocks must contain non-whitespace text"
        case "tool_use" if not ID.fullmatch(str(block["id"])):
            return ".tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'"
        case "tool_result" if block.get("is_error") and any(one["type"] != "text" for one in _content(block)):
            return ": all content must be type `text` if `is_error` is true"
        case "tool_result":
            inner = (problem for one in _content(block) if (problem := _block_problem(one)))
            return next(inner, "")
        case "image" if block["source"].get("media_type") not in PICTURES:
            return (
                ".image.source.base64.media_type: Input should be 'image/jpeg', 'image/png', 'image/gif', 'image/webp'"
            )
        case "document" if block["source"].get("media_type") != "application/pdf":
            return ".document.source.base64.media_type: Input should be 'application/pdf'"
        case _:
            return ""


def answered_uses(request: LoggedRequest) -> Refusal | None:
    """Each `tool_use` has its result at the beginning of the next message, and each result its call."""
    waiting: list[str] = []
    known: set[str] = set()
    for at, message in enumerate(_messages(request)):
        blocks = _blocks(message)
        given = [str(block["tool_use_id"]) for block in blocks if block["type"] == "tool_result"]
        kinds = [block["type"] == "tool_result" for block in blocks]
        missing = [one for one in waiting if one not in given or not all(kinds[: len(given)])]
        if missing:
            said = "`tool_use` ids were found without `tool_result` blocks immediately after: "
            return anthropic_error(f"messages.{at - 1}: {said}{', '.join(missing)}.")
        if unknown := [one for one in given if one not in waiting]:
            said = "unexpected `tool_use_id` found in `tool_result` blocks: "
            return anthropic_error(f"messages.{at}.content.0: {said}{', '.join(unknown)}.")
        waiting = [str(block["id"]) for block in blocks if block["type"] == "tool_use"]
        if known.intersection(waiting) or len(set(waiting)) < len(waiting):
            return anthropic_error(f"messages.{at}: `tool_use` ids must be unique")
        known.update(waiting)
    if waiting:
        said = "`tool_use` ids were found without `tool_result` blocks immediately after: "
        return anthropic_error(f"messages.{len(_messages(request)) - 1}: {said}{', '.join(waiting)}.")
    return None


def unchanged_thoughts(request: LoggedRequest) -> Refusal | None:
    """Reasoning comes back to the letter: its signature is of its text."""
    for at, message in enumerate(_messages(request)):
        for number, block in enumerate(_blocks(message)):
            if block["type"] == "thinking" and block.get("signature") != seal(block.get("thinking")):
                return anthropic_error(f"messages.{at}.content.{number}: Invalid `signature` in `thinking` block")
    return None


def thoughts_before_calls(request: LoggedRequest) -> Refusal | None:
    """With a budget for reasoning, the message whose calls are being answered begins with reasoning."""
    if dig(request.body, "thinking", "type") != "enabled":
        return None
    for at, message in reversed(list(enumerate(_messages(request)))):
        blocks = _blocks(message)
        if message["role"] == "assistant":
            if any(block["type"] == "tool_use" for block in blocks) and "thinking" not in blocks[0]["type"]:
                said = f"messages.{at}.content.0.type: Expected `thinking` or `redacted_thinking`, but found "
                said += f"`{blocks[0]['type']}`. When `thinking` is enabled, a final `assistant` message must start "
                return anthropic_error(
                    f"{said}with a thinking block (preceeding the lastmost set of `tool_use` and `tool_result` blocks)."
                )
            return None
        if not any(block["type"] == "tool_result" for block in blocks):
            return None
    return None


def few_breakpoints(request: LoggedRequest) -> Refusal | None:
    count = sum(1 for _ in _marked(request.body))
    if count <= MOST_BREAKPOINTS:
        return None
    said = f"A maximum of {MOST_BREAKPOINTS} blocks with cache_control may be provided. Found {count}."
    return anthropic_error(said)


def _marked(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        inner = cast(dict[str, Any], value)
        if inner.get("cache_control"):
            yield inner
        for one in inner.values():
            yield from _marked(one)
    elif isinstance(value, list):
        for one in cast(list[Any], value):
            yield from _marked(one)


MESSAGE_RULES: Final[tuple[Rule, ...]] = (
    whole_body,
    usable_blocks,
    answered_uses,
    unchanged_thoughts,
    thoughts_before_calls,
    few_breakpoints,
)
"""What holds of the body wherever Claude is asked in this format."""


def _thinks(request: LoggedRequest) -> bool:
    return dig(request.body, "thinking", "type") not in (None, "disabled")


def _messages(request: LoggedRequest) -> list[dict[str, Any]]:
    return cast(list[dict[str, Any]], request.body.get("messages") or [])


def _blocks(message: dict[str, Any]) -> Sequence[dict[str, Any]]:
    return _content(message)


def _content(holder: dict[str, Any]) -> Sequence[dict[str, Any]]:
    content: Any = holder.get("content")
    return [{"type": "text", "text": content}] if isinstance(content, str) else content or []
