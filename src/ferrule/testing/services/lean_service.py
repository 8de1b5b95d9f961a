"""A service without some of what chat completions have: it refuses each in the words of a server that lacks it."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping
from itertools import pairwise
from typing import Any, Final

from ...providers.script import ScriptedTurn, fill_found
from .chat_service import ChatService, calls_of, messages_of
from .hosted_services import mistral_order, short_alphanumeric_ids, short_descriptions
from .strict_service import LoggedRequest, PlayedTurn, Refusal, Rule


def _error(message: str, *, status: int = 400) -> Refusal:
    return Refusal(status, {"error": {"message": message, "type": "api_error", "param": None, "code": None}})


def _forbidden(name: str) -> Refusal:
    one = {"type": "extra_forbidden", "loc": ["body", name], "msg": "Extra inputs are not permitted", "input": True}
    return Refusal(422, {"detail": [one]})


def _has_role(role: str) -> Callable[[LoggedRequest], bool]:
    return lambda request: any(message["role"] == role for message in messages_of(request))


def _no_tools(request: LoggedRequest) -> Refusal | None:
    if request.body.get("tools"):
        return _error("registry.ollama.ai/library/lean does not support tools")
    is_spoken = _has_role("tool")(request) or any(calls_of(message) for message in messages_of(request))
    return _error("Invalid message: unknown variant `tool`, expected `system`, `user`") if is_spoken else None


def _no_system(request: LoggedRequest) -> Refusal | None:
    return _error("System role not supported") if _has_role("system")(request) else None


def _no_stream_options(request: LoggedRequest) -> Refusal | None:
    return _forbidden("stream_options") if "stream_options" in request.body else None


def _no_effort(request: LoggedRequest) -> Refusal | None:
    said = "Model lean does not support parameter reasoningEffort."
    return Refusal(400, {"code": "invalid-argument", "error": said}) if "reasoning_effort" in request.body else None


def _no_reasoning(request: LoggedRequest) -> Refusal | None:
    for at, message in enumerate(messages_of(request)):
        if message.keys() & {"reasoning_content", "reasoning", "reasoning_details"}:
            return _error(f"'messages.{at}' : property 'reasoning_content' is unsupported")
    return None


def _no_null(request: LoggedRequest) -> Refusal | None:
    for at, message in enumerate(messages_of(request)):
        if message.get("content") is None:
            return _error(f"Invalid value for 'messages[{at}].content': expected a string, got null.")
    return None


def _no_streamed_tools(request: LoggedRequest) -> Refusal | None:
    said = "This model doesn't support tool use in streaming mode."
    return _error(said) if request.body.get("tools") and request.body.get("stream") else None


def _other_limit(request: LoggedRequest) -> Refusal | None:
    said = "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
    return _error(said) if "max_tokens" in request.body else None


def _alternate(request: LoggedRequest) -> Refusal | None:
    roles = [message["role"] for message in messages_of(request) if message["role"] != "system"]
    is_wrong = roles[0] != "user" or any(one == other for one, other in pairwise(roles)) or "tool" in roles
    said = "After the optional system message, conversation roles must alternate user/assistant/user/assistant/..."
    return _error(said, status=500) if is_wrong else None


LACKS: Final[Mapping[str, Rule]] = {
    "alternation": _alternate,
    "effort": _no_effort,
    "long descriptions": short_descriptions,
    "long ids": short_alphanumeric_ids,
    "max_tokens": _other_limit,
    "null": _no_null,
    "reasoning": _no_reasoning,
    "stream_options": _no_stream_options,
    "streamed tools": _no_streamed_tools,
    "system": _no_system,
    "tools": _no_tools,
    "user after tool": mistral_order,
}
"""What a service may lack."""


def hermes_form(name: str, arguments: str) -> str:
    return f'<tool_call>\n{{"name": "{name}", "arguments": {arguments}}}\n</tool_call>'


class LeanService(ChatService):
    """Lacks what is named. Without tools it writes calls as text, in `form`; thoughts are in the text, in tags."""

    name = "lean"
    model = "openai:lean"
    needs_key = False

    def __init__(
        self,
        *lacks: str,
        window: int | None = None,
        takes_images: bool = True,
        form: Callable[[str, str], str] = hermes_form,
        tags: tuple[str, str] | None = None,
    ) -> None:
        super().__init__(window=window)
        self._lacks: Collection[str] = lacks
        self._rules = tuple(LACKS[one] for one in lacks)
        self._takes_images = takes_images
        self._form = form
        self._tags = tags

    def refuse(self, request: LoggedRequest) -> Refusal | None:
        refusals = (refusal for rule in self._rules if (refusal := rule(request)))
        return next(refusals, None) or super().refuse(request)

    def refuse_pictures(self, request: LoggedRequest) -> Refusal | None:
        return None if self._takes_images else self._refuse_any_picture(request)

    def _refuse_any_picture(self, request: LoggedRequest) -> Refusal | None:
        said = "image input is not supported - hint: if this is unexpected, you may need to provide the mmproj"
        has_any = b'"image_url"' in request.raw or b'"file_data"' in request.raw
        return _error(said, status=500) if has_any else None

    def vendor_turn(self, played: PlayedTurn) -> ScriptedTurn:
        turn = super().vendor_turn(played)
        text = turn.text
        if self._tags and turn.thinking:
            text = f"{self._tags[0]}{turn.thinking}{self._tags[1]}\n\n{text}"
            turn = turn.model_copy(update={"thinking": ""})
        if set(self._lacks) & {"tools", "alternation"}:
            calls = [self._form(one.name, json.dumps(fill_found(one.input, played.results))) for one in turn.calls]
            text = "\n".join(filter(None, (text, *calls)))
            turn = turn.model_copy(update={"calls": [], "stop": turn.stop})
        return turn.model_copy(update={"text": text})

    def events(self, played: PlayedTurn) -> Iterator[bytes]:
        if played.request.body.get("stream"):
            yield from super().events(played)
            return
        turn = self.vendor_turn(played)
        calls = [
            {"id": one.id, "type": "function", "function": {"name": one.name, "arguments": json.dumps(one.input)}}
            for one in turn.calls
        ]
        message: dict[str, Any] = {"role": "assistant", "content": turn.text or None, "tool_calls": calls}
        reason = "tool_calls" if calls else "stop"
        yield json.dumps({"choices": [{"index": 0, "message": message, "finish_reason": reason}]}).encode()
