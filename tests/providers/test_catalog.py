"""From a name to a model, and what is known of it."""

from __future__ import annotations

import asyncio
import subprocess
import sys

import pytest

from ferrule.core.model import ModelError, Request, UserTurn
from ferrule.host.http.http_client import HttpClient
from ferrule.providers.anthropic import AnthropicModel
from ferrule.providers.claude_choice import DEFAULT_ANTHROPIC
from ferrule.providers.known_models import ANTHROPIC, OPENAI, SHORT_NAMES, anthropic_facts, openai_facts
from ferrule.providers.model_catalog import DEFAULT_OPENAI, open_model
from ferrule.providers.openai_chat import OpenAiModel
from ferrule.providers.openai_responses import OpenAiResponsesModel
from ferrule.testing.model_server import ModelServer
from tests.providers.hearing import heard, text_of
from tests.requirement import requirement

ONLY_ANTHROPIC = {"ANTHROPIC_API_KEY": "a"}
ONLY_OPENAI = {"OPENAI_API_KEY": "b"}
BOTH = {**ONLY_ANTHROPIC, **ONLY_OPENAI}


@requirement("LOOP-1")
@pytest.mark.parametrize(
    ("name", "environ", "kind", "model"),
    [
        ("anthropic:claude-x", BOTH, AnthropicModel, "claude-x"),
        ("openai:gpt-x", BOTH, OpenAiResponsesModel, "gpt-x"),
        ("claude-x", BOTH, AnthropicModel, "claude-x"),
        ("gpt-x", BOTH, AnthropicModel, "gpt-x"),
        ("gpt-x", ONLY_OPENAI, OpenAiResponsesModel, "gpt-x"),
        ("qwen3:8b", {"OPENAI_BASE_URL": "http://localhost:11434"}, OpenAiModel, "qwen3:8b"),
        ("m", {"ANTHROPIC_BASE_URL": "http://localhost:1"}, AnthropicModel, "m"),
        ("m", {"ANTHROPIC_AUTH_TOKEN": "t"}, AnthropicModel, "m"),
        (None, BOTH, AnthropicModel, DEFAULT_ANTHROPIC),
        ("opus", BOTH, AnthropicModel, "claude-opus-5-5"),
        ("anthropic:haiku", BOTH, AnthropicModel, "claude-haiku-5-5"),
        ("sonnet", {**BOTH, "ANTHROPIC_DEFAULT_SONNET_MODEL": "mine"}, AnthropicModel, "mine"),
        ("sonnet", ONLY_OPENAI, OpenAiResponsesModel, "sonnet"),
        ("", ONLY_OPENAI, OpenAiResponsesModel, DEFAULT_OPENAI),
        ("openai:", BOTH, OpenAiResponsesModel, DEFAULT_OPENAI),
    ],
)
def test_a_name_finds_its_service(name: str | None, environ: dict[str, str], kind: type, model: str) -> None:
    found = open_model(name, environ)

    assert isinstance(found, kind)
    assert found.name == model


@requirement("LOOP-1")
@pytest.mark.parametrize(
    ("name", "environ", "kind", "words"),
    [
        (None, {}, "key", "Set ANTHROPIC_API_KEY or OPENAI_API_KEY"),
        ("gpt-x", {}, "key", "Set OPENAI_API_KEY"),
        ("claude-x", {}, "key", "Set ANTHROPIC_API_KEY"),
        ("opus", {}, "key", "Set ANTHROPIC_API_KEY"),
        ("anthropic:m", ONLY_OPENAI, "key", "Set ANTHROPIC_API_KEY"),
        ("anthropic:m", {"ANTHROPIC_API_KEY": " \n"}, "key", "Set ANTHROPIC_API_KEY"),
        ("anthropic:m", {"ANTHROPIC_BASE_URL": "localhost:80"}, "request", "ANTHROPIC_BASE_URL"),
        ("openai:m", {"OPENAI_BASE_URL": "http://a b/v1"}, "request", "OPENAI_BASE_URL"),
        ("scripted:/nowhere.json", {}, "request", "/nowhere.json cannot be read"),
    ],
)
def test_what_is_missing_is_named(name: str | None, environ: dict[str, str], kind: str, words: str) -> None:
    with pytest.raises(ModelError) as caught:
        open_model(name, environ)

    assert caught.value.kind == kind
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("environ", "path", "header", "value"),
    [
        ({"ANTHROPIC_BASE_URL": "{}", "ANTHROPIC_API_KEY": "k\n"}, "/v1/messages", "x-api-key", "k"),
        ({"ANTHROPIC_BASE_URL": "{}/v1/"}, "/v1/messages", "anthropic-version", "2023-06-01"),
        ({"ANTHROPIC_BASE_URL": "{}/a", "ANTHROPIC_AUTH_TOKEN": "t"}, "/a/v1/messages", "authorization", "Bearer t"),
        ({"OPENAI_BASE_URL": "{}", "OPENAI_API_KEY": "k"}, "/v1/chat/completions", "authorization", "Bearer k"),
        ({"OPENAI_BASE_URL": "{}/api/"}, "/api/chat/completions", "content-type", "application/json"),
    ],
)
async def test_the_request_goes_where_the_environment_says(
    environ: dict[str, str], path: str, header: str, value: str
) -> None:
    async with ModelServer.playing({"turns": [{"text": "Hi."}]}) as server, HttpClient({}) as client:
        there = {name: text.format(server.url) for name, text in environ.items()}
        assert text_of(await heard(open_model("m", there, client=client))) == "Hi."

    assert server.requests[0].path == path
    assert server.requests[0].headers[header] == value


