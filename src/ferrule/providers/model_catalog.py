"""From a name on the command line to a usable model.

Only the requested kind of model is imported: each adds some milliseconds to a start.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from ..core.model import ModelError, ModelProvider
from ..host.http.urls import BadUrl
from .claude_choice import LONG_SUFFIX, PLANNING, ClaudeChoice, choose_claude, is_short
from .known_models import openai_facts
from .model_choice import OPENAI_VARIABLES
from .service_access import KeyCommand, anthropic_keys, cloud_of, own_headers

if TYPE_CHECKING:
    from ..host.http.http_client import HttpClient
    from .retry import Retries
    from .service_model import ServiceModel

DEFAULT_OPENAI = "gpt-6.1-sol"
SCRIPTED = "scripted:"
SERVICES = ("anthropic", "openai", "gemini", "bedrock", "vertex", "scripted")
URL_VARIABLES = {"bedrock": "ANTHROPIC_BEDROCK_BASE_URL", "vertex": "ANTHROPIC_VERTEX_BASE_URL"}


class OpenedModel(ModelProvider, Protocol):
    async def close(self) -> None:
        """Closes idle connections. The model can still be used."""
        ...


def open_model(
    name: str | None,
    environ: Mapping[str, str],
    *,
    client: HttpClient | None = None,
    retries: Retries | None = None,
) -> OpenedModel:
    """`SERVICE:NAME`, `scripted:FILE`, or a bare name; empty for the default of a service with a key.

    Raises `ModelError`, which says what to set.
    """
    service, bare = _service_and_name(name or "", environ)
    if service == "scripted":
        return _open_scripted(bare)
    from ..host.http.http_client import HttpClient

    client = client or HttpClient(environ)
    opened = {"openai": _openai, "gemini": _gemini}.get(service)
    try:
        if opened is not None:
            return opened(bare, environ, client, retries)
        return _claude(service, bare, environ, client, retries)
    except BadUrl as error:
        variable = URL_VARIABLES.get(service, f"{service.upper()}_BASE_URL")
        raise ModelError(f"{variable} is not a usable URL: it {error}. Correct it, or unset it.", "request") from None


def speaks_anthropic(environ: Mapping[str, str]) -> bool:
    """Whether a bare name goes to the Anthropic API, a compatible service, or a cloud that has Claude."""
    return bool(cloud_of(environ) or anthropic_keys(environ)) or _any_of(environ, "ANTHROPIC_BASE_URL")


def service_of(name: str, environ: Mapping[str, str]) -> str:
    """One of `SERVICES`. Raises `ModelError` if none is available."""
    return _service_and_name(name, environ)[0]


def _service_and_name(name: str, environ: Mapping[str, str]) -> tuple[str, str]:
    service, colon, rest = name.partition(":")
    if colon and service in SERVICES:
        return service, rest
    if cloud := cloud_of(environ):
        if cloud not in SERVICES:
            raise _unsupported_cloud(cloud)
        return cloud, name
    if speaks_anthropic(environ):
        return "anthropic", name
    if _any_of(environ, *OPENAI_VARIABLES):
        return "openai", name
    if name.startswith(("gemini-", "gemma-")) or (
        not name and _any_of(environ, "GEMINI_API_KEY", "GOOGLE_API_KEY", "GEMINI_BASE_URL")
    ):
        return "gemini", name
    if name:  # no service is available, and the error must name the right key
        return "anthropic" if is_short(name) or name.startswith("claude") else "openai", name
    raise ModelError(
        "No model is configured. Set ANTHROPIC_API_KEY or OPENAI_API_KEY or GEMINI_API_KEY, or OPENAI_BASE_URL for a "
        "local server; "
        "or play a script with --model scripted:FILE.",
        "key",
    )


def _claude(
    service: str, model: str, environ: Mapping[str, str], client: HttpClient, retries: Retries | None
) -> OpenedModel:
    def open_one(name: str) -> ServiceModel:
        choice = choose_claude(name, environ)
        if service == "bedrock":
            from .bedrock import open_bedrock

            return open_bedrock(choice, environ, client, retries)
        if service == "vertex":
            from .vertex import open_vertex

            return open_vertex(choice, environ, client, retries)
        return _anthropic(choice, environ, client, retries)

    bare = model.removesuffix(LONG_SUFFIX)
    if bare != PLANNING:
        return open_one(model)
    from .asked_model import PlanningModel

    suffix = model[len(bare) :]
    return PlanningModel(open_one(f"opus{suffix}"), open_one(f"sonnet{suffix}"))


def _anthropic(
    choice: ClaudeChoice, environ: Mapping[str, str], client: HttpClient, retries: Retries | None
) -> ServiceModel:
    from .anthropic import BASE_URL, AnthropicModel

    keys, base_url = anthropic_keys(environ), _value(environ, "ANTHROPIC_BASE_URL")
    if not (keys or base_url):
        raise _no_key(choice.name, "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL")
    return AnthropicModel(
        choice.name,
        client=client,
        base_url=base_url.rstrip("/").removesuffix("/v1") or BASE_URL,
        keys=keys,
        helper=KeyCommand(keys.helper, environ) if keys.helper else None,
        betas=",".join(choice.betas),
        own=own_headers(environ),
        facts=choice.facts,
        thinking=choice.thinking,
        retries=retries,
    )


def _gemini(model: str, environ: Mapping[str, str], client: HttpClient, retries: Retries | None) -> OpenedModel:
    from .gemini import DEFAULT_GEMINI, open_gemini

    opened = open_gemini(model, environ, client, retries)
    if opened is None:
        raise _no_key(model or DEFAULT_GEMINI, "GEMINI_API_KEY", "GEMINI_BASE_URL")
    return opened


def _openai(model: str, environ: Mapping[str, str], client: HttpClient, retries: Retries | None) -> OpenedModel:
    from .openai_address import find_openai

    model = model or DEFAULT_OPENAI
    access, facts = find_openai(model, environ), openai_facts(model)
    if access.service.wire == "chat":
        from .openai_chat import OpenAiModel

        return OpenAiModel(access, client=client, facts=facts, retries=retries)
    from .openai_responses import OpenAiResponsesModel

    facts = replace(facts, takes_documents=facts.takes_images)
    return OpenAiResponsesModel(access, client=client, facts=facts, retries=retries)


def _open_scripted(file: str) -> OpenedModel:
    from .script import BadScript, ScriptFileModel, load_script

    try:
        return ScriptFileModel(load_script(file), f"{SCRIPTED}{file}")
    except BadScript as error:
        raise ModelError(str(error), "request") from None


def _unsupported_cloud(cloud: str) -> ModelError:
    return ModelError(
        f"CLAUDE_CODE_USE_{cloud.upper()} is set, and this version cannot ask that cloud. Nothing was sent. Unset it, "
        "or name another service: `--model anthropic:NAME` or `--model openai:NAME`.",
        "request",
    )


def _no_key(model: str, key: str, url: str) -> ModelError:
    return ModelError(
        f"No API key is set for {model}. Set {key}, or {url} for a service that does not need one.", "key"
    )


def _any_of(environ: Mapping[str, str], *names: str) -> bool:
    return any(_value(environ, name) for name in names)


def _value(environ: Mapping[str, str], name: str) -> str:
    """Without the line break that a copied key may contain."""
    return environ.get(name, "").strip()
