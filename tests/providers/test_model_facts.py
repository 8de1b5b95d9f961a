"""Facts of models: from settings, from servers, learned, and what a request looks like by them."""

from __future__ import annotations

import asyncio
import json
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest

from ferrule.core.content import Document, Image, Text
from ferrule.core.model import ModelError, ModelFacts, Request, ResultTurn, ToolResult, UserTurn
from ferrule.core.tool import Exposure, ToolSpec
from ferrule.host.http.http_client import HttpClient
from ferrule.host.http.urls import Url
from ferrule.providers.kept_facts import KeptFacts
from ferrule.providers.model_catalog import open_model
from ferrule.providers.model_choice import ModelChoice, choose_model
from ferrule.providers.model_claims import FactSources, ModelClaim, refuse_small_window
from ferrule.providers.request_fitting import RequestFitting, words_for
from ferrule.providers.retry import Retries
from ferrule.providers.server_facts import ask_server, may_be_asked
from ferrule.providers.service_model import ServiceModel
from ferrule.testing import ModelServer
from tests.host.documents.making import png

from .fact_servers import LLAMA_CPP, LM_STUDIO, OLLAMA, OLLAMA_LOADED, OPENROUTER, VLLM, fact_server

TOOL = ToolSpec("Act", "Act", "Does it.", {"type": "object"}, Exposure.DIRECT)
PICTURE = Image("image/png", b64encode(png(80, 60)).decode())
PDF = Document("application/pdf", "AAAA", "report.pdf")


def choice(tmp_path: Path, **models: Any) -> ModelChoice:
    claims = {name: ModelClaim.from_json(said) for name, said in models.items()}
    return ModelChoice(facts=FactSources(settings=claims)).keeping_facts_in(tmp_path)


def opened(name: str, url: str, chosen: ModelChoice, **environ: str) -> ServiceModel:
    model = choose_model(name, {"OPENAI_BASE_URL": url, "ANTHROPIC_BASE_URL": url, **environ}, chosen)
    assert isinstance(model, ServiceModel)
    return model


async def asking(model: ServiceModel, *turns: Any, tools: Any = ()) -> None:
    async with model.stream(Request(turns or (UserTurn.saying("hi"),), tools)) as events:
        async for _ in events:
            pass


# What servers say


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        (VLLM, {"window": 40_960}),
        (LLAMA_CPP, {"window": 24_576, "images": True}),
        (LM_STUDIO, {"window": 20_480, "images": True}),
        (OLLAMA, {"window": 18_432, "images": False}),
        (OLLAMA_LOADED, {"window": 32_768, "images": False}),
        (
            OPENROUTER,
            {
                "window": 131_072,
                "output": 16_384,
                "images": True,
                "documents": True,
                "input_price": 0.5,
                "output_price": 2.0,
                "cache_read_price": 0.05,
            },
        ),
    ],
    ids=["vllm", "llama.cpp", "lm studio", "ollama", "ollama, loaded", "openrouter"],
)
async def test_each_server_is_understood(answers: dict[str, Any], said: dict[str, Any]) -> None:
    async with fact_server(answers) as (url, _), HttpClient({}) as client:
        claim = await ask_server(client, Url.parse(f"{url}/v1/chat/completions"), (), "qwen3")

    assert claim is not None
    assert claim.as_json() == said


async def test_a_server_that_says_nothing_is_told_from_one_that_is_not_there() -> None:
    async with fact_server({"/v1/models": {"data": [{"id": "qwen3"}]}}) as (url, _), HttpClient({}) as client:
        assert await ask_server(client, Url.parse(f"{url}/v1/chat/completions"), (), "qwen3") == ModelClaim()

    async with HttpClient({}) as client:
        assert await ask_server(client, Url.parse("http://127.0.0.1:9/v1/chat/completions"), (), "qwen3") is None


ODD: tuple[Any, ...] = ([], "x", {"data": 3}, {"data": [3, {"id": 4}]}, {"data": [{"id": "qwen3", "pricing": []}]})
UNUSABLE = ("", "[]", '{"version": 1}', '{"version": 1, "models": {"a": 3}}', '{"version": 9, "models": {}}')


@pytest.mark.parametrize("answer", ODD)
async def test_an_odd_answer_is_no_fact(answer: Any) -> None:
    answers = {"/v1/models": answer, "/props": answer, "/api/show": answer}
    async with fact_server(answers) as (url, _), HttpClient({}) as client:
        assert await ask_server(client, Url.parse(f"{url}/v1/chat/completions"), (), "qwen3") == ModelClaim()


