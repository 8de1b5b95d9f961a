"""Where requests for `openai:` models go, in which format and with which key: OpenAI, Azure, or a service like them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Final, Literal, TypeAlias, cast
from urllib.parse import quote

from ..core.model import ModelError
from ..core.values import named_value
from ..host.http.urls import BadUrl, Url
from .model_choice import OPENAI_VARIABLES
from .service_errors import ServiceAddress

Wire: TypeAlias = Literal["responses", "chat"]

BASE_URL: Final = "https://api.openai.com/v1"
API_VARIABLE: Final = "FERRULE_OPENAI_API"
PATHS: Final[Mapping[str, Wire]] = {"/chat/completions": "chat", "/responses": "responses"}
_OPENAI_HOST: Final = re.compile(r"(\w+\.)?api\.openai\.com")
_AZURE_HOST: Final = re.compile(
    r".+\.(openai\.azure\.(com|us|cn)|cognitiveservices\.azure\.com|services\.ai\.azure\.com)"
)
_DATED: Final = re.compile(r"\d{4}-\d\d-\d\d(-preview)?")
_DEPLOYMENTS: Final = "/openai/deployments/"
_NEW_LIMIT: Final = "2024-09"
"""The first version of Azure's API with `max_completion_tokens`."""


@named_value
class OpenAiAccess:
    service: ServiceAddress
    limit_name: str
    """The parameter of chat completions for the longest answer; new models and old servers differ."""
    key_source: str
    """The variable that the key is from, for a person."""


def find_openai(model: str, environ: Mapping[str, str]) -> OpenAiAccess:
    """Raises `ModelError`, which names the variable to set."""
    given = {name: environ.get(name, "").strip() for name in OPENAI_VARIABLES}
    variable = "OPENAI_BASE_URL"
    if not given["OPENAI_BASE_URL"] and not given["OPENAI_API_KEY"]:
        variable = "AZURE_OPENAI_ENDPOINT"
    if not any(given.values()):
        raise ModelError(
            f"No API key is set for {model}. Set OPENAI_API_KEY, AZURE_OPENAI_ENDPOINT with AZURE_OPENAI_API_KEY, "
            "or OPENAI_BASE_URL for a service that does not need a key.",
            "key",
        )
    try:
        url = Url.parse(given[variable] or BASE_URL)
    except BadUrl as error:
        raise ModelError(f"{variable} is not a usable URL: it {error}. Correct it, or unset it.", "request") from None
    place = _Place.of(url, model, environ)
    headers, key_source = _keys(place, environ)
    service = ServiceAddress(
        name=place.name,
        url=place.url,
        headers=(("content-type", "application/json"), ("accept", "text/event-stream"), *headers),
        model=model,
        key_variable="AZURE_OPENAI_API_KEY" if place.is_azure else "OPENAI_API_KEY",
        url_variable=variable,
        wire=place.wire,
    )
    return OpenAiAccess(
        service=service,
        limit_name="max_completion_tokens" if place.has_new_limit else "max_tokens",
        key_source=key_source,
    )


@named_value
class _Place:
    url: Url
    wire: Wire
    is_azure: bool
    is_openai: bool
    version: str
    """Of Azure's API, where the URL has one."""

    @property
    def name(self) -> str:
        return "Azure OpenAI" if self.is_azure else "OpenAI" if self.is_openai else "The model's service"

    @property
    def has_new_limit(self) -> bool:
        return self.is_openai or (self.is_azure and (not self.version or self.version >= _NEW_LIMIT))

    @classmethod
    def of(cls, base: Url, model: str, environ: Mapping[str, str]) -> _Place:
        path, _, query = base.target.partition("?")
        path = path.rstrip("/")
        is_azure_host, is_openai = (bool(host.fullmatch(base.host)) for host in (_AZURE_HOST, _OPENAI_HOST))
        wire = _chosen_wire(environ)
        for end, own in PATHS.items():  # the whole URL of a request, as the portal of a service shows it
            if path.endswith(end):
                path, wire = path.removesuffix(end), wire or own
        version = _version_of(query) or environ.get("OPENAI_API_VERSION", "").strip()
        if path in ("", "/openai") and is_azure_host:
            path = f"{_DEPLOYMENTS}{quote(model, safe='')}" if _DATED.fullmatch(version) else "/openai/v1"
        is_classic = _DEPLOYMENTS in path
        if is_classic and version and not _version_of(query):
            query = "&".join(filter(None, (query, f"api-version={quote(version)}")))
        if wire is None:
            is_current = is_openai or (is_azure_host and path.endswith("/openai/v1"))
            wire = "responses" if is_current else "chat"
        if is_classic and wire == "responses":  # which has no deployment in its URL
            path = f"{path.partition(_DEPLOYMENTS)[0]}/openai"
        target = (path or "/v1") + ("/responses" if wire == "responses" else "/chat/completions")
        return cls(
            url=replace(base, target=f"{target}?{query}" if query else target),
            wire=wire,
            is_azure=is_azure_host or is_classic or bool(_version_of(query)),
            is_openai=is_openai,
            version=_version_of(query),
        )


def _chosen_wire(environ: Mapping[str, str]) -> Wire | None:
    text = environ.get(API_VARIABLE, "").strip().lower()
    if text and text not in PATHS.values():
        raise ModelError(f"{API_VARIABLE} is `{text}`. Set it to `responses` or `chat`, or unset it.", "request")
    return cast(Wire, text) if text else None


def _version_of(query: str) -> str:
    """
    >>> _version_of("a=b&api-version=2024-10-21")
    '2024-10-21'
    """
    pairs = (part.partition("=") for part in query.split("&"))
    return next((value for name, _, value in pairs if name.lower() == "api-version"), "")


def _keys(place: _Place, environ: Mapping[str, str]) -> tuple[tuple[tuple[str, str], ...], str]:
    """The header with the key, and the variable it is from. A key of Azure is for Azure alone."""
    names = ("OPENAI_API_KEY",)
    if place.is_azure:
        names = ("AZURE_OPENAI_AD_TOKEN", "AZURE_OPENAI_API_KEY", "OPENAI_API_KEY")
    for name in names:
        if key := environ.get(name, "").strip():
            is_own_key = place.is_azure and name != "AZURE_OPENAI_AD_TOKEN"
            return (("api-key", key) if is_own_key else ("authorization", f"Bearer {key}"),), name
    return (), "none"
