"""Services that are asked over the network and speak chat completions, each with its own rules."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, Final, cast

from ...providers.script import ScriptedTurn
from .chat_service import (
    ChatService,
    calls_of,
    delta_of,
    merge_call_pieces,
    messages_of,
    messages_of_this_turn,
    openai_error,
    with_delta,
)
from .strict_service import LoggedRequest, PlayedTurn, Refusal, dig, seal

LONGEST_ID: Final = 40
LONGEST_DESCRIPTION: Final = 1024
WANTS_RESPONSES: Final = re.compile(r"gpt-(?:5\.(?:[6-9]|\d\d)|[6-9])")
DUMMY_SIGNATURE: Final = "skip_thought_signature_validator"
"""Google's own value for calls that another model made."""
TAKEN_BY_MISTRAL: Final = frozenset({"role", "content", "tool_calls", "tool_call_id", "name", "prefix"})


def short_ids(request: LoggedRequest) -> Refusal | None:
    for at, message in enumerate(messages_of(request)):
        for number, call in enumerate(calls_of(message)):
            if len(str(call["id"])) > LONGEST_ID:
                return _too_long(f"messages[{at}].tool_calls[{number}].id", LONGEST_ID, len(str(call["id"])))
    return None


def short_descriptions(request: LoggedRequest) -> Refusal | None:
    for at, tool in enumerate(cast(list[dict[str, Any]], request.body.get("tools") or [])):
        if (length := len(str(tool["function"].get("description") or ""))) > LONGEST_DESCRIPTION:
            return _too_long(f"tools[{at}].function.description", LONGEST_DESCRIPTION, length)
    return None


def _too_long(where: str, longest: int, length: int) -> Refusal:
    said = f"Invalid '{where}': string too long. Expected a string with maximum length {longest}, but got a string "
    return openai_error(f"{said}with length {length} instead.", param=where, code="string_above_max_length")


def tools_without_effort(request: LoggedRequest) -> Refusal | None:
    """Newer models want the Responses API for tools."""
    model, effort = str(request.body.get("model")), request.body.get("reasoning_effort")
    if not request.body.get("tools") or not WANTS_RESPONSES.match(model) or effort == "none":
        return None
    said = f"Function tools with reasoning_effort are not supported for {model} in /v1/chat/completions. To use "
    return openai_error(f"{said}function tools, use /v1/responses or set reasoning_effort to 'none'.")


class OpenAiService(ChatService):
    """api.openai.com/v1/chat/completions."""

    name = "openai"
    model = "openai:gpt-4.1"
    rules = (short_ids, short_descriptions, tools_without_effort)


class AzureService(ChatService):
    """Azure's classic URL: the deployment in the path, the version in the query, the key in a header of its own."""

    name = "azure"
    model = "openai:gpt-4.1"
    path = "/openai/deployments/d/chat/completions"
    rules = (short_ids, short_descriptions)

    def environ(self, url: str) -> dict[str, str]:
        base = f"{url}/openai/deployments/d?api-version=2024-10-21"
        return {"OPENAI_BASE_URL": base, "OPENAI_API_KEY": "a-key"}

    def refuse_key(self, request: LoggedRequest) -> Refusal | None:
        if "api-version=" not in request.path:
            return Refusal(404, {"error": {"code": "404", "message": "Resource not found"}})
        if request.headers.get("api-key"):
            return None
        said = "Access denied due to invalid subscription key or wrong API endpoint. Make sure to provide a valid key."
        return Refusal(401, {"error": {"code": "401", "message": said}})

    def chunks(self, played: PlayedTurn) -> Iterator[dict[str, Any]]:
        filters: dict[str, Any] = {"hate": {"filtered": False, "severity": "safe"}}
        yield {"id": "", "choices": [], "prompt_filter_results": [{"content_filter_results": filters}]}
        yield from super().chunks(played)


def returned_reasoning(request: LoggedRequest) -> Refusal | None:
    """Each message with calls has its reasoning."""
    for message in messages_of(request):
        if calls_of(message) and not isinstance(message.get("reasoning_content"), str):
            said = "The `reasoning_content` in the thinking mode must be passed back to the API."
            return openai_error(said, code="invalid_request_error")
    return None