def test_services_whose_lists_have_names_alone_are_not_asked() -> None:
    assert not may_be_asked(Url.parse("https://api.openai.com/v1/chat/completions"))
    assert not may_be_asked(Url.parse("https://x.openai.azure.com/openai/v1/responses"))


async def test_an_unknown_model_is_asked_of_its_server_beside_the_first_request_and_kept(tmp_path: Path) -> None:
    async with fact_server(VLLM) as (url, asked):
        model = opened("openai:qwen3", url, choice(tmp_path))
        assert (model.facts.window, asked) == (128_000, []), "nothing is asked at the start"
        with pytest.raises(ModelError):  # this server has no messages
            await asking(model)
        async with asyncio.timeout(10):
            while model.facts.source != "server":  # noqa: ASYNC110 - it is asked in a task of the model's own
                await asyncio.sleep(0)
        await model.close()
        again = opened("openai:qwen3", url, choice(tmp_path))
        with pytest.raises(ModelError):
            await asking(again)
        await again.close()

    assert model.facts.window == again.facts.window == 40_960
    assert asked.count("GET /v1/models") == 1
    (kept,) = KeptFacts(tmp_path / "models.json").all()
    assert kept[:2] == (url, "qwen3")
    assert kept[2]["server"]["date"]


@pytest.mark.parametrize("name", ["openai:gpt-5", "openai:qwen3"])
async def test_a_model_whose_facts_are_known_is_not_asked_of_its_server(tmp_path: Path, name: str) -> None:
    async with fact_server(VLLM) as (url, asked):
        model = opened(name, url, choice(tmp_path, qwen3={"window": 64_000}))
        with pytest.raises(ModelError):
            await asking(model)
        await model.close()

    assert asked == ["POST /v1/chat/completions"]


async def test_probing_replaces_what_was_learned(tmp_path: Path) -> None:
    async with fact_server(VLLM) as (url, _):
        model = opened("openai:qwen3", url, choice(tmp_path))
        model.learn_window(20_000)
        assert opened("openai:qwen3", url, choice(tmp_path)).facts.window == 20_000

        await model.ask_server()
        await model.close()

        assert opened("openai:qwen3", url, choice(tmp_path)).facts == model.facts
    assert (model.facts.window, model.facts.source) == (40_960, "server")


def test_what_was_learned_never_makes_a_window_larger(tmp_path: Path) -> None:
    model = opened("openai:gpt-4o", "http://127.0.0.1:9", choice(tmp_path))
    model.learn_window(500_000)

    assert model.facts.window == 128_000


@pytest.mark.parametrize("content", UNUSABLE)
def test_a_file_of_facts_that_cannot_be_used_is_empty(tmp_path: Path, content: str) -> None:
    (tmp_path / "models.json").write_text(content)
    kept = KeptFacts(tmp_path / "models.json")

    assert list(kept.all()) == []
    kept.keep("http://a", "m", "learned", {"window": 20_000})
    assert dict(kept.entries("http://a", "m"))["learned"]["window"] == 20_000


# Settings


def test_settings_take_precedence_for_every_wire_and_a_variable_over_them(tmp_path: Path) -> None:
    said = {"window": 50_000, "output": 9_000, "images": True, "input_price": 1, "output_price": 2, "effort": "low"}
    chosen = choice(tmp_path, qwen3=said)

    for service in ("openai", "anthropic"):
        facts = opened(f"{service}:qwen3", "http://127.0.0.1:9", chosen).facts
        assert (facts.window, facts.most_output, facts.takes_images) == (50_000, 9_000, True)
        assert (facts.input_price, facts.output_price, facts.effort, facts.source) == (1, 2, "low", "settings")
        shorter = opened(f"{service}:qwen3", "http://127.0.0.1:9", chosen, CLAUDE_CODE_MAX_OUTPUT_TOKENS="800").facts
        assert shorter.most_output == 800


async def test_the_longest_answer_and_the_effort_of_settings_are_sent(tmp_path: Path) -> None:
    chosen = choice(tmp_path, qwen3={"window": 64_000, "output": 9_000, "effort": "low"})
    async with ModelServer.playing({"turns": [{"text": "a"}, {"text": "b"}]}) as server:
        for service in ("openai", "anthropic"):
            model = opened(f"{service}:qwen3", server.url, chosen)
            await asking(model)
            await model.close()

    chat, messages = server.bodies
    assert (chat["max_tokens"], chat["reasoning_effort"]) == (9_000, "low")
    assert (messages["max_tokens"], messages["output_config"]) == (9_000, {"effort": "low"})


