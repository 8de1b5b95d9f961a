"""Services of the world as strict servers on loopback, for tests: each refuses what its vendor refuses.

    from ferrule.testing.services import open_service

    async with ModelServer.playing(script, service=open_service("deepseek")) as server: ...

Modelled after what users of these services report; they are no proof of what a vendor does today.
"""

from __future__ import annotations

from importlib import import_module

from .strict_service import LoggedRequest, PlayedTurn, Refusal, Rule, StrictService, first_refusal, seal

__all__ = [
    "SERVICES",
    "LoggedRequest",
    "PlayedTurn",
    "Refusal",
    "Rule",
    "StrictService",
    "first_refusal",
    "open_service",
    "seal",
]

SERVICES: dict[str, str] = {
    "anthropic": "messages_service:AnthropicService",
    "openai": "chat_service:OpenAiService",
    "gemini": "gemini_service:GeminiService",
    "gemini-2.5": "gemini_service:Gemini25Service",
    "bedrock": "cloud_services:BedrockService",
    "vertex": "cloud_services:VertexService",
}
"""Names, and where the class is. One whose module needs an extra package is loaded when it is opened."""


def open_service(name: str) -> StrictService:
    """The service with the settings of its vendor; the class takes others. Raises `KeyError` for an unknown name."""
    module, _, kind = SERVICES[name].partition(":")
    service: type[StrictService] = getattr(import_module(f".{module}", __name__), kind)
    return service()
