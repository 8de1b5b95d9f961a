"""Where requests for OpenAI's models go, in which format and with which key."""

from __future__ import annotations

from typing import Any

import pytest

from ferrule.core.model import ModelError
from ferrule.host.http.http_client import HttpClient
from ferrule.providers.model_catalog import open_model
from ferrule.providers.openai_address import find_openai
from ferrule.testing.model_server import ModelServer
from tests.providers.hearing import heard, text_of

OPENAI = "https://api.openai.com/v1"
AZURE = "https://ours.openai.azure.com"
GROQ = "https://api.groq.com/openai/v1"
CLASSIC = f"{AZURE}/openai/deployments/d"
VERSION = "api-version=2024-10-21"


def base(url: str, **more: str) -> dict[str, str]:
    return {"OPENAI_BASE_URL": url, "OPENAI_API_KEY": "k", **more}


def azure(url: str = AZURE, **more: str) -> dict[str, str]:
    return {"AZURE_OPENAI_ENDPOINT": url, "AZURE_OPENAI_API_KEY": "z", **more}


PLACES: list[tuple[dict[str, str], str, str]] = [
    ({"OPENAI_API_KEY": "k"}, "responses", f"{OPENAI}/responses"),
    (base(f"{OPENAI}/"), "responses", f"{OPENAI}/responses"),
    (base("https://eu.api.openai.com/v1"), "responses", "https://eu.api.openai.com/v1/responses"),
    ({"OPENAI_API_KEY": "k", "FERRULE_OPENAI_API": "chat"}, "chat", f"{OPENAI}/chat/completions"),
    (base("http://localhost:11434"), "chat", "http://localhost:11434/v1/chat/completions"),
    (base("http://localhost:1/v1?a=b"), "chat", "http://localhost:1/v1/chat/completions?a=b"),
    (base("http://localhost:1", FERRULE_OPENAI_API="responses"), "responses", "http://localhost:1/v1/responses"),
    (base(GROQ), "chat", f"{GROQ}/chat/completions"),
    (base("https://api.openai.com.evil.example/v1"), "chat", "https://api.openai.com.evil.example/v1/chat/completions"),
    (base(f"{OPENAI}/chat/completions"), "chat", f"{OPENAI}/chat/completions"),
    (base("http://localhost:1/v1/responses"), "responses", "http://localhost:1/v1/responses"),
    (base(f"{AZURE}/openai/v1/"), "responses", f"{AZURE}/openai/v1/responses"),
    (base(f"{AZURE}/openai/v1", FERRULE_OPENAI_API="chat"), "chat", f"{AZURE}/openai/v1/chat/completions"),
    (base(AZURE), "responses", f"{AZURE}/openai/v1/responses"),
    (base(f"{CLASSIC}?{VERSION}"), "chat", f"{CLASSIC}/chat/completions?{VERSION}"),
    (base(f"{CLASSIC}/chat/completions?{VERSION}"), "chat", f"{CLASSIC}/chat/completions?{VERSION}"),
    (base(CLASSIC, OPENAI_API_VERSION="2024-10-21"), "chat", f"{CLASSIC}/chat/completions?{VERSION}"),
    (base(f"{CLASSIC}?{VERSION}", FERRULE_OPENAI_API="responses"), "responses", f"{AZURE}/openai/responses?{VERSION}"),
    (azure(), "responses", f"{AZURE}/openai/v1/responses"),
    (azure(f"{AZURE}/openai/"), "responses", f"{AZURE}/openai/v1/responses"),
    (azure(OPENAI_API_VERSION="preview"), "responses", f"{AZURE}/openai/v1/responses"),
    (
        azure(OPENAI_API_VERSION="2024-10-21"),
        "chat",
        f"{AZURE}/openai/deployments/our%2Fmodel/chat/completions?{VERSION}",
    ),
    (azure(OPENAI_API_KEY="k"), "responses", f"{OPENAI}/responses"),
    (
        base("https://r.services.ai.azure.com/api/projects/p/openai/v1"),
        "responses",
        "https://r.services.ai.azure.com/api/projects/p/openai/v1/responses",
    ),
]


@pytest.mark.parametrize(("environ", "wire", "url"), PLACES, ids=str)
def test_the_variables_say_where_and_the_host_says_how(environ: dict[str, str], wire: str, url: str) -> None:
    service = find_openai("our/model", environ).service

    assert (service.wire, str(service.url)) == (wire, url)