async def test_a_wire_in_settings_chooses_the_service(tmp_path: Path) -> None:
    chosen = choice(tmp_path, mine={"wire": "messages"}, other={"wire": "chat"})
    environ = {"OPENAI_BASE_URL": "http://127.0.0.1:9", "ANTHROPIC_BASE_URL": "http://127.0.0.1:9"}

    named = {name: type(choose_model(name, environ, chosen)).__name__ for name in ("mine", "other", "openai:mine")}

    assert named == {"mine": "AnthropicModel", "other": "OpenAiModel", "openai:mine": "OpenAiModel"}


# Small windows


async def test_a_window_that_is_too_small_is_refused_with_the_cure(tmp_path: Path) -> None:
    model = opened("openai:qwen3", "http://127.0.0.1:9", choice(tmp_path, qwen3={"window": 8_192}))

    with pytest.raises(ModelError) as caught:
        await asking(model, tools=(TOOL,))

    assert "8,192 tokens (`models` in your settings says so)" in str(caught.value)
    assert "OLLAMA_CONTEXT_LENGTH" in str(caught.value)
    assert refuse_small_window("m", ModelFacts(window=4_096, source="learned")) is None, "that is not certain"


# What a model cannot see


async def test_words_are_sent_in_the_place_of_what_a_model_cannot_see(tmp_path: Path) -> None:
    chosen = choice(tmp_path, qwen3={"window": 64_000, "images": False, "documents": False})
    turns = (UserTurn((Text("look"), PICTURE, PDF)), ResultTurn((ToolResult("1", (PICTURE,), is_error=False),)))
    async with ModelServer.playing({"turns": [{"text": "a"}, {"text": "b"}]}) as server:
        for service in ("openai", "anthropic"):
            model = opened(f"{service}:qwen3", server.url, chosen)
            await asking(model, *turns)
            await model.close()

    for body in server.bodies:
        sent = json.dumps(body["messages"])
        assert sent.count("[an image of 80x60 pixels, which this model cannot see]") == 2
        assert "[the document report.pdf of 3 bytes, which this model cannot read]" in sent
        assert PICTURE.base64 not in sent


async def test_a_model_that_sees_and_reads_gets_them(tmp_path: Path) -> None:
    chosen = choice(tmp_path, qwen3={"window": 64_000, "images": True, "documents": True})
    async with ModelServer.playing({"turns": [{"text": "a"}]}) as server:
        model = opened("openai:qwen3", server.url, chosen)
        await asking(model, UserTurn((PICTURE, PDF)))
        await model.close()

    assert [part["type"] for part in server.bodies[0]["messages"][0]["content"]] == ["image_url", "file"]


async def test_a_service_that_refuses_pictures_is_asked_again_without(tmp_path: Path) -> None:
    refusal = {
        "error": {
            "message": "messages.0.content.1: image exceeds the maximum dimensions",
            "type": "invalid_request_error",
        }
    }
    turns = [{"text": "", "fault": {"status": 400, "body": json.dumps(refusal)}}, {"text": "a"}, {"text": "b"}]
    async with ModelServer.playing({"turns": turns}) as server:
        model = opened("openai:gpt-5", server.url, choice(tmp_path))
        await asking(model, UserTurn((Text("look"), PICTURE)))
        await asking(model, UserTurn((Text("look"), PICTURE)))
        await model.close()

    assert ["image_url" in json.dumps(body) for body in server.bodies] == [True, False, False]


def test_a_turn_is_given_its_words_once_so_that_requests_begin_alike() -> None:
    fitting, blind = RequestFitting(), ModelFacts(takes_images=False)
    request = Request([UserTurn((PICTURE,)), UserTurn.saying("x")], ())

    first, second = fitting.fit(request, blind), fitting.fit(request, blind)

    assert first.history[0] is second.history[0] is not request.history[0]
    assert first.history[1] is request.history[1]


def test_a_picture_that_cannot_be_measured_has_no_size() -> None:
    assert words_for(Image("image/png", "AAAA")) == "[an image, which this model cannot see]"


def test_a_longer_answer_than_the_model_can_give_is_not_asked_for() -> None:
    request = Request([UserTurn.saying("hi")], (), max_tokens=99_000)

    assert RequestFitting().fit(request, ModelFacts(most_output=32_000)).max_tokens == 32_000


def test_without_sources_the_table_alone_is_used() -> None:
    model = open_model("openai:gpt-5", {"OPENAI_API_KEY": "k"}, retries=Retries(attempts=1))

    assert (model.facts.window, model.facts.source) == (400_000, "table")
