"""Claude on Google Vertex AI: the Messages API with the model in the URL."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final
from urllib.parse import quote

from ..core.model import ModelError
from ..host.http.http_client import HttpClient
from ..host.http.urls import Url
from .anthropic_wire import AnthropicBodies, AnthropicReader
from .claude_choice import ClaudeChoice, with_date
from .google_tokens import FILE_VARIABLE, TOKEN_VARIABLES, CredentialsFile, GoogleToken, find_credentials_file
from .retry import Retries
from .service_access import BETA, Headers, RequestAuthorization, is_on, own_headers, with_own_headers
from .service_errors import ServiceAddress
from .service_model import ServiceModel

VERSION: Final = "vertex-2023-10-16"
DEFAULT_REGION: Final = "us-east5"
PROJECT_VARIABLES: Final = ("ANTHROPIC_VERTEX_PROJECT_ID", "GOOGLE_CLOUD_PROJECT", "GCLOUD_PROJECT")
REGION_VARIABLE: Final = "CLOUD_ML_REGION"
URL_VARIABLE: Final = "ANTHROPIC_VERTEX_BASE_URL"
SKIP_VARIABLE: Final = "CLAUDE_CODE_SKIP_VERTEX_AUTH"
_FAMILY: Final = re.compile(
    r"claude-(?:(?P<first>\d[\d-]*)-)?(?P<family>[a-z]+)(?:-(?P<last>\d[\d-]*?))?(?:[-@]\d{8})?"
)


class VertexModel(ServiceModel):
    def __init__(
        self,
        model: str,
        choice: ClaudeChoice,
        *,
        client: HttpClient,
        base_url: str,
        project: str,
        region: str,
        headers: Headers = (),
        authorization: RequestAuthorization | None = None,
        key_source: str = "none",
        retries: Retries | None = None,
    ) -> None:
        """`base_url` ends where `/projects` begins. Raises `BadUrl`."""
        place = f"/projects/{quote(project, safe=':')}/locations/{quote(region, safe='')}"
        service = ServiceAddress(
            name="Google Vertex AI",
            url=Url.parse(
                f"{base_url.rstrip('/')}{place}/publishers/anthropic/models/{quote(model, safe='@')}:streamRawPredict"
            ),
            headers=with_own_headers(
                (("content-type", "application/json"), ("accept", "text/event-stream"), *_beta(choice.betas)), headers
            ),
            model=model,
            key_variable=f"the credentials ({FILE_VARIABLE}) and whether {project} may use the model",
            url_variable=f"{REGION_VARIABLE}, {PROJECT_VARIABLES[0]} and {URL_VARIABLE}",
            wire="messages",
        )
        super().__init__(
            service,
            facts=choice.facts,
            client=client,
            retries=retries,
            body=AnthropicBodies(
                model,
                most_output=choice.facts.most_output,
                thinking=choice.thinking,
                opening={"anthropic_version": VERSION, "stream": True},
            ).body,
            reader=lambda: AnthropicReader(service),
            authorization=authorization,
            key_source=key_source,
        )


def open_vertex(
    choice: ClaudeChoice, environ: Mapping[str, str], client: HttpClient, retries: Retries | None
) -> VertexModel:
    """Raises `ModelError`, or `BadUrl`."""
    base_url = environ.get(URL_VARIABLE, "").strip()
    region = find_region(choice.name, environ)
    is_skipped = is_on(environ, SKIP_VARIABLE)
    has_token = any(environ.get(name, "").strip() for name in TOKEN_VARIABLES)
    file = None if is_skipped or has_token else find_credentials_file(environ)
    headers = own_headers(environ)
    if is_skipped and base_url and (token := environ.get("ANTHROPIC_AUTH_TOKEN", "").strip()):
        headers = with_own_headers((("authorization", f"Bearer {token}"),), headers)
    return VertexModel(
        with_date(choice.name, "@"),
        choice,
        client=client,
        base_url=_with_version(base_url) if base_url else _base_url(region),
        project=_project(environ, file),
        region=region,
        headers=headers,
        authorization=None if is_skipped else GoogleToken(environ, file, client),
        key_source="none" if is_skipped else "Google Cloud",
        retries=retries,
    )


def find_region(name: str, environ: Mapping[str, str]) -> str:
    """The one for this model, for all of them, or the usual one.

    >>> find_region("claude-opus-4-1@20250805", {"VERTEX_REGION_CLAUDE_4_1_OPUS": "europe-west1"})
    'europe-west1'
    """
    variables = (*_region_variables(name), REGION_VARIABLE)
    return next(filter(None, (environ.get(variable, "").strip() for variable in variables)), DEFAULT_REGION)


def _region_variables(name: str) -> Iterator[str]:
    """Both orders are in use.

    >>> list(_region_variables("claude-haiku-4-5")), list(_region_variables("claude-3-5-haiku@20241022"))[0]
    (['VERTEX_REGION_CLAUDE_4_5_HAIKU', 'VERTEX_REGION_CLAUDE_HAIKU_4_5'], 'VERTEX_REGION_CLAUDE_3_5_HAIKU')
    """
    found = _FAMILY.fullmatch(name)
    version = (found["first"] or found["last"] or "").replace("-", "_") if found else ""
    if found is None or not version:
        return
    family = found["family"].upper()
    for one in (version, *([f"{version}_0"] if "_" not in version else [])):
        yield f"VERTEX_REGION_CLAUDE_{one}_{family}"
        yield f"VERTEX_REGION_CLAUDE_{family}_{one}"


def _base_url(region: str) -> str:
    """
    >>> _base_url("global"), _base_url("eu"), _base_url("us-east5")[:35]
    ('https://aiplatform.googleapis.com/v1', 'https://aiplatform.eu.rep.googleapis.com/v1', 'https://us-east5-aiplatform.googlea')
    """
    if region == "global":
        return "https://aiplatform.googleapis.com/v1"
    if region in ("us", "eu"):
        return f"https://aiplatform.{region}.rep.googleapis.com/v1"
    return f"https://{region}-aiplatform.googleapis.com/v1"


def _with_version(base_url: str) -> str:
    """A URL without a path is the service's own, whose API is below /v1."""
    _, _, rest = base_url.rstrip("/").partition("://")
    return base_url if "/" in rest else f"{base_url.rstrip('/')}/v1"


def _project(environ: Mapping[str, str], file: CredentialsFile | None) -> str:
    named = next(filter(None, (environ.get(name, "").strip() for name in PROJECT_VARIABLES)), "")
    project = named or (file.project if file else "")
    if not project:
        raise ModelError(
            f"No project of Google Cloud is set, and requests for Vertex AI belong to one. Set {PROJECT_VARIABLES[0]}.",
            "key",
        )
    return project


def _beta(betas: tuple[str, ...]) -> Headers:
    return ((BETA, ",".join(betas)),) if betas else ()
