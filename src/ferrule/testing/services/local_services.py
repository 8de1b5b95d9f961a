"""Servers that people run themselves. None needs a key, and each knows the window that it was started with."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, Final

from ...providers.script import ScriptedUsage
from .chat_service import ChatService, delta_of, merge_call_pieces, openai_error, with_delta
from .strict_service import LoggedRequest, PlayedTurn, Refusal, count_tokens, seal

OLLAMA_WINDOW: Final = 4096
"""What it uses on small machines where nobody says otherwise."""


class OllamaService(ChatService):
    """Cuts a prompt that is too long without a word, and reports the tokens that are left."""

    name = "ollama"
    model = "openai:qwen3:8b"
    needs_key = False
    takes_pictures = False

    def __init__(self, *, window: int | None = OLLAMA_WINDOW, takes_tools: bool = True) -> None:
        super().__init__(window=window)
        self._takes_tools = takes_tools

    def refuse(self, request: LoggedRequest) -> Refusal | None:
        if request.body.get("tools") and not self._takes_tools:
            said = f"registry.ollama.ai/library/{request.body.get('model')} does not support tools"
            return Refusal(400, {"error": {"message": said, "type": "api_error", "param": None, "code": None}})
        return super().refuse(request)

    def refuse_length(self, request: LoggedRequest) -> Refusal | None:
        return None

    def no_pictures(self) -> Refusal:
        said = "this model is missing data required for image input"
        return Refusal(500, {"error": {"message": said, "type": "api_error", "param": None, "code": None}})

    def make_id(self, place: str) -> str:
        return f"call_{seal(place)[:8]}"

    def usage(self, played: PlayedTurn) -> ScriptedUsage:
        tokens = count_tokens(played.request)
        return ScriptedUsage(input_tokens=min(tokens, self.window or tokens), output_tokens=10)

    def chunks(self, played: PlayedTurn) -> Iterator[dict[str, Any]]:
        """Calls come whole; reasoning has another name."""
        for chunk in merge_call_pieces(super().chunks(played)):
            delta = dict(delta_of(chunk))
            if text := delta.pop("reasoning_content", ""):
                chunk = with_delta(chunk, {**delta, "content": "", "reasoning": text})
            yield chunk

    def describe(self, request: LoggedRequest) -> Any:
        name = self.model.partition(":")[2]
        match request.plain_path:
            case "/api/show":
                about = {"general.architecture": "qwen3", "qwen3.context_length": 40_960}
                parameters = f"num_ctx {self.window}" if self.window else ""
                return {"parameters": parameters, "model_info": about, "capabilities": ["completion", "tools"]}
            case "/api/ps":
                return {"models": [{"name": name, "model": name, "context_length": self.window or 40_960}]}
            case "/v1/models":
                return {"object": "list", "data": [{"id": name, "object": "model", "owned_by": "library"}]}
            case _:
                return None


class VllmService(ChatService):
    """Long ids, a window that it names, and an error body without a frame in older versions."""

    name = "vllm"
    model = "openai:qwen/qwen3-coder-30b"
    needs_key = False

    def make_id(self, place: str) -> str:
        return f"chatcmpl-tool-{seal(place)}{seal(place)[:8]}"

    def refuse_length(self, request: LoggedRequest) -> Refusal | None:
        """The answer has to fit too."""
        answer = int(request.body.get("max_tokens") or request.body.get("max_completion_tokens") or 0)
        tokens = count_tokens(request)
        if self.window is None or tokens + answer <= self.window:
            return None
        if tokens > self.window:
            return self.overflow(tokens, self.window)
        said = f"'max_tokens' or 'max_completion_tokens' is too large: {answer}. This model's maximum context length "
        said += (
            f"is {self.window} tokens and your request has {tokens} input tokens ({answer} > {self.window} - {tokens})."
        )
        return _vllm_error(said)

    def overflow(self, tokens: int, window: int) -> Refusal:
        said = f"The decoder prompt (length {tokens}) is longer than the maximum model length of {window}. "
        return _vllm_error(said + "Make sure that `max_model_len` is no smaller than the number of text tokens.")

    def no_pictures(self) -> Refusal:
        return _vllm_error(f"{self.model.partition(':')[2]} is not a multimodal model")

    def describe(self, request: LoggedRequest) -> Any:
        if request.plain_path != "/v1/models":
            return None
        one = {"id": self.model.partition(":")[2], "object": "model", "max_model_len": self.window or 262_144}
        return {"object": "list", "data": [one]}


def _vllm_error(message: str) -> Refusal:
    return Refusal(400, {"error": {"message": message, "type": "BadRequestError", "param": None, "code": 400}})


def alternating_roles(request: LoggedRequest) -> Refusal | None:
    """Many chat templates raise an error where the user speaks twice."""
    roles = [message["role"] for message in request.body["messages"]]
    if any(one == other == "user" for one, other in pairwise(roles)) or "system" in roles[1:]:
        said = "Conversation roles must alternate user/assistant/user/assistant/..."
        return Refusal(500, {"error": {"code": 500, "message": said, "type": "server_error"}})
    return None


class LlamaCppService(ChatService):
    """`llama-server --jinja`: the model's own chat template decides what it takes."""

    name = "llamacpp"
    model = "openai:gemma-3-12b-it"
    needs_key = False
    takes_pictures = False
    rules = (alternating_roles,)

    def make_id(self, place: str) -> str:
        return (seal(place) * 2)[:32]

    def overflow(self, tokens: int, window: int) -> Refusal:
        said = f"the request exceeds the available context size ({window} tokens), try increasing it"
        error = {"code": 400, "message": said, "type": "exceed_context_size_error"}
        return Refusal(400, {"error": {**error, "n_prompt_tokens": tokens, "n_ctx": window}})

    def no_pictures(self) -> Refusal:
        said = "image input is not supported - hint: if this is unexpected, you may need to provide the mmproj"
        return Refusal(500, {"error": {"code": 500, "message": said, "type": "server_error"}})

    def chunks(self, played: PlayedTurn) -> Iterator[dict[str, Any]]:
        for chunk in super().chunks(played):
            yield {**chunk, "timings": {"prompt_n": 1, "predicted_n": 1}} if chunk.get("usage") else chunk

    def describe(self, request: LoggedRequest) -> Any:
        window = self.window or 8192
        match request.plain_path:
            case "/props":
                return {"default_generation_settings": {"n_ctx": window}, "modalities": {"vision": False}}
            case "/v1/models":
                one = {"id": self.model.partition(":")[2], "object": "model", "meta": {"n_ctx_train": 131_072}}
                return {"object": "list", "data": [one]}
            case _:
                return None


class LmStudioService(ChatService):
    """Ids are numbers; an overflow is in its own words."""

    name = "lmstudio"
    model = "openai:qwen2.5-7b-instruct"
    needs_key = False
    takes_pictures = False

    def make_id(self, place: str) -> str:
        return str(int(seal(place), 16) % 10**9)

    def overflow(self, tokens: int, window: int) -> Refusal:
        said = (
            f"Trying to keep the first {tokens} tokens when context the overflows. However, the model is loaded with "
        )
        said += (
            f"context length of only {window} tokens, which is not enough. Try to load the model with a larger context"
        )
        return Refusal(400, {"error": f"{said} length, or provide a shorter input"})

    def no_pictures(self) -> Refusal:
        return openai_error("'messages' array must only contain objects with a 'content' field that is text")

    def describe(self, request: LoggedRequest) -> Any:
        if request.plain_path != "/api/v0/models":
            return None
        window = self.window or 32_768
        one = {"id": self.model.partition(":")[2], "type": "llm", "state": "loaded", "max_context_length": 131_072}
        return {"object": "list", "data": [{**one, "loaded_context_length": window, "capabilities": ["tool_use"]}]}
