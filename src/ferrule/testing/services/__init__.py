"""Services of the world as strict servers on loopback, for tests: each refuses what its vendor refuses.

    from ferrule.testing.services import open_service

    async with ModelServer.playing(script, service=open_service("deepseek")) as server: ...

Modelled after what users of these services report; they are no proof of what a vendor does today.
"""

from __future__ import annotations

from importlib import import_module

from .strict_service import LoggedRequest, PlayedTurn, Refusal, Rule, StrictService, count_tokens, first_refusal, seal

__all__ = [
    "SERVICES",
    "LoggedRequest",
    "PlayedTurn",
    "Refusal",
    "Rule",
    "StrictService",
    "count_tokens",
    "first_refusal",
    "open_service",
    "seal",
]

SERVICES: dict[str, str] = {
    "anthropic": "messages_service:AnthropicService",
    "azure": "hosted_services:AzureService",
    "bedrock": "cloud_services:BedrockService",
    "deepseek": "hosted_services:DeepSeekService",
    "gemini": "gemini_service:GeminiService",
    "gemini-2.5": "gemini_service:Gemini25Service",
    "gemini-openai": "hosted_services:GeminiOpenAiService",
    "llamacpp": "local_services:LlamaCppService",
    "lmstudio": "local_services:LmStudioService",
    "mistral": "hosted_services:MistralService",
    "ollama": "local_services:OllamaService",
    "openai": "hosted_services:OpenAiService",
    "openai-responses": "responses_service:OpenAiResponsesService",
    "openrouter": "hosted_services:OpenRouterService",
    "vertex": "cloud_services:VertexService",
    "vllm": "local_services:VllmService",
}
"""Names, and where the class is. One whose module needs an extra package is loaded when it is opened."""


def open_service(name: str, *, window: int | None = None) -> StrictService:
    """The service as its vendor runs it; `window` limits its requests. Raises `KeyError` for an unknown name."""
    module, _, kind = SERVICES[name].partition(":")
    service: type[StrictService] = getattr(import_module(f".{module}", __name__), kind)
    return service() if window is None else service(window=window)
