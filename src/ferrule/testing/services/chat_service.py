"""OpenAI's chat completions as the base of all services that speak them, and the rules that they share."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar, Final, cast

from ...providers.script import ScriptedTurn, ScriptedUsage
from ..model_wires import openai_chunks, texts_after_answer
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

ROLES: Final = frozenset({"system", "developer", "user", "assistant", "tool"})
PARTS: Final = frozenset({"text", "image_url", "input_audio", "file"})


class ChatService(StrictService):
    """A service that speaks chat completions. `rules` are checked in their order, after those that all share."""

    name: ClassVar[str] = "chat"
    model: ClassVar[str] = "openai:any"
    path: ClassVar[str] = "/v1/chat/completions"
    rules: ClassVar[tuple[Rule, ...]] = ()
    needs_key: ClassVar[bool] = True
    takes_pictures: ClassVar[bool] = True
    thinks: ClassVar[bool] = False
    """Whether it reasons before each message, also where the script says nothing of it."""

    def environ(self, url: str) -> dict[str, str]:
        key = {"OPENAI_API_KEY": "a-key"} if self.needs_key else {}
        return {"OPENAI_BASE_URL": url + self.path.removesuffix("/chat/completions"), **key}

    def converses(self, request: LoggedRequest) -> bool:
        return request.plain_path == self.path and request.method == "POST"

    def refuse(self, request: LoggedRequest) -> Refusal | None:
        shared = (self.refuse_key, known_messages, answered_calls, unique_ids, usable_tools, self.refuse_pictures)
        return first_refusal((*shared, *self.rules, self.refuse_length), request)

    def refuse_key(self, request: LoggedRequest) -> Refusal | None:
        if not self.needs_key or request.headers.get("authorization", "").startswith("Bearer "):
            return None
        return openai_error("You didn't provide an API key.", status=401)

    def refuse_pictures(self, request: LoggedRequest) -> Refusal | None:
        if self.takes_pictures or all(kind == "text" for kind in part_kinds(request)):
            return None
        return self.no_pictures()

    def no_pictures(self) -> Refusal:
        return openai_error("Invalid content type. image_url is only supported by certain models.")

    def overflow(self, tokens: int, window: int) -> Refusal:
        said = f"This model's maximum context length is {window} tokens. However, your messages resulted in {tokens} "
        said += "tokens. Please reduce the length of the messages."
        return openai_error(said, param="messages", code="context_length_exceeded")

    def results(self, request: LoggedRequest) -> str:
        return texts_after_answer(messages_of(request))

    def events(self, played: PlayedTurn) -> Iterator[bytes]:
        for chunk in self.chunks(played):
            yield b"data: " + json.dumps(chunk, ensure_ascii=False, separators=(",", ":")).encode() + b"\n\n"
        yield b"data: [DONE]\n\n"

    def chunks(self, played: PlayedTurn) -> Iterator[dict[str, Any]]:
        """The place to add what a vendor adds."""
        turn = self.vendor_turn(played)
        yield from openai_chunks(turn, played.place, played.results, str(played.request.body.get("model")))

    def vendor_turn(self, played: PlayedTurn) -> ScriptedTurn:
        """With ids, reasoning and usage as the vendor has them."""
        turn = played.turn
        ids = [call.id or self.make_id(f"{played.place}-{at}") for at, call in enumerate(turn.calls)]
        calls = [call.model_copy(update={"id": one}) for call, one in zip(turn.calls, ids, strict=True)]
        thinking = turn.thinking or (f"Step {played.place + 1}." if self.thinks else "")
        usage = self.usage(played) if dig(played.request.body, "stream_options", "include_usage") else None
        return turn.model_copy(update={"calls": calls, "thinking": thinking, "usage": usage})

    def make_id(self, place: str) -> str:
        return f"call_{seal(place)}"

    def usage(self, played: PlayedTurn) -> ScriptedUsage | None:
        """The script's, or an estimate: these services always report some."""
        return played.turn.usage or ScriptedUsage(input_tokens=count_tokens(played.request), output_tokens=10)


def messages_of(request: LoggedRequest) -> list[dict[str, Any]]:
    return cast(list[dict[str, Any]], request.body.get("messages") or [])


def calls_of(message: dict[str, Any]) -> Sequence[dict[str, Any]]:
    return cast(Sequence[dict[str, Any]], message.get("tool_calls") or ())


def part_kinds(request: LoggedRequest) -> Iterator[str]:
    for message in messages_of(request):
        content = message.get("content")
        if isinstance(content, list):
            yield from (str(part.get("type")) for part in cast(list[dict[str, Any]], content))


