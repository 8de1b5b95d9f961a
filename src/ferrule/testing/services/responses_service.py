"""OpenAI's Responses API, strictly."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, ClassVar, cast

from ..model_wires import responses_frames, texts_after_answer
from .chat_service import openai_error
from .strict_service import LoggedRequest, PlayedTurn, Refusal, Rule, StrictService, first_refusal, seal

LONGEST_ID = 64
LEAST_OUTPUT = 16
PARAMETERS = frozenset({"model", "input", "instructions", "tools", "reasoning", "include", "store", "stream"})
MORE_PARAMETERS = frozenset({"max_output_tokens", "prompt_cache_key", "tool_choice", "parallel_tool_calls", "text"})


class OpenAiResponsesService(StrictService):
    """api.openai.com/v1/responses, for an account that stores nothing.

    After openai-agents-python 919 and vercel/ai 7543 (reasoning that is not sealed), codex 8145 (seals), OpenHands
    software-agent-sdk 1208 (models that do not reason).
    """

    name: ClassVar[str] = "openai-responses"
    model: ClassVar[str] = "openai:gpt-6.1-sol"
    path: ClassVar[str] = "/v1/responses"
    rules: ClassVar[tuple[Rule, ...]] = ()

    def environ(self, url: str) -> dict[str, str]:
        base = url + self.path.removesuffix("/responses")
        return {"OPENAI_BASE_URL": base, "OPENAI_API_KEY": "a-key", "FERRULE_OPENAI_API": "responses"}

    def converses(self, request: LoggedRequest) -> bool:
        return request.plain_path == self.path

    def refuse(self, request: LoggedRequest) -> Refusal | None:
        own = (bearer_key, known_parameters, fitting_model, flat_tools, fitting_items, answered_items, sealed_reasoning)
        return first_refusal((*own, followed_reasoning, *self.rules, self.refuse_length), request)

    def overflow(self, tokens: int, window: int) -> Refusal:
        said = "Your input exceeds the context window of this model. Please adjust your input and try again."
        return openai_error(f"{said} ({tokens} > {window})", param="input", code="context_length_exceeded")

    def events(self, played: PlayedTurn) -> Iterator[bytes]:
        model = str(played.request.body.get("model"))
        for frame in responses_frames(played.turn, played.place, played.results, model, seal=seal):
            yield frame.encode()

    def results(self, request: LoggedRequest) -> str:
        return texts_after_answer(_items(request))


def _items(request: LoggedRequest) -> list[dict[str, Any]]:
    return cast(list[dict[str, Any]], request.body.get("input") or [])


def bearer_key(request: LoggedRequest) -> Refusal | None:
    if request.headers.get("authorization", "").startswith("Bearer "):
        return None
    return openai_error("You didn't provide an API key.", status=401)


def known_parameters(request: LoggedRequest) -> Refusal | None:
    if unknown := sorted(request.body.keys() - PARAMETERS - MORE_PARAMETERS):
        return openai_error(f"Unknown parameter: '{unknown[0]}'.", param=unknown[0], code="unknown_parameter")
    if not _items(request):
        return openai_error("Missing required parameter: 'input'.", param="input", code="missing_required_parameter")
    if (request.body.get("max_output_tokens") or LEAST_OUTPUT) < LEAST_OUTPUT:
        said = f"Invalid 'max_output_tokens': integer below minimum value. Expected a value >= {LEAST_OUTPUT}."
        return openai_error(said, param="max_output_tokens", code="integer_below_min_value")
    return None


def fitting_model(request: LoggedRequest) -> Refusal | None:
    if not str(request.body.get("model")).startswith("gpt-4"):
        return None
    if "reasoning.encrypted_content" in (request.body.get("include") or ()):
        return openai_error("Encrypted content is not supported with this model.", param="include")
    if "reasoning" in request.body:
        said = "Unsupported parameter: 'reasoning.effort' is not supported with this model."
        return openai_error(said, param="reasoning.effort", code="unsupported_parameter")
    return None


def flat_tools(request: LoggedRequest) -> Refusal | None:
    for at, tool in enumerate(cast(list[dict[str, Any]], request.body.get("tools") or [])):
        if tool.get("type") != "function" or not tool.get("name"):
            where = f"tools[{at}].name"
            said = f"Missing required parameter: '{where}'."
            return openai_error(said, param=where, code="missing_required_parameter")
    return None


def fitting_items(request: LoggedRequest) -> Refusal | None:
    for at, item in enumerate(_items(request)):
        for key, value in item.items():
            where = f"input[{at}].{key}"
            if value is None:
                return openai_error(f"Invalid type for '{where}': got null.", param=where, code="invalid_type")
            if key in ("id", "call_id", "name") and len(value) > LONGEST_ID:
                said = f"Invalid '{where}': string too long. Expected a string with maximum length {LONGEST_ID}."
                return openai_error(said, param=where, code="string_above_max_length")
            if key == "name" and not re.fullmatch(r"[a-zA-Z0-9_-]+", value):
                said = f"Invalid '{where}': string does not match pattern '^[a-zA-Z0-9_-]+$'."
                return openai_error(said, param=where, code="invalid_value")
    return None


def answered_items(request: LoggedRequest) -> Refusal | None:
    """Each call has its output, and each output its call before it."""
    waiting: list[str] = []
    for item in _items(request):
        if item.get("type") == "function_call":
            waiting.append(str(item.get("call_id")))
        elif item.get("type") == "function_call_output":
            if item.get("call_id") not in waiting:
                said = f"No tool call found for function call output with call_id {item.get('call_id')}."
                return openai_error(said, param="input")
            waiting.remove(str(item["call_id"]))
    return openai_error(f"No tool output found for function call {waiting[0]}.", param="input") if waiting else None


def sealed_reasoning(request: LoggedRequest) -> Refusal | None:
    for item in _items(request):
        if item.get("type") != "reasoning":
            continue
        if not item.get("encrypted_content"):
            said = f"Item with id '{item.get('id')}' not found. Items are not persisted when `store` is set to false. "
            said += "Try again with `store` set to true, or remove this item from your input."
            return openai_error(said, status=404, param="input")
        if item["encrypted_content"] != seal("".join(part["text"] for part in item["summary"])):
            said = f"The encrypted content for item {item.get('id')} could not be verified."
            return openai_error(said, code="invalid_encrypted_content")
    return None


def followed_reasoning(request: LoggedRequest) -> Refusal | None:
    """Reasoning has behind it what it led to, and a call that is named has its reasoning before it."""
    seen: set[str] = set()
    for item, after in zip(_items(request), [*_items(request)[1:], {}], strict=True):
        id = str(item.get("id") or "")
        if item.get("type") == "reasoning":
            seen.add(id)
            if after.get("type") not in ("function_call", "message", "reasoning") or after.get("role") == "user":
                said = f"Item '{id}' of type 'reasoning' was provided without its required following item."
                return openai_error(said, param="input")
        elif (found := re.match(r"fc_r(\d+)_", id)) and f"rs_{found[1]}" not in seen:
            said = f"Item '{id}' of type 'function_call' was provided without its required 'reasoning' item: "
            return openai_error(f"{said}'rs_{found[1]}'.", param="input")
    return None
