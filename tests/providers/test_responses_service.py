"""Conversations with a service that refuses what OpenAI's Responses API refuses."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ferrule.core.content import Text
from ferrule.core.model import ModelError, Request, ResultTurn, ToolResult, UserTurn
from ferrule.host.http.http_client import HttpClient
from ferrule.providers.model_catalog import open_model
from ferrule.sdk.client import query
from ferrule.testing import LoggedRequest, ModelServer, open_service
from ferrule.testing.services import PlayedTurn, seal
from ferrule.testing.services.responses_service import OpenAiResponsesService
from tests.host.documents.making import png
from tests.providers.hearing import heard, long_history, text_of, tools
from tests.providers.test_responses import turn_of
from tests.requirement import requirement
from tests.sdk.scenes import options, read, texts

CALLING = {
    "thinking": "I must look.",
    "text": "Looking.",
    "calls": [
        {"name": "Read", "input": {"file_path": "a.txt"}},
        {"name": "Read", "input": {"file_path": "b.png"}},
        {"name": "Nothing", "input": {}},
    ],
}


@requirement("LOOP-1")
async def test_a_conversation_with_calls_and_pictures_is_taken_and_goes_on_from_its_transcript(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\n")
    (tmp_path / "b.png").write_bytes(png(30, 20))
    service = open_service("openai-responses")
    turns = [CALLING, {"thinking": "Good.", "text": "Done."}, {**CALLING, "text": ""}, {"text": "Again."}]
    async with ModelServer.playing({"turns": turns}, service=service) as server:
        chosen: dict[str, Any] = {"model": service.model, "env": server.environ, "session_id": "one"}
        first = await read(query(prompt="Look.", options=options(tmp_path, **chosen)))
        chosen = {"model": service.model, "env": server.environ, "resume": "one"}
        second = await read(query(prompt="And again.", options=options(tmp_path, **chosen)))

    assert not server.refusals
    assert (texts(first), texts(second)) == (["Looking.", "Done."], ["Again."])
    kinds = [item.get("role") or item["type"] for item in server.bodies[-1]["input"]]
    assert kinds.count("reasoning") == 3
    assert kinds.count("function_call") == kinds.count("function_call_output") == 6
    results = [item for item in server.bodies[-1]["input"] if item["type"] == "function_call_output"]
    assert any(isinstance(result["output"], list) for result in results)
    assert len({body["prompt_cache_key"] for body in server.bodies}) == 1


async def test_a_history_of_another_service_is_taken() -> None:
    service = open_service("openai-responses")
    playing = ModelServer.playing({"turns": [{"text": "Hi."}]}, service=service)
    async with playing as server, HttpClient({}) as client:
        model = open_model(service.model, server.environ, client=client)
        request = Request(long_history(), tools(3), system="s", effort="max", thinking_tokens=9, max_tokens=1)
        assert text_of(await heard(model, request)) == "Hi."

    assert not server.refusals


async def test_a_model_that_does_not_reason_is_asked_as_it_wants() -> None:
    service = open_service("openai-responses")
    playing = ModelServer.playing({"turns": [{"text": "Hi."}]}, service=service)
    async with playing as server, HttpClient({}) as client:
        model = open_model("openai:gpt-4.1", server.environ, client=client)
        assert text_of(await heard(model, Request([UserTurn.saying("hi")], (), effort="high"))) == "Hi."

    assert not server.refusals


CALL = {"type": "function_call", "call_id": "c", "name": "Read", "arguments": "{}"}
OUTPUT = {"type": "function_call_output", "call_id": "c", "output": "done"}
SEALED = {
    "type": "reasoning",
    "id": "rs_1",
    "summary": [{"type": "summary_text", "text": "hm"}],
    "encrypted_content": seal("hm"),
}
SAID = {"type": "message", "role": "assistant", "content": "Hi"}
GO = {"type": "message", "role": "user", "content": "go"}
RULES: list[tuple[dict[str, Any], str]] = [
    ({"messages": []}, "Unknown parameter: 'messages'"),
    ({"input": []}, "Missing required parameter: 'input'"),
    ({"max_output_tokens": 1}, "below minimum value"),
    ({"model": "gpt-4.1", "include": ["reasoning.encrypted_content"]}, "Encrypted content is not supported"),
    ({"model": "gpt-4.1", "reasoning": {"effort": "low"}}, "'reasoning.effort' is not supported"),
    ({"tools": [{"type": "function", "function": {"name": "Read"}}]}, "'tools[0].name'"),
    ({"input": [{**CALL, "call_id": "c" * 65}]}, "maximum length 64"),
    ({"input": [{**CALL, "name": "a b"}]}, "does not match pattern"),
    ({"input": [{**CALL, "status": None}]}, "got null"),
    ({"input": [CALL]}, "No tool output found for function call c"),
    ({"input": [OUTPUT]}, "No tool call found"),
    ({"input": [{**SEALED, "encrypted_content": ""}, SAID]}, "Items are not persisted"),
    ({"input": [{**SEALED, "summary": []}, SAID]}, "could not be verified"),
    ({"input": [SEALED]}, "without its required following item"),
    ({"input": [SEALED, GO]}, "without its required following item"),
    ({"input": [{**CALL, "id": "fc_r1_0"}, OUTPUT]}, "without its required 'reasoning' item: 'rs_1'"),
]


@pytest.mark.parametrize(("body", "words"), RULES, ids=[words for _, words in RULES])
def test_the_service_refuses_what_the_vendor_refuses(body: dict[str, Any], words: str) -> None:
    service = open_service("openai-responses")
    keys = {"authorization": "Bearer k"}

    def refused(sent: dict[str, Any]) -> str:
        request = {"model": "gpt-6.1-sol", "input": [SEALED, {**CALL, "id": "fc_r1_0"}, OUTPUT, GO], **sent}
        refusal = service.refuse(LoggedRequest("/v1/responses", keys, json.dumps(request).encode()))
        return "" if refusal is None else refusal.body["error"]["message"]

    assert refused({}) == ""
    assert words in refused(body)


UNVERIFIED = "Your organization must be verified to generate reasoning summaries."
REFUSALS = [
    (UNVERIFIED, {"effort": "high"}),
    ("Unsupported value: 'high' is not supported with the 'm' model.", {"summary": "auto"}),
    ("Unsupported parameter: 'reasoning.effort' is not supported with this model.", None),
    ("Encrypted content is not supported with this model.", {"effort": "high", "summary": "auto"}),
]


@pytest.mark.parametrize(("said", "left"), REFUSALS)
async def test_what_an_account_or_a_model_may_not_have_is_left_out_from_then_on(said: str, left: Any) -> None:
    refusal = {"fault": {"status": 400, "body": {"error": {"type": "invalid_request_error", "message": said}}}}
    request = Request([UserTurn.saying("hi")], (), effort="high", thinking_tokens=9)
    playing = ModelServer.playing({"turns": [refusal, {"text": "Hi."}, {"text": "Hi."}]})
    async with playing as server, HttpClient({}) as client:
        environ = {"OPENAI_BASE_URL": server.url, "FERRULE_OPENAI_API": "responses"}
        model = open_model("openai:m", environ, client=client)
        assert [text_of(await heard(model, request)) for _ in range(2)] == ["Hi.", "Hi."]

    assert [body.get("reasoning") for body in server.bodies] == [{"effort": "high", "summary": "auto"}, left, left]
    assert ("include" in server.bodies[2]) is ("summaries" in said or "value" in said)


async def test_a_refusal_that_comes_as_an_event_is_one_too() -> None:
    class Refusing(OpenAiResponsesService):
        def events(self, played: PlayedTurn) -> Iterator[bytes]:
            if "summary" not in played.request.body.get("reasoning", {}):
                yield from super().events(played)
                return
            error = {"code": "unsupported_value", "message": UNVERIFIED}
            failed = {"type": "response.failed", "response": {"status": "failed", "output": [], "error": error}}
            yield f"data: {json.dumps(failed)}\n\n".encode()

    playing = ModelServer.playing({"turns": [{"text": "Hi."}] * 2}, service=Refusing())
    async with playing as server, HttpClient({}) as client:
        model = open_model("openai:gpt-6.1-sol", server.environ, client=client)
        assert text_of(await heard(model, Request([UserTurn.saying("hi")], (), thinking_tokens=9))) == "Hi."


async def test_a_refusal_that_stays_is_an_error_and_not_asked_for_ever() -> None:
    refusal = {"fault": {"status": 400, "body": {"error": {"message": UNVERIFIED}}}}
    async with ModelServer.playing({"turns": [refusal] * 9}) as server, HttpClient({}) as client:
        environ = {"OPENAI_BASE_URL": server.url, "FERRULE_OPENAI_API": "responses"}
        with pytest.raises(ModelError, match="must be verified"):
            await heard(open_model("openai:m", environ, client=client))

    assert len(server.requests) == 2


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (400, "The encrypted content gAAA could not be verified."),
        (404, "Item with id 'rs_1' not found. Items are not persisted when `store` is set to false."),
    ],
)
async def test_reasoning_that_the_service_cannot_open_any_more_does_not_end_a_conversation(
    status: int, words: str
) -> None:
    said = {"error": {"message": words, "type": "invalid_request_error"}}
    script = {"turns": [CALLING, {"fault": {"status": status, "body": said}}, {"text": "Hi."}]}
    async with ModelServer.playing(script) as server, HttpClient({}) as client:
        environ = {"OPENAI_BASE_URL": server.url, "FERRULE_OPENAI_API": "responses"}
        model = open_model("openai:m", environ, client=client)
        hello = UserTurn.saying("hi")
        turn = turn_of(await heard(model, Request([hello], ())))
        results = ResultTurn(tuple(ToolResult(call.id, (Text("done"),), is_error=False) for call in turn.calls))
        assert text_of(await heard(model, Request([hello, turn, results], ()))) == "Hi."

    sent = [[item["type"] for item in body["input"]] for body in server.bodies]
    assert "reasoning" in sent[1]
    assert "reasoning" not in sent[2]
    assert all("id" not in item for item in server.bodies[2]["input"])
