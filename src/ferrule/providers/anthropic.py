"""Models of the Anthropic Messages API, and of services that speak it."""

from __future__ import annotations

from ..core.model import ModelFacts
from ..host.http.http_client import HttpClient
from ..host.http.urls import Url
from .anthropic_wire import AnthropicBodies, AnthropicReader
from .known_models import Thinking
from .retry import Retries
from .service_access import BETA, AnthropicKeys, Headers, KeyCommand, with_own_headers
from .service_errors import ServiceAddress
from .service_model import ServiceModel

VERSION = "2023-06-01"
"""Includes everything that Ferrule uses, and every compatible service supports it."""
BASE_URL = "https://api.anthropic.com"


class AnthropicModel(ServiceModel):
    def __init__(
        self,
        model: str,
        *,
        client: HttpClient,
        base_url: str = BASE_URL,
        keys: AnthropicKeys,
        helper: KeyCommand | None = None,
        betas: str = "",
        own: Headers = (),
        facts: ModelFacts,
        thinking: Thinking = "budget",
        retries: Retries | None = None,
    ) -> None:
        """`betas` names features that are not generally available yet, `own` are headers that the user adds.

        Raises `BadUrl` if `base_url` is not a URL.
        """
        service = ServiceAddress(
            name="Anthropic" if base_url == BASE_URL else "The model's service",
            url=Url.parse(base_url.rstrip("/") + "/v1/messages"),
            headers=with_own_headers(_headers(keys, betas), own),
            model=model,
            key_variable="ANTHROPIC_API_KEY",
            url_variable="ANTHROPIC_BASE_URL",
            wire="messages",
        )
        super().__init__(
            service,
            facts=facts,
            client=client,
            retries=retries,
            body=AnthropicBodies(model, most_output=facts.most_output, thinking=thinking).body,
            reader=lambda: AnthropicReader(service),
            authorization=helper,
            key_source=keys.source,
        )


def _headers(keys: AnthropicKeys, betas: str) -> tuple[tuple[str, str], ...]:
    headers = [("content-type", "application/json"), ("anthropic-version", VERSION), ("accept", "text/event-stream")]
    if keys.api_key:
        headers.append(("x-api-key", keys.api_key))
    if keys.bearer:
        headers.append(("authorization", f"Bearer {keys.bearer}"))
    asked = ",".join(filter(None, (betas, *keys.betas)))
    if asked:
        headers.append((BETA, asked))
    return tuple(headers)
