"""Models behind OpenAI's chat completions: Ollama, vLLM, OpenRouter and the like, and OpenAI's own on request."""

from __future__ import annotations

from ..core.model import ModelFacts
from ..host.http.http_client import HttpClient
from .openai_address import OpenAiAccess
from .openai_calls import CallsInProgress
from .openai_wire import OpenAiBodies, OpenAiReader
from .retry import Retries
from .service_model import ServiceModel


class OpenAiModel(ServiceModel):
    def __init__(
        self, access: OpenAiAccess, *, client: HttpClient, facts: ModelFacts, retries: Retries | None = None
    ) -> None:
        service = access.service
        ids: set[str] = set()
        super().__init__(
            service,
            facts=facts,
            client=client,
            retries=retries,
            body=OpenAiBodies(service.model, limit_name=access.limit_name, origin=service.origin).body,
            reader=lambda: OpenAiReader(service, CallsInProgress(ids, service.origin)),
            key_source=access.key_source,
        )
