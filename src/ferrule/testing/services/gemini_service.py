"""The Gemini API, strictly: roles, names of functions, ids, signatures and the fields of a part.

Rules after Google's documentation of function calling and of thought signatures, and the errors that users report.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Iterator
from typing import Any, ClassVar, cast

from ...providers.gemini_wire import FOREIGN_SIGNATURE, SIGNATURE
from ...providers.script import fill_found
from ...providers.scripted import words
from .strict_service import LoggedRequest, PlayedTurn, Refusal, Rule, StrictService, first_refusal, seal

PATH = re.compile(r"/v1(?:beta)?/models/(?P<model>[^/:]+):streamGenerateContent")
FIELDS = {"contents", "tools", "toolConfig", "systemInstruction", "generationConfig", "safetySettings", "cachedContent"}
DECLARATION_FIELDS = {"name", "description", "parameters", "parametersJsonSchema", "parameters_json_schema"}
"""Either spelling is taken, and Google's own client uses both."""
DATA_FIELDS = {"text", "inlineData", "functionCall", "functionResponse", "fileData", "executableCode"}
NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}")
FINISH = {"end": "STOP", "tool_use": "STOP", "max_tokens": "MAX_TOKENS", "refusal": "SAFETY"}


class GeminiService(StrictService):
    """generativelanguage.googleapis.com with a model of the third generation: ids, and signatures it insists on."""

    name: ClassVar[str] = "gemini"
    model: ClassVar[str] = "gemini:gemini-3.8-flash"
    rules: ClassVar[tuple[Rule, ...]] = ()
    gives_ids: ClassVar[bool] = True
    signs: ClassVar[bool] = True

    def environ(self, url: str) -> dict[str, str]:
        return {"GEMINI_BASE_URL": url, "GEMINI_API_KEY": "a-key"}

    def converses(self, request: LoggedRequest) -> bool:
        return PATH.fullmatch(request.plain_path) is not None

    def refuse(self, request: LoggedRequest) -> Refusal | None:
        signed: tuple[Rule, ...] = (check_signatures, require_signatures) if self.signs else ()
        shared: tuple[Rule, ...] = (check_key, check_fields, check_declarations, check_reasoning)
        return first_refusal((*shared, check_parts, check_responses, *signed, self.refuse_length, *self.rules), request)

    def overflow(self, tokens: int, window: int) -> Refusal:
        said = f"The input token count ({tokens}) exceeds the maximum number of tokens allowed ({window})."
        return gemini_error(said)

    def events(self, played: PlayedTurn) -> Iterator[bytes]:
        for chunk in self.chunks(played):
            yield b"data: " + json.dumps(chunk, ensure_ascii=False).encode() + b"\r\n\r\n"

    def chunks(self, played: PlayedTurn) -> Iterator[dict[str, Any]]:
        turn = played.turn
        for word in words(turn.thinking):
            yield _chunk({"text": word.text, "thought": True})
        for word in words(turn.text):
            yield _chunk({"text": word.text})
        parts = [self._call(played, number) for number in range(len(turn.calls))]
        if self.signs and parts:
            call = parts[0]["functionCall"]
            parts[0][SIGNATURE] = seal(call["name"], call["args"])
        elif self.signs and turn.text:
            parts = [{"text": "", SIGNATURE: seal("")}]
        used = turn.usage
        read = used.cache_read_tokens if used else 0
        counts = {
            "promptTokenCount": (used.input_tokens if used else 0) + read,
            "cachedContentTokenCount": read,
            "candidatesTokenCount": used.output_tokens if used else 0,
        }
        yield {**_chunk(*parts, finish=FINISH[turn.stop_reason]), **({"usageMetadata": counts} if used else {})}

    def _call(self, played: PlayedTurn, number: int) -> dict[str, Any]:
        call = played.turn.calls[number]
        given = {"id": played.turn.id_of(played.place, number)} if self.gives_ids else {}
        return {"functionCall": {**given, "name": call.name, "args": fill_found(call.input, played.results)}}

    def results(self, request: LoggedRequest) -> str:
        texts: list[str] = []
        for part in contents_of(request)[-1]["parts"]:
            response = part.get("functionResponse", {}).get("response", {})
            texts.append(str(part.get("text") or response.get("output") or response.get("error") or ""))
        return "\n".join(texts)


class Gemini25Service(GeminiService):
    """A model of the second generation: calls have names only, and signatures are optional."""

    name = "gemini-2.5"
    model = "gemini:gemini-2.5-flash"
    gives_ids = False
    signs = False


def contents_of(request: LoggedRequest) -> list[dict[str, Any]]:
    return cast(list[dict[str, Any]], request.body.get("contents") or [])


def gemini_error(message: str, *, status: int = 400, kind: str = "INVALID_ARGUMENT") -> Refusal:
    return Refusal(status, {"error": {"code": status, "message": message, "status": kind}})


def check_key(request: LoggedRequest) -> Refusal | None:
    if not request.headers.get("x-goog-api-key"):
        said = "Method doesn't allow unregistered callers (callers without established identity)."
        return gemini_error(said, status=403, kind="PERMISSION_DENIED")
    if request.headers["x-goog-api-key"] == "wrong":
        return gemini_error("API key not valid. Please pass a valid API key.")
    if "alt=sse" not in request.path:
        return gemini_error("This test speaks server-sent events only.")
    return None


def check_fields(request: LoggedRequest) -> Refusal | None:
    for name in request.body.keys() - FIELDS:
        return gemini_error(f'Invalid JSON payload received. Unknown name "{name}": Cannot find field.')
    return (
        None if contents_of(request) else gemini_error("* GenerateContentRequest.contents: contents is not specified")
    )