class DeepSeekService(ChatService):
    """Thinks by default; reasoning of a message with calls must come back in all later requests."""

    name = "deepseek"
    model = "openai:deepseek-v4-pro"
    path = "/v1/chat/completions"
    rules = (returned_reasoning,)
    takes_pictures = False
    thinks = True

    def no_pictures(self) -> Refusal:
        said = "Failed to deserialize the JSON body into the target type: messages[1]: unknown variant `image_url`, "
        return openai_error(said + "expected `text` at line 1 column 100")

    def chunks(self, played: PlayedTurn) -> Iterator[dict[str, Any]]:
        for chunk in super().chunks(played):
            if usage := chunk.get("usage"):
                read = usage["prompt_tokens_details"]["cached_tokens"]
                hits = {"prompt_cache_hit_tokens": read, "prompt_cache_miss_tokens": usage["prompt_tokens"] - read}
                chunk = {**chunk, "usage": {**usage, **hits}}
            yield chunk


def signed_calls(request: LoggedRequest) -> Refusal | None:
    """In the current turn, the first call of each message has the signature it came with."""
    for at, message in messages_of_this_turn(request):
        for call in calls_of(message)[:1]:
            function = call["function"]
            signature = dig(call, "extra_content", "google", "thought_signature")
            if signature not in (seal(function["name"]), DUMMY_SIGNATURE):
                return _unsigned(str(function["name"]), at)
    return None


def _unsigned(name: str, position: int) -> Refusal:
    said = (
        "Function call is missing a thought_signature in functionCall parts. This is required for tools to work "
        "correctly, and missing thought_signature may lead to degraded model performance. Additional data, function "
        f"call `default_api:{name}` , position {position}. Please refer to "
        "https://ai.google.dev/gemini-api/docs/thought-signatures for more details."
    )
    return Refusal(400, [{"error": {"code": 400, "message": said, "status": "INVALID_ARGUMENT"}}])


class GeminiOpenAiService(ChatService):
    """Gemini over OpenAI's format. Errors come in a list; a call comes whole."""

    name = "gemini-openai"
    model = "openai:gemini-3-pro"
    path = "/v1beta/openai/chat/completions"
    rules = (signed_calls,)

    def make_id(self, place: str) -> str:
        return f"function-call-{int(seal(place), 16) % 10**19}"

    def overflow(self, tokens: int, window: int) -> Refusal:
        said = f"The input token count ({tokens}) exceeds the maximum number of tokens allowed ({window})."
        return Refusal(400, [{"error": {"code": 400, "message": said, "status": "INVALID_ARGUMENT"}}])

    def chunks(self, played: PlayedTurn) -> Iterator[dict[str, Any]]:
        is_first = True
        for chunk in merge_call_pieces(super().chunks(played)):
            delta = delta_of(chunk)
            if is_first and (calls := delta.get("tool_calls")):
                is_first = False
                signed = {"google": {"thought_signature": seal(calls[0]["function"]["name"])}}
                chunk = with_delta(chunk, {**delta, "tool_calls": [{**calls[0], "extra_content": signed}]})
            yield chunk


def mistral_error(message: Any, kind: str, code: str, *, status: int = 400) -> Refusal:
    return Refusal(status, {"object": "error", "message": message, "type": kind, "param": None, "code": code})


def short_alphanumeric_ids(request: LoggedRequest) -> Refusal | None:
    for message in messages_of(request):
        for call in calls_of(message):
            if not re.fullmatch(r"[A-Za-z0-9]{9}", str(call["id"])):
                said = f"Tool call id was {call['id']} but must be a-z, A-Z, 0-9, with a length of 9."
                return mistral_error(said, "invalid_function_call", "3280")
    return None


def mistral_order(request: LoggedRequest) -> Refusal | None:
    messages = messages_of(request)
    for before, message in pairwise(messages):
        if (before["role"], message["role"]) in (("tool", "user"), ("tool", "system"), ("assistant", "system")):
            said = f"Unexpected role '{message['role']}' after role '{before['role']}'"
            return mistral_error(said, "invalid_request_message_order", "3230")
    if messages[-1]["role"] not in ("user", "tool"):
        said = "Expected last role User or Tool (or Assistant with prefix True) for serving but got assistant"
        return mistral_error(said, "invalid_request_message_order", "3230")
    return None


