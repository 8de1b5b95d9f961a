"""Claude on Amazon Bedrock: the Messages API in the envelope of AWS."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote

from ..host.http.http_client import HttpClient
from ..host.http.urls import Url
from .anthropic_wire import AnthropicBodies, AnthropicReader
from .aws_event_stream import EventStreamReader
from .aws_signing import KEY_VARIABLE, AwsSignature, find_region, keys_of_environment
from .claude_choice import ClaudeChoice, with_date
from .retry import Retries
from .service_access import BETA, Headers, RequestAuthorization, is_on, own_headers
from .service_errors import ServiceAddress
from .service_model import ServiceModel

VERSION: Final = "bedrock-2023-05-31"
DEFAULT_REGION: Final = "us-east-1"
BEARER_VARIABLE: Final = "AWS_BEARER_TOKEN_BEDROCK"
URL_VARIABLE: Final = "ANTHROPIC_BEDROCK_BASE_URL"
SKIP_VARIABLE: Final = "CLAUDE_CODE_SKIP_BEDROCK_AUTH"


class BedrockModel(ServiceModel):
    def __init__(
        self,
        model: str,
        choice: ClaudeChoice,
        *,
        client: HttpClient,
        base_url: str,
        headers: Headers = (),
        betas: tuple[str, ...] = (),
        authorization: RequestAuthorization | None = None,
        key_source: str = "none",
        retries: Retries | None = None,
    ) -> None:
        """`model` is the id of a model or of an inference profile, or the ARN of either. Raises `BadUrl`."""
        service = ServiceAddress(
            name="Amazon Bedrock",
            url=Url.parse(f"{base_url.rstrip('/')}/model/{quote(model, safe='')}/invoke-with-response-stream"),
            headers=(
                ("content-type", "application/json"),
                ("accept", "application/vnd.amazon.eventstream"),
                *headers,
            ),
            model=model,
            key_variable="the AWS keys and whether the account may use the model",
            url_variable=f"{URL_VARIABLE} and AWS_REGION",
            wire="messages",
        )
        opening: dict[str, Any] = {"anthropic_version": VERSION}
        if betas:
            opening["anthropic_beta"] = list(betas)
        super().__init__(
            service,
            facts=choice.facts,
            client=client,
            retries=retries,
            body=AnthropicBodies(
                model, most_output=choice.facts.most_output, thinking=choice.thinking, opening=opening
            ).body,
            reader=lambda: AnthropicReader(service),
            frames=EventStreamReader,
            authorization=authorization,
            key_source=key_source,
        )


def open_bedrock(
    choice: ClaudeChoice, environ: Mapping[str, str], client: HttpClient, retries: Retries | None
) -> BedrockModel:
    """Raises `ModelError`, or `BadUrl`."""
    region = find_region(environ) or DEFAULT_REGION
    base_url = environ.get(URL_VARIABLE, "").strip()
    own = own_headers(environ)
    bearer, key_source = _bearer(environ, has_own_url=bool(base_url))
    authorization = None
    if not bearer and not is_on(environ, SKIP_VARIABLE):
        authorization = AwsSignature(environ, region=region, service="bedrock")
        key_source = KEY_VARIABLE if keys_of_environment(environ) else "the AWS profile"
    return BedrockModel(
        bedrock_id(choice.name, region),
        choice,
        client=client,
        base_url=base_url or endpoint_of(region),
        headers=(*bearer, *(one for one in own if one[0] != BETA)),
        betas=(*choice.betas, *_betas_of(own)),
        authorization=authorization,
        key_source=key_source,
        retries=retries,
    )


def endpoint_of(region: str) -> str:
    """
    >>> endpoint_of("eu-west-1"), endpoint_of("cn-north-1")
    ('https://bedrock-runtime.eu-west-1.amazonaws.com', 'https://bedrock-runtime.cn-north-1.amazonaws.com.cn')
    """
    return f"https://bedrock-runtime.{region}.amazonaws.com" + (".cn" if region.startswith("cn-") else "")


def bedrock_id(name: str, region: str) -> str:
    """The id of the inference profile for a name of Anthropic's; an id or an ARN is used as it is.

    >>> bedrock_id("claude-sonnet-5-5", "eu-west-1"), bedrock_id("claude-sonnet-4-5", "us-east-1")
    ('eu.anthropic.claude-sonnet-5-5', 'us.anthropic.claude-sonnet-4-5-20250929-v1:0')
    >>> bedrock_id("claude-opus-4-6", "ap-south-1"), bedrock_id("anthropic.claude-opus-5", "us-east-1")
    ('global.anthropic.claude-opus-4-6-v1', 'anthropic.claude-opus-5')
    """
    if not name.startswith("claude-") or ":" in name or "/" in name:
        return name
    dated = with_date(name, "-")
    if dated[-8:].isdecimal():
        dated += "-v1:0"
    elif dated == "claude-opus-4-6":
        dated += "-v1"
    return f"{_geography(region)}.anthropic.{dated}"


def _geography(region: str) -> str:
    """Whose machines may answer: those of the region's part of the world, or any."""
    if region.startswith("us-gov-"):
        return "us-gov"
    part = region.partition("-")[0]
    return part if part in ("us", "eu") else "global"


def _bearer(environ: Mapping[str, str], *, has_own_url: bool) -> tuple[Headers, str]:
    """A key of Bedrock, or a gateway's where the gateway signs. Anthropic's own token never goes to AWS itself."""
    if token := environ.get(BEARER_VARIABLE, "").strip():
        return (("authorization", f"Bearer {token}"),), BEARER_VARIABLE
    token = environ.get("ANTHROPIC_AUTH_TOKEN", "").strip()
    if token and has_own_url and is_on(environ, SKIP_VARIABLE):
        return (("authorization", f"Bearer {token}"),), "ANTHROPIC_AUTH_TOKEN"
    return (), "none"


def _betas_of(own: Headers) -> list[str]:
    return [beta.strip() for name, value in own if name == BETA for beta in value.split(",") if beta.strip()]
