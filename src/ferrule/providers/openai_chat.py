"""Models behind OpenAI's chat completions: OpenAI's own, Ollama, vLLM, OpenRouter and the like."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager

from ..core.model import ModelEvent, ModelFacts, Request
from ..host.http.client import HttpClient
from ..host.http.urls import Url
from .asking import ask_once
from .openai_calls import CallsInProgress
from .openai_wire import OpenAiBodies, OpenAiReader
from .retry import Retries, with_retries
from .trouble import Service

BASE_URL = "https://api.openai.com/v1"


class OpenAiModel:
    """Its client may be shared."""

    def __init__(
        self,
        model: str,
        *,
        client: HttpClient,
        base_url: str = BASE_URL,
        api_key: str = "",
        facts: ModelFacts,
        retries: Retries | None = None,
    ) -> None:
        """`base_url` ends where `/chat/completions` begins. Raises `BadUrl` where it is none."""
        self.name = model
        self.facts = facts
        self._client = client
        self._retries = retries or Retries()
        self._ids: set[str] = set()
        url = Url.parse(base_url.rstrip("/") + "/chat/completions")
        is_openai = url.host == Url.parse(BASE_URL).host
        self._bodies = OpenAiBodies(model, limit_name="max_completion_tokens" if is_openai else "max_tokens")
        headers = [("content-type", "application/json"), ("accept", "text/event-stream")]
        if api_key:
            headers.append(("authorization", f"Bearer {api_key}"))
        self._service = Service(
            name="OpenAI" if is_openai else "The model's service",
            url=url,
            headers=tuple(headers),
            model=model,
            key_variable="OPENAI_API_KEY",
            url_variable="OPENAI_BASE_URL",
        )

    async def close(self) -> None:
        """Close the connections that wait for a next request. The model can still be asked."""
        await self._client.close()

    @asynccontextmanager
    async def stream(self, request: Request, /) -> AsyncGenerator[AsyncIterator[ModelEvent]]:
        body = self._bodies.body(request)

        def ask() -> AsyncGenerator[ModelEvent]:
            reader = OpenAiReader(self._service, CallsInProgress(self._ids))
            return ask_once(self._client, self._service, body, reader)

        async with aclosing(with_retries(ask, self._retries)) as events:
            yield events