def messages_of_this_turn(request: LoggedRequest) -> Iterator[tuple[int, dict[str, Any]]]:
    """With their index: those after the last prompt, which services check more closely than older ones."""
    messages = messages_of(request)
    last = max((at for at, message in enumerate(messages) if message["role"] == "user"), default=-1)
    return ((at, message) for at, message in enumerate(messages) if at > last)


def openai_error(message: str, *, status: int = 400, param: str | None = None, code: str | None = None) -> Refusal:
    """The error body of OpenAI, which most others copy."""
    kind = {401: "authentication_error", 429: "rate_limit_error"}.get(status, "invalid_request_error")
    return Refusal(status, {"error": {"message": message, "type": kind, "param": param, "code": code}})


def known_messages(request: LoggedRequest) -> Refusal | None:
    """Roles and parts that the format has."""
    if not messages_of(request):
        return openai_error("Invalid 'messages': empty array.", param="messages", code="empty_array")
    for at, message in enumerate(messages_of(request)):
        role, content = message.get("role"), message.get("content")
        where = f"messages[{at}]"
        if role not in ROLES:
            return openai_error(f"Invalid value: '{role}'.", param=f"{where}.role", code="invalid_value")
        if content is None and not (role == "assistant" and message.get("tool_calls")):
            said = f"Invalid value for 'content': expected a string, got null. ({where}.content)"
            return openai_error(said, param=f"{where}.content")
        for part in cast(list[dict[str, Any]], content) if isinstance(content, list) else ():
            if part.get("type") not in PARTS or (role == "tool" and part["type"] != "text"):
                said = f"Invalid value: '{part.get('type')}'. Supported values are: 'text'."
                return openai_error(said, param=f"{where}.content[0].type", code="invalid_value")
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
            waiting = [str(call["id"]) for call in calls_of(message)]
    return _unanswered(waiting) if waiting else None


def _unanswered(ids: list[str]) -> Refusal:
    said = "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'."
    return openai_error(f"{said} The following tool_call_ids did not have response messages: {', '.join(ids)}")


def unique_ids(request: LoggedRequest) -> Refusal | None:
    for at, message in enumerate(messages_of(request)):
        ids = [str(call["id"]) for call in calls_of(message)]
        if len(set(ids)) < len(ids):
            return openai_error("Duplicate tool call ids are not allowed.", param=f"messages[{at}].tool_calls")
        for call in calls_of(message):
            if not isinstance(call["function"].get("arguments"), str):
                said = "Invalid type for arguments: expected a string."
                return openai_error(said, param=f"messages[{at}].tool_calls[0].function.arguments")
    return None


def usable_tools(request: LoggedRequest) -> Refusal | None:
    for at, tool in enumerate(cast(list[dict[str, Any]], request.body.get("tools") or [])):
        function = tool["function"]
        if not re.fullmatch(r"[A-Za-z0-9_-]{1,64}", str(function["name"])):
            where = f"tools[{at}].function.name"
            said = f"Invalid '{where}': string does not match pattern. Expected a string that matches the pattern "
            return openai_error(said + "'^[a-zA-Z0-9_-]+$'.", param=where, code="invalid_value")
        if dig(function, "parameters", "type") != "object":
            said = (
                f"Invalid schema for function '{function['name']}': schema must be a JSON Schema of 'type: \"object\"'."
            )
            return openai_error(said, param=f"tools[{at}].function.parameters", code="invalid_function_parameters")
    return None


def merge_call_pieces(chunks: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Each call in one chunk, as services that parse the model's text themselves send it."""
    pending: dict[str, Any] | None = None
    for chunk in chunks:
        piece = next(iter(delta_of(chunk).get("tool_calls") or ()), None)
        if pending is not None and piece is not None and "id" not in piece:
            function = delta_of(pending)["tool_calls"][0]["function"]
            function["arguments"] += piece["function"]["arguments"]
            continue
        if pending is not None:
            yield pending
        pending = chunk if piece is not None else None
        if piece is None:
            yield chunk
    if pending is not None:
        yield pending


def delta_of(chunk: dict[str, Any]) -> dict[str, Any]:
    """Of the first choice; a chunk without one has an empty delta."""
    choices = cast(list[dict[str, Any]], chunk.get("choices") or [])
    return cast(dict[str, Any], choices[0].get("delta") or {}) if choices else {}


def with_delta(chunk: dict[str, Any], delta: dict[str, Any]) -> dict[str, Any]:
    return {**chunk, "choices": [{**chunk["choices"][0], "delta": delta}]}
