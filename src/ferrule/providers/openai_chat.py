"""Models behind OpenAI's chat completions: OpenAI's own, Ollama, vLLM, OpenRouter and the like."""

from __future__ import annotations

from ..core.model import ModelFacts
from ..host.http.http_client import HttpClient
from ..host.http.urls import Url
from .openai_calls import CallsInProgress
from .openai_wire import OpenAiBodies, OpenAiReader
from .retry import Retries
from .service_errors import ServiceAddress
from .service_model import ServiceModel

BASE_URL = "https://api.openai.com/v1"


class OpenAiModel(ServiceModel):
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
        """`base_url` ends where `/chat/completions` begins. Raises `BadUrl` if it is not a URL."""
        url = Url.parse(base_url.rstrip("/") + "/chat/completions")
        is_openai = url.host == Url.parse(BASE_URL).host
        headers = (("content-type", "application/json"), ("accept", "text/event-stream"))
        service = ServiceAddress(
            name="OpenAI" if is_openai else "The model's service",
            url=url,
            headers=(*headers, ("authorization", f"Bearer {api_key}")) if api_key else headers,
            model=model,
            key_variable="OPENAI_API_KEY",
            url_variable="OPENAI_BASE_URL",
            wire="chat",
        )
        ids: set[str] = set()
        super().__init__(
            service,
            facts=facts,
            client=client,
            retries=retries,
            body=OpenAiBodies(
                model, limit_name="max_completion_tokens" if is_openai else "max_tokens", origin=service.origin
            ).body,
            reader=lambda: OpenAiReader(service, CallsInProgress(ids, service.origin)),
            key_source="OPENAI_API_KEY" if api_key else "none",
        )