def check_declarations(request: LoggedRequest) -> Refusal | None:
    for tool in cast(list[dict[str, Any]], request.body.get("tools") or []):
        for at, function in enumerate(cast(list[dict[str, Any]], tool.get("functionDeclarations") or [])):
            where = f"tools[0].function_declarations[{at}]"
            for name in function.keys() - DECLARATION_FIELDS:
                return gemini_error(f"Invalid JSON payload received. Unknown name \"{name}\" at '{where}'.")
            if not NAME.fullmatch(str(function.get("name"))):
                return gemini_error(f"* GenerateContentRequest.{where}.name: Invalid function name.")
            if "additionalProperties" in json.dumps(function.get("parameters", {})):
                return gemini_error(
                    f"Unknown name \"additionalProperties\" at '{where}.parameters': Cannot find field."
                )
    return None


def check_reasoning(request: LoggedRequest) -> Refusal | None:
    found = PATH.fullmatch(request.plain_path)
    config = request.body.get("generationConfig", {}).get("thinkingConfig", {})
    if "thinkingLevel" in config and "thinkingBudget" in config:
        return gemini_error("You can only set only one of thinking budget and thinking level.")
    if "thinkingLevel" in config and found and found["model"].startswith("gemini-2"):
        return gemini_error("Thinking level is not supported for this model.")
    if config.get("thinkingLevel", "LOW") not in ("MINIMAL", "LOW", "MEDIUM", "HIGH"):
        return gemini_error("Invalid value at 'generation_config.thinking_config.thinking_level'")
    return None


def check_parts(request: LoggedRequest) -> Refusal | None:
    """Each part has one kind of data, each content one of two roles, and roles alternate."""
    last = "model"
    for at, content in enumerate(contents_of(request)):
        if content.get("role") not in ("user", "model"):
            return gemini_error("Please use a valid role: user, model.")
        if content["role"] == last:
            return gemini_error("Please ensure that multiturn requests alternate between user and model.")
        last = content["role"]
        if not content.get("parts"):
            return gemini_error(f"* GenerateContentRequest.contents[{at}].parts: contents.parts must not be empty.")
        for part in content["parts"]:
            if len(part.keys() & DATA_FIELDS) != 1 or part.keys() - DATA_FIELDS - {"thought", SIGNATURE}:
                return gemini_error(
                    f"contents[{at}].parts: required oneof field 'data' must have one initialized field."
                )
            if "inlineData" in part and not _is_base64(part["inlineData"].get("data")):
                return gemini_error(f"Invalid value at 'contents[{at}].parts.inline_data.data' (TYPE_BYTES)")
    return None


def check_responses(request: LoggedRequest) -> Refusal | None:
    """As many responses as calls, directly behind them, each with the name, and the id where there is one."""
    calls: list[dict[str, Any]] = []
    for content in contents_of(request):
        responses = [part["functionResponse"] for part in content["parts"] if "functionResponse" in part]
        if len(responses) != len(calls):
            return gemini_error(
                "Please ensure that the number of function response parts is equal to the number of function call "
                "parts of the function call turn."
            )
        for call, response in zip(calls, responses, strict=True):
            if not isinstance(response.get("response"), dict):
                return gemini_error("Invalid value at 'function_response.response' (type.googleapis.com/Struct)")
            if (call["name"], call.get("id")) != (response.get("name"), response.get("id")):
                return gemini_error("Function response parts must match the calls by name, and by id if it is given.")
        calls = [part["functionCall"] for part in content["parts"] if "functionCall" in part]
        if any(not NAME.fullmatch(str(call.get("name"))) or not isinstance(call.get("args"), dict) for call in calls):
            return gemini_error("Invalid function call.")
    return gemini_error("Please ensure that function call turn comes before a response turn.") if calls else None


def check_signatures(request: LoggedRequest) -> Refusal | None:
    """A signature belongs to its part. The constant is only for calls that this service did not write."""
    for part in (part for content in contents_of(request) for part in content["parts"] if SIGNATURE in part):
        call = part.get("functionCall")
        expected = seal(call["name"], call["args"]) if call else seal(part["text"])
        is_foreign = part[SIGNATURE] == FOREIGN_SIGNATURE and call is not None and "id" not in call
        if part[SIGNATURE] != expected and not is_foreign:
            return gemini_error("Thought signature is not valid.")
    return None


def require_signatures(request: LoggedRequest) -> Refusal | None:
    """In the current turn, the first call of each step has its signature."""
    contents = contents_of(request)
    begun = max((at for at, content in enumerate(contents) if _is_prompt(content)), default=0)
    for at, content in enumerate(contents[begun:], begun):
        called = [part for part in content["parts"] if "functionCall" in part]
        if called and SIGNATURE not in called[0]:
            name = called[0]["functionCall"]["name"]
            return gemini_error(
                f"Function call `{name}` in the `{at}.` content block is missing a `thought_signature`."
            )
    return None


def _is_prompt(content: dict[str, Any]) -> bool:
    return content["role"] == "user" and not any("functionResponse" in part for part in content["parts"])


def _is_base64(data: Any) -> bool:
    try:
        return bool(base64.b64decode(data, validate=True))
    except (binascii.Error, TypeError, ValueError):
        return False


def _chunk(*parts: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
    candidate: dict[str, Any] = {"content": {"parts": list(parts), "role": "model"}, "index": 0}
    return {"candidates": [{**candidate, **({"finishReason": finish} if finish else {})}], "modelVersion": "scripted"}