@pytest.mark.parametrize(
    ("environ", "header", "source"),
    [
        ({"OPENAI_API_KEY": "k\n"}, ("authorization", "Bearer k"), "OPENAI_API_KEY"),
        (base("http://localhost:1", AZURE_OPENAI_API_KEY="z"), ("authorization", "Bearer k"), "OPENAI_API_KEY"),
        (base(f"{CLASSIC}?{VERSION}"), ("api-key", "k"), "OPENAI_API_KEY"),
        (base(f"http://proxy.example/openai/deployments/d?{VERSION}"), ("api-key", "k"), "OPENAI_API_KEY"),
        (azure(), ("api-key", "z"), "AZURE_OPENAI_API_KEY"),
        (azure(AZURE_OPENAI_AD_TOKEN="t"), ("authorization", "Bearer t"), "AZURE_OPENAI_AD_TOKEN"),
        ({"OPENAI_BASE_URL": "http://localhost:1", "AZURE_OPENAI_API_KEY": "z"}, None, "none"),
    ],
    ids=str,
)
def test_a_key_goes_to_the_service_that_it_is_for(
    environ: dict[str, str], header: tuple[str, str] | None, source: str
) -> None:
    access = find_openai("m", environ)

    keys = [one for one in access.service.headers if one[0] in ("authorization", "api-key")]
    assert keys == ([header] if header else [])
    assert access.key_source == source


@pytest.mark.parametrize(
    ("environ", "name"),
    [
        ({"OPENAI_API_KEY": "k", "FERRULE_OPENAI_API": "chat"}, "max_completion_tokens"),
        (base("http://localhost:1"), "max_tokens"),
        (base(f"{CLASSIC}?{VERSION}"), "max_completion_tokens"),
        (base(f"{CLASSIC}?api-version=2024-06-01"), "max_tokens"),
    ],
)
def test_the_longest_answer_has_the_name_that_the_service_knows(environ: dict[str, str], name: str) -> None:
    assert find_openai("m", environ).limit_name == name


@pytest.mark.parametrize(
    ("environ", "kind", "words"),
    [
        ({}, "key", "Set OPENAI_API_KEY, AZURE_OPENAI_ENDPOINT with AZURE_OPENAI_API_KEY"),
        ({"AZURE_OPENAI_API_KEY": "z"}, "key", "AZURE_OPENAI_ENDPOINT"),
        (azure("ours.openai.azure.com"), "request", "AZURE_OPENAI_ENDPOINT is not a usable URL"),
        (base("http://a b/v1"), "request", "OPENAI_BASE_URL is not a usable URL"),
        ({"OPENAI_API_KEY": "k", "FERRULE_OPENAI_API": "soap"}, "request", "Set it to `responses` or `chat`"),
    ],
)
def test_what_is_missing_or_wrong_is_named(environ: dict[str, str], kind: str, words: str) -> None:
    with pytest.raises(ModelError) as caught:
        find_openai("m", environ)

    assert caught.value.kind == kind
    assert words in str(caught.value)


def test_a_bare_name_is_azures_where_only_azure_is_configured() -> None:
    model = open_model("our-model", azure())

    assert (model.name, type(model).__name__) == ("our-model", "OpenAiResponsesModel")


async def test_a_refused_key_of_azure_is_named_by_its_variable() -> None:
    turn: dict[str, Any] = {"fault": {"status": 401, "body": {"error": {"code": "401", "message": "Access denied."}}}}
    async with ModelServer.playing({"turns": [turn, {"text": "Hi."}]}) as server, HttpClient({}) as client:
        url = f"{server.url}/openai/deployments/d?{VERSION}"
        model = open_model("openai:m", {"OPENAI_BASE_URL": url, "AZURE_OPENAI_API_KEY": "z"}, client=client)
        with pytest.raises(ModelError, match=r"Azure OpenAI does not accept the key.*Check AZURE_OPENAI_API_KEY"):
            await heard(model)
        assert text_of(await heard(model)) == "Hi."

    assert server.requests[1].path == f"/openai/deployments/d/chat/completions?{VERSION}"
    assert server.requests[1].headers["api-key"] == "z"
    assert "authorization" not in server.requests[1].headers