async def test_a_key_is_not_in_the_words_of_an_error() -> None:
    async with HttpClient({}) as client, ModelServer.playing({"turns": [{"text": "Hi."}]}) as server:
        for key in ("secret\nkey", "sécret"):
            model = open_model("m", {"ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_API_KEY": key}, client=client)
            with pytest.raises(ModelError) as caught:
                await heard(model)
            assert caught.value.kind == "key"
            assert "Check ANTHROPIC_API_KEY" in str(caught.value)
            assert "cret" not in str(caught.value)


def test_a_model_is_known_by_its_name_with_or_without_a_date() -> None:
    assert anthropic_facts("claude-opus-4-5-20251101")[0].input_price == 5
    assert anthropic_facts("claude-opus-4-1-20250805")[0].input_price == 15
    assert openai_facts("gpt-5-mini-2025-08-07").input_price == 0.25
    assert openai_facts("gpt-4o").window == 128_000
    assert openai_facts("o3-pro").input_price is None


def test_what_is_not_known_is_not_guessed() -> None:
    facts = openai_facts("gpt-5.9-moon")

    assert facts.input_price is None
    assert (facts.window, facts.takes_images) == (128_000, False)
    assert anthropic_facts("claude-next-9")[0].output_price is None


def test_a_short_name_means_a_model_that_is_known() -> None:
    assert all(anthropic_facts(name)[0].input_price for name in SHORT_NAMES.values())


def test_known_models_are_told_apart_and_priced_sensibly() -> None:
    for rows in (ANTHROPIC, OPENAI):
        assert len({row.name for row in rows}) == len(rows)
        assert all(row.cache_read_price < row.input_price < row.output_price for row in rows)
        assert all(row.output < row.window for row in rows)


@pytest.mark.parametrize(("model", "form"), [("claude-sonnet-4-5", "enabled"), ("claude-sonnet-5-5", "adaptive")])
async def test_reasoning_is_asked_for_in_the_form_that_the_model_takes(model: str, form: str) -> None:
    async with ModelServer.playing({"turns": [{"text": "Hi."}]}) as server, HttpClient({}) as client:
        provider = open_model(model, {"ANTHROPIC_BASE_URL": server.url}, client=client)
        await heard(provider, Request([UserTurn.saying("hi")], (), thinking_tokens=2_000))

    assert server.bodies[0]["thinking"]["type"] == form


FIRST_REQUEST = """
import sys
sys.modules["ssl"] = None  # asyncio can do without it, and so can a request over http
import asyncio
before = set(sys.modules)
from ferrule.core.model import Request, UserTurn
from ferrule.providers.model_catalog import open_model

async def main():
    service, _, api = sys.argv[1].partition("-")
    model = open_model(service + ":m", {service.upper() + "_BASE_URL": sys.argv[2], "FERRULE_OPENAI_API": api})
    async with model.stream(Request([UserTurn.saying("hi")], ())) as events:
        print(*[type(event).__name__ async for event in events])
    await model.close()

asyncio.run(main())
print(*sorted(set(sys.modules) - before))
"""
HEAVY = {"anthropic", "email", "ferrule.providers.script", "http", "httpx", "httpx2", "mcp", "openai", "pydantic"}


WIRES = {
    "anthropic": {"anthropic", "anthropic_wire"},
    "openai": {"openai_chat", "openai_wire"},
    "openai-responses": {"openai_responses", "responses_wire", "responses_reader"},
}


@requirement("LOOP-1")
@pytest.mark.parametrize("service", WIRES)
async def test_a_first_request_loads_nothing_heavy(service: str) -> None:
    async with ModelServer.playing({"turns": [{"text": "Hi."}]}) as server:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", FIRST_REQUEST, service, server.url, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        output, errors = await process.communicate()

    assert process.returncode == 0, errors.decode()
    first, second = output.decode().splitlines()
    loaded = set(second.split())
    assert first.split()[-2:] == (["Usage", "Stopped"] if service == "anthropic" else ["TextDelta", "Stopped"])
    assert not HEAVY & loaded
    for wire, modules in WIRES.items():
        assert ({f"ferrule.providers.{name}" for name in modules} <= loaded) is (wire == service)


ONLY_ITS_OWN = """
import sys
from ferrule.providers.model_catalog import open_model

open_model(sys.argv[1] + ":sonnet", {
    "ANTHROPIC_API_KEY": "k", "OPENAI_API_KEY": "k", "GEMINI_API_KEY": "k", "AWS_REGION": "eu-west-1",
    "ANTHROPIC_VERTEX_PROJECT_ID": "p", "GOOGLE_OAUTH_ACCESS_TOKEN": "t",
})
print(*sorted(sys.modules))
"""
OWN_MODULES = {
    "anthropic": {"anthropic", "anthropic_wire"},
    "gemini": {"gemini", "gemini_wire"},
    "bedrock": {"bedrock", "anthropic_wire", "aws_signing", "aws_event_stream"},
    "vertex": {"vertex", "anthropic_wire", "google_tokens"},
}


@requirement("LOOP-1")
@pytest.mark.parametrize("service", OWN_MODULES)
def test_a_service_loads_only_its_own_wire_and_no_package(service: str) -> None:
    done = subprocess.run([sys.executable, "-c", ONLY_ITS_OWN, service], capture_output=True, text=True, check=True)

    loaded = set(done.stdout.split())
    every = set().union(*OWN_MODULES.values())
    assert {name for name in every if f"ferrule.providers.{name}" in loaded} == OWN_MODULES[service]
    assert not {"botocore", "google.auth", "cryptography", "requests", "pydantic"} & loaded
