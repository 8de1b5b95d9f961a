"""Models of the Gemini API, and of services that speak it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import quote

from ..core.model import ModelFacts
from ..host.http.http_client import HttpClient
from ..host.http.urls import Url
from .gemini_wire import GeminiBodies, GeminiReader
from .known_models import gemini_facts
from .retry import Retries
from .service_errors import ServiceAddress
from .service_model import ServiceModel

BASE_URL = "https://generativelanguage.googleapis.com"
VERSION = "v1beta"
"""Has had function calls, schemas as JSON and reasoning for longer than the others."""
DEFAULT_GEMINI = "gemini-3.8-flash"
KEY_VARIABLES = ("GEMINI_API_KEY", "GOOGLE_API_KEY")
URL_VARIABLES = ("GEMINI_BASE_URL", "GOOGLE_GEMINI_BASE_URL")


class GeminiModel(ServiceModel):
    def __init__(
        self,
        model: str,
        *,
        client: HttpClient,
        base_url: str = BASE_URL,
        api_key: str = "",
        key_source: str = "none",
        facts: ModelFacts,
        retries: Retries | None = None,
    ) -> None:
        """Raises `BadUrl` if `base_url` is not a URL."""
        name = model.removeprefix("models/")
        service = ServiceAddress(
            name="Gemini" if base_url == BASE_URL else "The model's service",
            url=Url.parse(f"{_with_version(base_url)}/models/{quote(name, safe='')}:streamGenerateContent?alt=sse"),
            headers=(
                ("content-type", "application/json"),
                ("accept", "text/event-stream"),
                *((("x-goog-api-key", api_key),) if api_key else ()),
            ),
            model=name,
            key_variable="GEMINI_API_KEY",
            url_variable="GEMINI_BASE_URL",
            wire="gemini",
        )
        super().__init__(
            service,
            facts=facts,
            client=client,
            retries=retries,
            body=GeminiBodies(name, origin=service.origin, most_output=facts.most_output).body,
            reader=lambda: GeminiReader(service),
            key_source=key_source if api_key else "none",
        )


def open_gemini(
    model: str, environ: Mapping[str, str], client: HttpClient, retries: Retries | None
) -> GeminiModel | None:
    """`None` where neither a key nor a URL is set. Raises `BadUrl`."""
    key_source = next((name for name in KEY_VARIABLES if environ.get(name, "").strip()), "")
    base_url = next(filter(None, (environ.get(name, "").strip() for name in URL_VARIABLES)), "")
    if not (key_source or base_url):
        return None
    name = model or DEFAULT_GEMINI
    return GeminiModel(
        name,
        client=client,
        base_url=base_url.rstrip("/") or BASE_URL,
        api_key=environ.get(key_source, "").strip(),
        key_source=key_source,
        facts=gemini_facts(name.removeprefix("models/")),
        retries=retries,
    )


def _with_version(base_url: str) -> str:
    """
    >>> _with_version("https://gateway.example/gemini/"), _with_version("https://gateway.example/v1")
    ('https://gateway.example/gemini/v1beta', 'https://gateway.example/v1')
    """
    base = base_url.rstrip("/")
    return base if re.search(r"/v\d\w*$", base) else f"{base}/{VERSION}"