def no_unknown_fields(request: LoggedRequest) -> Refusal | None:
    for at, message in enumerate(messages_of(request)):
        for name in sorted(message.keys() - TAKEN_BY_MISTRAL):
            where = ["body", "messages", at, message["role"], name]
            one = {"type": "extra_forbidden", "loc": where, "msg": "Extra inputs are not permitted"}
            return mistral_error({"detail": [one]}, "invalid_request_error", "3001", status=422)
    return None


class MistralService(ChatService):
    """Strict about the order of roles, ids and fields it does not know."""

    name = "mistral"
    model = "openai:mistral-medium-3-5"
    rules = (mistral_order, short_alphanumeric_ids, no_unknown_fields)

    def vendor_turn(self, played: PlayedTurn) -> ScriptedTurn:
        return super().vendor_turn(played).model_copy(update={"thinking": ""})

    def make_id(self, place: str) -> str:
        return seal(place)[:9]

    def overflow(self, tokens: int, window: int) -> Refusal:
        said = f"Prompt contains {tokens} tokens and 0 draft tokens, too large for model with {window} maximum context"
        return mistral_error(f"{said} length", "invalid_request_prompt", "3051")


def returned_details(request: LoggedRequest) -> Refusal | None:
    """Details of reasoning are signed. In the current turn each message with calls has them, as they came."""
    for at, message in enumerate(messages_of(request)):
        for detail in cast(list[dict[str, Any]], message.get("reasoning_details") or []):
            if detail.get("signature") != seal(detail.get("text")):
                return openrouter_error(f"messages.{at}.content.0: Invalid `signature` in `thinking` block")
    for at, message in messages_of_this_turn(request):
        if calls_of(message) and not message.get("reasoning_details"):
            said = f"messages.{at}.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`."
            return openrouter_error(said)
    return None


def openrouter_error(raw: str, *, status: int = 400) -> Refusal:
    about = {"raw": raw, "provider_name": "Anthropic"}
    return Refusal(status, {"error": {"message": f"Provider returned error: {raw}", "code": status, "metadata": about}})


class OpenRouterService(ChatService):
    """A Claude behind OpenRouter: reasoning with signatures, comments in the stream."""

    name = "openrouter"
    model = "openai:anthropic/claude-sonnet-4.5"
    path = "/api/v1/chat/completions"
    rules = (returned_details,)
    thinks = True

    def make_id(self, place: str) -> str:
        return f"toolu_vrtx_{seal(place)}"

    def overflow(self, tokens: int, window: int) -> Refusal:
        said = (
            f"This endpoint's maximum context length is {window} tokens. However, you requested about {tokens} tokens"
        )
        return openai_error(f"{said}. Please reduce the length of either one, or use the context-compression plugin.")

    def events(self, played: PlayedTurn) -> Iterator[bytes]:
        yield b": OPENROUTER PROCESSING\n\n"
        yield from super().events(played)

    def chunks(self, played: PlayedTurn) -> Iterator[dict[str, Any]]:
        whole = ""
        for chunk in super().chunks(played):
            delta = dict(delta_of(chunk))
            if text := delta.pop("reasoning_content", ""):
                whole += text
                detail = {"type": "reasoning.text", "text": text, "format": "anthropic-claude-v1", "index": 0}
                yield with_delta(chunk, {**delta, "reasoning": text, "reasoning_details": [detail]})
                continue
            if whole:
                signed = {"type": "reasoning.text", "signature": seal(whole), "index": 0}
                yield with_delta(chunk, {"content": "", "reasoning_details": [signed]})
                whole = ""
            yield chunk

    def describe(self, request: LoggedRequest) -> Any:
        if request.plain_path != "/api/v1/models":
            return None
        prices = {"prompt": "0.000003", "completion": "0.000015", "input_cache_read": "0.0000003"}
        one = {
            "id": self.model.partition(":")[2],
            "context_length": self.window or 200_000,
            "architecture": {"input_modalities": ["text", "image", "file"]},
            "pricing": {**prices, "input_cache_write": "0.00000375"},
            "top_provider": {"context_length": self.window or 200_000, "max_completion_tokens": 64_000},
            "supported_parameters": ["tools", "reasoning", "max_tokens"],
        }
        return {"data": [one]}
