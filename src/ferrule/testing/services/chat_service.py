"""OpenAI's chat completions, and what every service that speaks them has in common."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, cast

from ..model_wires import openai_chunks, texts_after_answer
from .strict_service import LoggedRequest, PlayedTurn, Refusal, Rule, StrictService, first_refusal

LONGEST_ID = 40


class ChatService(StrictService):
    """A service that speaks chat completions. `rules` are checked in their order, after those that all share."""

    name: ClassVar[str] = "chat"
    model: ClassVar[str] = "openai:any"
    rules: ClassVar[tuple[Rule, ...]] = ()
    path: ClassVar[str] = "/v1/chat/completions"

    def environ(self, url: str) -> dict[str, str]:
        return {"OPENAI_BASE_URL": url + self.path.removesuffix("/chat/completions"), "OPENAI_API_KEY": "a-key"}

    def converses(self, request: LoggedRequest) -> bool:
        return request.plain_path == self.path

    def refuse(self, request: LoggedRequest) -> Refusal | None:
        return first_refusal((bearer_key, known_fields, answered_calls, *self.rules), request)

    def events(self, played: PlayedTurn) -> Iterator[bytes]:
        for chunk in self.chunks(played):
            yield b"data: " + json.dumps(chunk, ensure_ascii=False, separators=(",", ":")).encode() + b"\n\n"
        yield b"data: [DONE]\n\n"

    def chunks(self, played: PlayedTurn) -> Iterator[dict[str, Any]]:
        """The place to add what a vendor adds."""
        yield from openai_chunks(played.turn, played.place, played.results, str(played.request.body.get("model")))

    def results(self, request: LoggedRequest) -> str:
        return texts_after_answer(messages_of(request))


class OpenAiService(ChatService):
    """api.openai.com/v1/chat/completions."""

    name = "openai"
    model = "openai:gpt-4.1"

    def refuse(self, request: LoggedRequest) -> Refusal | None:
        return super().refuse(request) or short_ids(request)


def messages_of(request: LoggedRequest) -> list[dict[str, Any]]:
    return cast(list[dict[str, Any]], request.body.get("messages") or [])


def openai_error(message: str, *, status: int = 400, param: str | None = None, code: str | None = None) -> Refusal:
    """The error body of OpenAI, which most others copy."""
    kind = {401: "authentication_error", 429: "rate_limit_error"}.get(status, "invalid_request_error")
    return Refusal(status, {"error": {"message": message, "type": kind, "param": param, "code": code}})


def bearer_key(request: LoggedRequest) -> Refusal | None:
    if request.headers.get("authorization", "").startswith("Bearer "):
        return None
    return openai_error("You didn't provide an API key.", status=401)


def known_fields(request: LoggedRequest) -> Refusal | None:
    """Roles and parts that the language knows."""
    for at, message in enumerate(messages_of(request)):
        if message.get("role") not in ("system", "developer", "user", "assistant", "tool"):
            said = f"Invalid value: '{message.get('role')}'."
            return openai_error(said, param=f"messages[{at}].role", code="invalid_value")
    if not messages_of(request):
        return openai_error("Invalid 'messages': empty array.", param="messages", code="empty_array")
    return None


def answered_calls(request: LoggedRequest) -> Refusal | None:
    """Each call has its result directly behind it, and each result its call."""
    waiting: list[str] = []
    for at, message in enumerate(messages_of(request)):
        if message["role"] == "tool":
            if message.get("tool_call_id") not in waiting:
                said = "messages with role 'tool' must be a response to a preceeding message with 'tool_calls'."
                return openai_error(f"Invalid parameter: {said}", param=f"messages.[{at}].role")
            waiting.remove(str(message["tool_call_id"]))
        elif waiting:
            return _unanswered(waiting)
        else:
            waiting = [str(call["id"]) for call in cast(Sequence[dict[str, Any]], message.get("tool_calls") or ())]
    return _unanswered(waiting) if waiting else None


def _unanswered(ids: list[str]) -> Refusal:
    said = "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'."
    return openai_error(f"{said} The following tool_call_ids did not have response messages: {', '.join(ids)}")


def short_ids(request: LoggedRequest) -> Refusal | None:
    for at, message in enumerate(messages_of(request)):
        for number, call in enumerate(cast(Sequence[dict[str, Any]], message.get("tool_calls") or ())):
            if len(str(call["id"])) > LONGEST_ID:
                where = f"messages[{at}].tool_calls[{number}].id"
                said = f"Invalid '{where}': string too long. Expected a string with maximum length {LONGEST_ID}, "
                said += f"but got a string with length {len(str(call['id']))} instead."
                return openai_error(said, param=where, code="string_above_max_length")
    return None
