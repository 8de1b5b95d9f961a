"""From a name on the command line to a usable model.

Only the requested kind of model is imported: each adds some milliseconds to a start.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from ..core.model import ModelError, ModelProvider
from ..host.http.urls import BadUrl
from .known_models import SHORT_NAMES, anthropic_facts, openai_facts
from .model_choice import OPENAI_VARIABLES
from .service_access import KeyCommand, anthropic_keys, own_headers, refuse_other_clouds

if TYPE_CHECKING:
    from ..host.http.http_client import HttpClient
    from .anthropic import AnthropicModel
    from .retry import Retries

DEFAULT_ANTHROPIC = "claude-sonnet-5-5"
DEFAULT_OPENAI = "gpt-6.1-sol"
SCRIPTED = "scripted:"
PLANNING = "opusplan"
"""Opus while a plan is made, Sonnet while it is carried out."""
NAMES_FOR = {"default": "", "best": "opus"}
"""What other programs call models by."""
LONG_SUFFIX = "[1m]"
LONG_WINDOW = "context-1m-"
LONG_BETA = f"{LONG_WINDOW}2025-08-07"
LONG = 1_000_000
"""The context window with this feature, for models that have a smaller one without it."""
OUTPUT_VARIABLE = "CLAUDE_CODE_MAX_OUTPUT_TOKENS"


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
    """`anthropic:NAME`, `openai:NAME`, `scripted:FILE`, or a bare name; empty for the default of a service with a key.

    Raises `ModelError`, which says what to set.
    """
    service, bare = _service_and_name(name or "", environ)
    if service == "scripted":
        return _open_scripted(bare)
    from ..host.http.http_client import HttpClient

    client = client or HttpClient(environ)
    opened = _anthropic if service == "anthropic" else _openai
    try:
        return opened(bare, environ, client, retries)
    except BadUrl as error:
        variable = f"{service.upper()}_BASE_URL"
        raise ModelError(f"{variable} is not a usable URL: it {error}. Correct it, or unset it.", "request") from None


def is_short(name: str) -> bool:
    """Whether it is a short name for the newest model of a family, such as `sonnet` or `opus[1m]`."""
    bare = name.removesuffix(LONG_SUFFIX)
    return bare in SHORT_NAMES or bare in NAMES_FOR or bare == PLANNING


def speaks_anthropic(environ: Mapping[str, str]) -> bool:
    """Whether a bare name goes to the Anthropic API, or a compatible service."""
    return bool(anthropic_keys(environ)) or _any_of(environ, "ANTHROPIC_BASE_URL")


def service_of(name: str, environ: Mapping[str, str]) -> str:
    """`anthropic`, `openai` or `scripted`. Raises `ModelError` if none is available."""
    return _service_and_name(name, environ)[0]


def _service_and_name(name: str, environ: Mapping[str, str]) -> tuple[str, str]:
    service, colon, rest = name.partition(":")
    if colon and service in ("anthropic", "openai", "scripted"):
        return service, rest
    refuse_other_clouds(environ)
    if speaks_anthropic(environ):
        return "anthropic", name
    if _any_of(environ, *OPENAI_VARIABLES):
        return "openai", name
    if name:  # no service is available, and the error must name the right key
        return "anthropic" if is_short(name) or name.startswith("claude") else "openai", name
    raise ModelError(
        "No model is configured. Set ANTHROPIC_API_KEY or OPENAI_API_KEY, or OPENAI_BASE_URL for a local server; "
        "or play a script with --model scripted:FILE.",
        "key",
    )


def _anthropic(model: str, environ: Mapping[str, str], client: HttpClient, retries: Retries | None) -> OpenedModel:
    bare = model.removesuffix(LONG_SUFFIX)
    if bare != PLANNING:
        return _anthropic_model(model, environ, client, retries)
    from .asked_model import PlanningModel

    suffix = model[len(bare) :]
    planner, worker = (_anthropic_model(f"{name}{suffix}", environ, client, retries) for name in ("opus", "sonnet"))
    return PlanningModel(planner, worker)


def _anthropic_model(
    model: str, environ: Mapping[str, str], client: HttpClient, retries: Retries | None
) -> AnthropicModel:
    from .anthropic import BASE_URL, AnthropicModel

    full = _full(model, environ)
    name = full.removesuffix(LONG_SUFFIX)
    keys, base_url = anthropic_keys(environ), _value(environ, "ANTHROPIC_BASE_URL")
    if not (keys or base_url):
        raise _no_key(name, "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL")
    facts, thinking = anthropic_facts(name)
    betas = _value(environ, "ANTHROPIC_BETAS")
    if full != name and LONG_WINDOW not in betas:
        betas = ",".join(filter(None, (betas, LONG_BETA)))
    if LONG_WINDOW in betas and facts.window < LONG:
        facts = replace(facts, window=LONG)
    if most := _number(environ, OUTPUT_VARIABLE):
        facts = replace(facts, most_output=min(most, facts.most_output))
    return AnthropicModel(
        name,
        client=client,
        base_url=base_url.rstrip("/").removesuffix("/v1") or BASE_URL,
        keys=keys,
        helper=KeyCommand(keys.helper, environ) if keys.helper else None,
        betas=betas,
        own=own_headers(environ),
        facts=facts,
        thinking=thinking,
        retries=retries,
    )


def _full(model: str, environ: Mapping[str, str]) -> str:
    """The full name for a short name, from the environment or the table; any other name unchanged.

    >>> _full("opus[1m]", {"ANTHROPIC_DEFAULT_OPUS_MODEL": "claude-opus-5"}), _full("claude-opus-5", {})
    ('claude-opus-5[1m]', 'claude-opus-5')
    """
    bare = model.removesuffix(LONG_SUFFIX)
    suffix = model[len(bare) :]
    bare = NAMES_FOR.get(bare, bare)
    if bare not in SHORT_NAMES:
        return (bare or DEFAULT_ANTHROPIC) + suffix
    named = _value(environ, f"ANTHROPIC_DEFAULT_{bare.upper()}_MODEL") or SHORT_NAMES[bare]
    return named if named.endswith(LONG_SUFFIX) else named + suffix


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


def _no_key(model: str, key: str, url: str) -> ModelError:
    return ModelError(
        f"No API key is set for {model}. Set {key}, or {url} for a service that does not need one.", "key"
    )


def _number(environ: Mapping[str, str], name: str) -> int:
    """0 if it is not set, or not a number."""
    text = _value(environ, name)
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else 0


def _any_of(environ: Mapping[str, str], *names: str) -> bool:
    return any(_value(environ, name) for name in names)


def _value(environ: Mapping[str, str], name: str) -> str:
    """Without the line break that a copied key may contain."""
    return environ.get(name, "").strip()
