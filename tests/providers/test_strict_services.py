"""The strict services refuse what their vendors refuse, and nothing else."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ferrule.host.http.http_client import HttpClient
from ferrule.host.http.message import HttpRequest
from ferrule.host.http.urls import Url
from ferrule.providers.model_catalog import open_model
from ferrule.testing.model_server import ModelServer
from ferrule.testing.services import SERVICES, LoggedRequest, Refusal, open_service, seal
from ferrule.testing.services.chat_service import ChatService, openai_error
from ferrule.testing.services.local_services import OllamaService
from tests.providers.hearing import heard_until_error

KEYS = {
    "authorization": "Bearer k",
    "api-key": "k",
    "x-api-key": "k",
    "anthropic-version": "2023-06-01",
}
CHAT = [
    name
    for name in SERVICES
    if SERVICES[name].startswith(("hosted_services:", "local_services:")) and name not in ("azure", "mistral")
]
PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGVsbG8="}}


def call(id: str = "abcdefghi", name: str = "Read", **more: Any) -> dict[str, Any]:
    return {"id": id, "type": "function", "function": {"name": name, "arguments": "{}"}, **more}


def answer(*calls: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": None, "tool_calls": list(calls), **more}


def result(id: str = "abcdefghi") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": id, "content": "done"}


USER: dict[str, Any] = {"role": "user", "content": "go"}


def refusal(name: str, *messages: dict[str, Any], **body: Any) -> Refusal | None:
    service = open_service(name)
    path = getattr(service, "path", "") + ("?api-version=1" if name == "azure" else "")
    sent = {"model": service.model.partition(":")[2], "messages": messages, **body}
    return service.refuse(LoggedRequest(path, KEYS, json.dumps(sent).encode()))


def words(refused: Refusal | None) -> str:
    assert refused is not None, "it was taken"
    return json.dumps(refused.body)


@pytest.mark.parametrize("name", [*CHAT, "azure", "mistral"])
def test_a_call_without_its_result_and_a_result_without_its_call_are_refused(name: str) -> None:
    assert refusal(name, USER) is None
    assert "did not have response messages" in words(refusal(name, USER, answer(call()), USER))
    assert "must be a response to" in words(refusal(name, USER, result()))


@pytest.mark.parametrize("name", SERVICES)
def test_every_service_says_that_a_request_is_too_long_in_its_own_words(name: str) -> None:
    refused = open_service(name, window=1000).overflow(1234, 1000)

    assert 400 <= refused.status <= 500
    assert "1000" in json.dumps(refused.body)


def test_a_request_longer_than_the_window_is_refused_and_a_picture_is_not_counted_by_its_bytes() -> None:
    service = open_service("vllm", window=2000)

    def refused(content: Any) -> Refusal | None:
        body = {"messages": [{"role": "user", "content": content}]}
        return service.refuse(LoggedRequest("/v1/chat/completions", {}, json.dumps(body).encode()))

    assert "decoder prompt (length" in words(refused("x " * 5000))
    long = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 100_000}}
    assert refused([long]) is None


def test_openai_wants_short_ids_short_descriptions_and_another_api_for_new_models() -> None:
    tool: dict[str, Any] = {
        "type": "function",
        "function": {"name": "Read", "description": "x", "parameters": {"type": "object"}},
    }
    long = {**tool, "function": {**tool["function"], "description": "x" * 1025}}

    assert refusal("openai", USER, tools=[tool]) is None
    assert "maximum length 1024" in words(refusal("openai", USER, tools=[long]))
    assert "maximum length 40" in words(refusal("openai", USER, answer(call("i" * 41)), result("i" * 41)))
    assert "/v1/responses" in words(refusal("openai", USER, tools=[tool], model="gpt-6.1-sol"))
    assert refusal("openai", USER, tools=[tool], model="gpt-6.1-sol", reasoning_effort="none") is None


def test_deepseek_wants_the_reasoning_of_every_message_with_calls() -> None:
    thought = answer(call(), reasoning_content="hm")

    assert refusal("deepseek", USER, thought, result(), USER) is None
    assert "must be passed back" in words(refusal("deepseek", USER, answer(call()), result(), USER))
    assert "unknown variant `image_url`" in words(refusal("deepseek", {**USER, "content": [PICTURE]}))


def test_gemini_wants_the_signature_of_the_first_call_in_this_turn() -> None:
    signed = call(extra_content={"google": {"thought_signature": seal("Read")}})
    forged = call(extra_content={"google": {"thought_signature": "x"}})

    assert refusal("gemini-openai", USER, answer(signed, call("b")), result(), result("b")) is None
    assert "missing a thought_signature" in words(refusal("gemini-openai", USER, answer(forged), result()))
    assert refusal("gemini-openai", USER, answer(call()), result(), USER) is None


def test_mistral_wants_an_order_short_ids_and_no_fields_it_does_not_know() -> None:
    assert refusal("mistral", USER, answer(call()), result()) is None
    assert "Unexpected role 'user' after role 'tool'" in words(refusal("mistral", USER, answer(call()), result(), USER))
    assert "length of 9" in words(refusal("mistral", USER, answer(call("call_1")), result("call_1")))
    assert "extra_forbidden" in words(refusal("mistral", USER, answer(call(), reasoning_content=""), result()))


def test_openrouter_wants_the_details_of_reasoning_as_they_came() -> None:
    detail = {"type": "reasoning.text", "text": "hm", "signature": seal("hm"), "index": 0}
    changed = {**detail, "text": "hmm"}

    assert refusal("openrouter", USER, answer(call(), reasoning_details=[detail]), result()) is None
    assert "Expected `thinking`" in words(refusal("openrouter", USER, answer(call()), result()))
    assert "Invalid `signature`" in words(
        refusal("openrouter", USER, answer(call(), reasoning_details=[changed]), result())
    )


def test_azure_wants_its_version_and_its_own_header() -> None:
    service = open_service("azure")
    body = json.dumps({"messages": [USER]}).encode()
    path = "/openai/deployments/d/chat/completions"

    assert words(service.refuse(LoggedRequest(path, KEYS, body))).count("Resource not found")
    bearer = LoggedRequest(f"{path}?api-version=1", {"authorization": "Bearer k"}, body)
    assert "Access denied" in words(service.refuse(bearer))


def test_llamacpp_follows_a_template_in_which_roles_alternate() -> None:
    assert "roles must alternate" in words(refusal("llamacpp", USER, USER))


def test_ollama_cuts_what_is_too_long_and_refuses_tools_where_the_model_has_none() -> None:
    body = json.dumps({"messages": [{**USER, "content": "x" * 100_000}], "tools": [{}]}).encode()

    assert open_service("ollama", window=100).refuse_length(LoggedRequest("/", {}, body)) is None
    refused = OllamaService(takes_tools=False).refuse(LoggedRequest("/", {}, body))
    assert "does not support tools" in words(refused)


def test_anthropic_wants_signed_thoughts_few_breakpoints_and_words_in_every_text() -> None:
    use: dict[str, Any] = {"type": "tool_use", "id": "a", "name": "Read", "input": {}}
    thought = {"type": "thinking", "thinking": "hm", "signature": seal("hm")}
    done = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "done"}]}
    marked = {"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}}
    thinking = {"max_tokens": 4000, "thinking": {"type": "enabled", "budget_tokens": 2000}}

    def refused(*messages: dict[str, Any], **body: Any) -> str:
        return words(refusal("anthropic", *messages, **{"max_tokens": 10, **body}))

    assert refusal("anthropic", USER, max_tokens=10) is None
    assert refusal("anthropic", USER, {"role": "assistant", "content": [thought, use]}, done, **thinking) is None
    assert "Expected `thinking`" in refused(USER, {"role": "assistant", "content": [use]}, done, **thinking)
    assert "Invalid `signature`" in refused(USER, {"role": "assistant", "content": [{**thought, "thinking": "no"}]})
    assert "without `tool_result`" in refused(USER, {"role": "assistant", "content": [use]})
    assert "unexpected `tool_use_id`" in refused(USER, done)
    assert "non-whitespace" in refused({"role": "user", "content": [{"type": "text", "text": " "}]})
    assert "maximum of 4 blocks" in refused({"role": "user", "content": [marked] * 5})
    assert "should match pattern" in refused(
        USER, {"role": "assistant", "content": [{**use, "id": "a.b"}]}, {"role": "user", "content": "x"}
    )


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("llamacpp", "/props"),
        ("lmstudio", "/api/v0/models"),
        ("ollama", "/api/show"),
        ("openrouter", "/api/v1/models"),
        ("vllm", "/v1/models"),
    ],
)
async def test_services_that_tell_their_window_are_asked_without_using_up_a_turn(name: str, path: str) -> None:
    service = open_service(name, window=12_345)
    async with (
        ModelServer.playing({"turns": [{"text": "Hi."}]}, service=service) as server,
        HttpClient({}) as client,
        client.send(HttpRequest(url=Url.parse(server.url + path))) as response,
    ):
        told = await response.read()

    assert b"12345" in told
    assert server.accepted == []


class GatewayOfATeam(ChatService):
    """As docs/testing.md says that anybody can write one."""

    name = "gateway"
    rules = (lambda request: openai_error("Name your team.") if "x-team" not in request.headers else None,)


async def test_a_service_of_ones_own_is_a_class_with_rules() -> None:
    playing = ModelServer.playing({"turns": [{"text": "Hi."}]}, service=GatewayOfATeam())
    async with playing as server, HttpClient({}) as client:
        _, error = await heard_until_error(open_model("openai:any", server.environ, client=client))

    assert "Name your team." in str(error)
    assert [refused.status for refused in server.refusals] == [400]
