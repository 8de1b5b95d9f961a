"""Anthropic's Messages API, strictly."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, cast

from ..model_wires import anthropic_frames, texts_after_answer
from .strict_service import LoggedRequest, PlayedTurn, Refusal, Rule, StrictService, first_refusal, seal


class AnthropicService(StrictService):
    name: ClassVar[str] = "anthropic"
    model: ClassVar[str] = "anthropic:claude-sonnet-4-5"
    path: ClassVar[str] = "/v1/messages"
    rules: ClassVar[tuple[Rule, ...]] = ()

    def environ(self, url: str) -> dict[str, str]:
        return {"ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "a-key"}

    def converses(self, request: LoggedRequest) -> bool:
        return request.plain_path == self.path

    def refuse(self, request: LoggedRequest) -> Refusal | None:
        return first_refusal((with_key, answered_uses, unchanged_thoughts, *self.rules), request)

    def events(self, played: PlayedTurn) -> Iterator[bytes]:
        model = str(played.request.body.get("model"))
        for frame in anthropic_frames(played.turn, played.place, played.results, model, signature=seal):
            yield frame.encode()

    def results(self, request: LoggedRequest) -> str:
        return texts_after_answer(cast(list[dict[str, Any]], request.body.get("messages") or []))


def anthropic_error(message: str, *, status: int = 400, kind: str = "invalid_request_error") -> Refusal:
    return Refusal(status, {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_1"})


def with_key(request: LoggedRequest) -> Refusal | None:
    if not (request.headers.get("x-api-key") or request.headers.get("authorization")):
        return anthropic_error("x-api-key header is required", status=401, kind="authentication_error")
    if not request.headers.get("anthropic-version"):
        return anthropic_error("anthropic-version: header is required")
    return None


def answered_uses(request: LoggedRequest) -> Refusal | None:
    """Each `tool_use` has its result at the beginning of the next message, and each result its call."""
    waiting: list[str] = []
    for at, message in enumerate(cast(list[dict[str, Any]], request.body.get("messages") or [])):
        blocks = _blocks(message)
        given = [str(block["tool_use_id"]) for block in blocks if block["type"] == "tool_result"]
        if missing := [one for one in waiting if one not in given]:
            said = f"messages.{at - 1}: `tool_use` ids were found without `tool_result` blocks immediately after: "
            return anthropic_error(
                f"{said}{', '.join(missing)}. Each `tool_use` block must have a corresponding "
                "`tool_result` block in the next message."
            )
        if unknown := [one for one in given if one not in waiting]:
            return anthropic_error(
                f"messages.{at}.content.0: unexpected `tool_use_id` found in `tool_result` blocks: "
                f"{', '.join(unknown)}. Each `tool_result` block must have a corresponding "
                "`tool_use` block in the previous message."
            )
        waiting = [str(block["id"]) for block in blocks if block["type"] == "tool_use"]
    return None


def unchanged_thoughts(request: LoggedRequest) -> Refusal | None:
    """Reasoning comes back to the letter: its signature is of its text."""
    for at, message in enumerate(cast(list[dict[str, Any]], request.body.get("messages") or [])):
        for number, block in enumerate(_blocks(message)):
            if block["type"] == "thinking" and block.get("signature") != seal(block.get("thinking")):
                return anthropic_error(f"messages.{at}.content.{number}: Invalid `signature` in `thinking` block")
    return None


def _blocks(message: dict[str, Any]) -> list[dict[str, Any]]:
    content = message.get("content")
    return [{"type": "text", "text": content}] if isinstance(content, str) else cast(list[dict[str, Any]], content)
