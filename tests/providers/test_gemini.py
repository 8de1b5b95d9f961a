"""The Gemini API: what is sent, by a server that checks it as Google would, and what is understood."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest

from ferrule.core.calls import ToolCall
from ferrule.core.content import Text
from ferrule.core.model import (
    AssistantTurn,
    CallDelta,
    CallReady,
    ModelError,
    ModelEvent,
    ModelProvider,
    Request,
    ResultTurn,
    Retrying,
    Stopped,
    TextDelta,
    Thought,
    ThoughtDelta,
    ThoughtReady,
    ToolResult,
    Turn,
    Usage,
    UserTurn,
)
from ferrule.host.http.http_client import HttpClient
from ferrule.host.http.urls import Url
from ferrule.providers.gemini_wire import FOREIGN_SIGNATURE, SIGNATURE, GeminiBodies, GeminiReader
from ferrule.providers.known_models import GEMINI, gemini_facts
from ferrule.providers.model_catalog import open_model
from ferrule.providers.model_choice import ModelChoice, choose_model
from ferrule.providers.retry import Retries
from ferrule.providers.service_errors import ServiceAddress, Trouble
from ferrule.providers.sse import ServerSentEvent
from ferrule.testing.model_server import ModelServer
from ferrule.testing.services import open_service
from tests.providers.conversing import turn_of
from tests.providers.hearing import PAPER, PICTURE, calls_of, heard, heard_until_error, long_history, text_of, tools
from tests.providers.rounds import converse, prompt, results_for
from tests.requirement import requirement

SERVICE = ServiceAddress(
    name="Gemini",
    url=Url.parse("http://127.0.0.1/"),
    headers=(),
    model="gemini-3.8-flash",
    key_variable="GEMINI_API_KEY",
    url_variable="GEMINI_BASE_URL",
    wire="gemini",
)
TWO_CALLS = {"calls": [{"name": "Tool0", "input": {"path": "a"}}, {"name": "Tool0", "input": {"path": "b"}}]}
DONE = {"text": "All done.", "usage": {"input_tokens": 30, "output_tokens": 4, "cache_read_tokens": 70}}


@asynccontextmanager
async def asked(
    *turns: Mapping[str, Any], service: str = "gemini", retries: Retries | None = None
) -> AsyncIterator[tuple[ModelServer, ModelProvider]]:
    strict = open_service(service)
    async with ModelServer.playing({"turns": list(turns)}, service=strict) as server, HttpClient({}) as client:
        yield server, open_model(strict.model, server.environ, client=client, retries=retries)


def body_of(history: list[Turn], model: str = "gemini-3.8-flash", **more: Any) -> dict[str, Any]:
    bodies = GeminiBodies(model, origin=SERVICE.origin, most_output=65_536)
    return json.loads(bodies.body(Request(history, (), **more)))


def read(*chunks: Mapping[str, Any]) -> list[ModelEvent]:
    reader = GeminiReader(SERVICE)
    events: list[ModelEvent] = []
    for chunk in chunks:
        events += reader.event(ServerSentEvent("", json.dumps(chunk)))
    return [*events, *reader.end(is_framed=True)]


def chunk(*parts: Mapping[str, Any], finish: str = "", **more: Any) -> dict[str, Any]:
    candidate: dict[str, Any] = {"content": {"role": "model", "parts": list(parts)}}
    return {"candidates": [{**candidate, **({"finishReason": finish} if finish else {})}], **more}


@requirement("LOOP-1")
@pytest.mark.parametrize("service", ["gemini", "gemini-2.5"])
async def test_a_conversation_of_parallel_calls_thoughts_and_words_is_taken_at_every_step(service: str) -> None:
    first = {"thinking": "I look at both.", "text": "Looking.", **TWO_CALLS}
    again = {"calls": [{"name": "Tool2", "input": {"n": [1, {"deep": None}]}, "id": "odd id/with:signs"}]}
    async with asked(first, again, DONE, {"text": "Yes."}, service=service) as (server, model):
        history = await converse(model, prompt())
        history = await converse(model, [*history, UserTurn.saying("sure?")])

    assert server.refusals == []
    assert [turn.text for turn in history if isinstance(turn, AssistantTurn)] == ["Looking.", "", "All done.", "Yes."]
    assert [content["role"] for content in server.bodies[-1]["contents"]] == ["user", "model"] * 3 + ["user"]


@requirement("LOOP-1")
@pytest.mark.parametrize("service", ["gemini", "gemini-2.5"])
async def test_whatever_another_service_left_in_the_conversation_is_taken(service: str) -> None:
    async with asked(DONE, service=service) as (server, model):
        await heard(model, Request(long_history(), tools(2), system="Be brief."))

    assert server.refusals == []
    responses = [part for part in server.bodies[0]["contents"][2]["parts"] if "functionResponse" in part]
    assert [one["functionResponse"] for one in responses] == [
        {"name": "Tool0", "response": {"output": "done"}},
        {"name": "Tool1", "response": {"error": ""}},
    ]


async def test_pictures_and_documents_go_as_data_beside_what_they_belong_to() -> None:
    call = ToolCall("c", "Tool0", {"path": "a.png"})
    history = [
        UserTurn((Text("look"), PICTURE, PAPER)),
        AssistantTurn((call,)),
        results_for([call], (Text("here"), PICTURE), notes=("a note",)),
    ]
    async with asked(DONE) as (server, model):
        await heard(model, Request(history, ()))

    assert server.refusals == []
    picture = {"inlineData": {"mimeType": "image/png", "data": PICTURE.base64}}
    paper = {"inlineData": {"mimeType": "application/pdf", "data": PAPER.base64}}
    first, _, last = (content["parts"] for content in server.bodies[0]["contents"])
    assert first == [{"text": "look"}, picture, {"text": "a paper:"}, paper]
    assert last[1:] == [{"text": "Result of the call of Tool0:"}, picture, {"text": "a note"}]


def test_a_result_goes_by_the_name_of_its_call_and_by_the_id_where_the_service_gave_one() -> None:
    turn = turn_of(
        read(
            chunk({"functionCall": {"id": "fc1", "name": "Read", "args": {"p": 1}}, SIGNATURE: "s"}),
            chunk({"functionCall": {"name": "Read"}}, finish="STOP"),
        )
    )
    ids = [call.id for call in turn.calls]

    body = body_of([*prompt(), turn, results_for(turn.calls)])

    assert ids[0] == "fc1"
    assert ids[1].startswith("call_")
    assert body["contents"][1]["parts"] == [
        {"functionCall": {"name": "Read", "args": {"p": 1}, "id": "fc1"}, SIGNATURE: "s"},
        {"functionCall": {"name": "Read", "args": {}}},
    ]
    assert [part["functionResponse"] for part in body["contents"][2]["parts"]] == [
        {"id": "fc1", "name": "Read", "response": {"output": "done"}},
        {"name": "Read", "response": {"output": "done"}},
    ]


def test_two_conversations_with_the_same_ids_do_not_mix_up_their_names() -> None:
    bodies = GeminiBodies("gemini-3.8-flash", origin="o", most_output=1_000)
    histories = [
        [*prompt(), AssistantTurn((ToolCall("1", name, {}),)), results_for([ToolCall("1", name, {})])]
        for name in ("Read", "Write")
    ]

    sent = [json.loads(bodies.body(Request(history, ()))) for history in (*histories, *histories)]

    names = [body["contents"][2]["parts"][0]["functionResponse"]["name"] for body in sent]
    assert names == ["Read", "Write", "Read", "Write"]


def test_a_result_whose_call_is_gone_is_told_in_words() -> None:
    body = body_of([*prompt(), ResultTurn((ToolResult("gone", (Text("42"),), is_error=False),))])

    assert body["contents"] == [{"role": "user", "parts": [{"text": "go"}, {"text": "Result of an earlier call:\n42"}]}]


def test_a_signature_goes_back_in_the_very_part_it_came_with_and_to_nobody_else() -> None:
    events = read(
        chunk({"text": "hm ", "thought": True}),
        chunk({"text": "signed", "thought": True, SIGNATURE: "t"}),
        chunk({"text": "One "}),
        chunk({"text": "two", SIGNATURE: "x"}),
        chunk({"text": "", SIGNATURE: "y"}, finish="STOP"),
    )
    turn = turn_of(events)
    history = [*prompt(), turn, *prompt("on")]

    there = body_of(history)["contents"][1]["parts"]
    elsewhere = json.loads(
        GeminiBodies("gemini-3.8-flash", origin="gemini@other", most_output=1).body(Request(history, ()))
    )

    assert turn.text == "One two"
    assert there == [
        {"text": "hm signed", "thought": True, SIGNATURE: "t"},
        {"text": "One "},
        {"text": "two", SIGNATURE: "x"},
        {"text": "", SIGNATURE: "y"},
    ]
    assert elsewhere["contents"][1]["parts"] == [{"text": "One two"}]


@pytest.mark.parametrize(("model", "signature"), [("gemini-3.8-flash", FOREIGN_SIGNATURE), ("gemini-2.5-pro", None)])
def test_the_first_of_another_services_calls_is_marked_where_a_signature_is_demanded(
    model: str, signature: str | None
) -> None:
    calls = (ToolCall("a", "Tool0", {}), ToolCall("b", "Tool 1.2", {}))

    parts = body_of([*prompt(), AssistantTurn((Thought("theirs", "sig"), *calls)), results_for(calls)], model)

    first, second = parts["contents"][1]["parts"]
    assert first.get(SIGNATURE) == signature
    assert second == {"functionCall": {"name": "Tool_1_2", "args": {}}}


@pytest.mark.parametrize(
    ("model", "asked_for", "config"),
    [
        ("gemini-3.8-flash", {}, {}),
        ("gemini-3.8-flash", {"thinking_tokens": 2_000}, {"thinkingLevel": "LOW"}),
        ("gemini-3.8-flash", {"thinking_tokens": 30_000}, {"thinkingLevel": "HIGH"}),
        ("gemini-3.8-flash", {"effort": "medium", "thinking_tokens": 1}, {"thinkingLevel": "MEDIUM"}),
        ("gemini-3.8-flash", {"effort": "max"}, {"thinkingLevel": "HIGH"}),
        ("gemini-2.5-flash", {}, {}),
        ("gemini-2.5-flash", {"thinking_tokens": 2_000}, {"thinkingBudget": 2_000}),
        ("gemini-2.5-flash", {"thinking_tokens": 99_000}, {"thinkingBudget": 24_576}),
        ("gemini-2.5-pro", {"thinking_tokens": 1}, {"thinkingBudget": 128}),
        ("gemini-2.5-pro", {"effort": "low"}, {"thinkingBudget": 1_024}),
    ],
)
def test_reasoning_is_asked_for_in_the_form_that_the_model_takes(
    model: str, asked_for: dict[str, Any], config: dict[str, Any]
) -> None:
    sent = body_of(prompt(), model, **asked_for)["generationConfig"]["thinkingConfig"]

    assert sent == {"includeThoughts": True, **config}


def test_a_model_that_does_not_reason_is_not_asked_to() -> None:
    assert body_of(prompt(), "gemini-2.0-flash", effort="high", max_tokens=50)["generationConfig"] == {
        "maxOutputTokens": 50
    }


def test_a_short_answer_has_room_for_the_reasoning_that_is_counted_with_it() -> None:
    config = body_of(prompt(), max_tokens=200)["generationConfig"]

    assert config == {"maxOutputTokens": 8_392, "thinkingConfig": {"includeThoughts": True, "thinkingLevel": "LOW"}}


def test_schemas_go_as_they_are_and_the_system_prompt_on_its_own() -> None:
    bodies = GeminiBodies("gemini-3.8-flash", origin="o", most_output=1)
    body = json.loads(bodies.body(Request(prompt(), tools(1), system="Be brief.")))

    (declaration,) = body["tools"][0]["functionDeclarations"]
    assert declaration["parametersJsonSchema"]["required"] == ["path"]
    assert body["systemInstruction"] == {"parts": [{"text": "Be brief."}]}


def test_what_was_sent_begins_the_next_request() -> None:
    bodies = GeminiBodies("gemini-3.8-flash", origin="o", most_output=1)
    call = ToolCall("1", "Tool0", {})
    history: list[Turn] = [*prompt(), AssistantTurn((call,)), results_for([call])]

    before = bodies.body(Request(history, tools(2), system="s"))
    after = bodies.body(Request([*history, AssistantTurn((Text("ok"),)), *prompt("on")], tools(2), system="s"))

    assert after.startswith(before.removesuffix(b"]}"))


def test_the_events_of_an_answer_are_in_order_and_whole() -> None:
    events = read(
        chunk({"text": "hm", "thought": True}),
        chunk({"text": "Hi."}),
        chunk({"functionCall": {"id": "f", "name": "Read", "args": {"a": "ü"}}}, finish="STOP"),
        {"usageMetadata": {"promptTokenCount": 9, "candidatesTokenCount": 2, "thoughtsTokenCount": 5}},
    )

    assert events == [
        ThoughtDelta("hm"),
        ThoughtReady(Thought("hm")),
        TextDelta("Hi."),
        CallDelta("f", "Read"),
        CallDelta("f", "Read", '{"a":"ü"}'),
        CallReady(events[5].call),  # type: ignore[union-attr]
        Usage(9, 7),
        Stopped("tool_use"),
    ]
    assert calls_of(events)[0].arguments == {"a": "ü"}


@pytest.mark.parametrize(
    ("finish", "reason"),
    [
        ("STOP", "end"),
        ("MAX_TOKENS", "max_tokens"),
        ("SAFETY", "refusal"),
        ("RECITATION", "refusal"),
        ("PROHIBITED_CONTENT", "refusal"),
        ("OTHER", "end"),
    ],
)
def test_reasons_to_stop(finish: str, reason: str) -> None:
    assert read(chunk({"text": "Well"}, finish=finish))[-1] == Stopped(reason)  # type: ignore[arg-type]


def test_a_prompt_that_is_blocked_is_a_refusal() -> None:
    assert read({"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}}) == [Stopped("refusal")]


@pytest.mark.parametrize(
    "chunks",
    [
        [chunk(finish="STOP")],
        [chunk(finish="MALFORMED_FUNCTION_CALL")],
        [chunk(finish="UNEXPECTED_TOOL_CALL")],
        [chunk({"text": "no end"})],
        [chunk({"functionCall": {"args": {}}})],
        [chunk({"functionCall": {"name": "A", "args": "text"}})],
        [{"candidates": ["odd"]}],
        [{"candidates": 7}],
    ],
    ids=str,
)
def test_an_answer_that_cannot_be_used_may_be_asked_for_again(chunks: list[dict[str, Any]]) -> None:
    with pytest.raises(Trouble) as caught:
        read(*chunks)

    assert caught.value.passing
    assert caught.value.kind in ("answer", "cut")


@requirement("LOOP-1")
@pytest.mark.parametrize(
    ("fault", "kind", "words"),
    [
        ({"status": 400, "body": {"error": {"message": "API key not valid.", "code": 400}}}, "key", "GEMINI_API_KEY"),
        ({"status": 403, "body": {"error": {"message": "denied", "code": 403}}}, "key", "GEMINI_API_KEY"),
        ({"status": 404, "body": {"error": {"message": "models/x is not found"}}}, "request", "has no model"),
        ({"status": 400, "body": {"error": {"message": "Invalid JSON payload."}}}, "request", "refuses the request"),
        (
            {
                "status": 400,
                "body": [
                    {
                        "error": {
                            "message": "The input token count (9) exceeds the maximum number of tokens allowed (5)."
                        }
                    }
                ],
            },
            "overflow",
            "too long",
        ),
    ],
    ids=lambda value: str(value)[:40],
)
async def test_refusals_are_told_in_words_that_help(fault: dict[str, Any], kind: str, words: str) -> None:
    async with asked({"fault": fault, "text": ""}) as (_, model):
        with pytest.raises(ModelError) as caught:
            await heard(model)

    assert caught.value.kind == kind
    assert words in str(caught.value)


async def test_a_wrong_key_is_named() -> None:
    async with asked(DONE) as (server, _), HttpClient({}) as client:
        wrong = open_model("gemini:gemini-3.8-flash", {**server.environ, "GEMINI_API_KEY": "wrong"}, client=client)
        with pytest.raises(ModelError, match="Check GEMINI_API_KEY") as caught:
            await heard(wrong)

    assert caught.value.kind == "key"


@requirement("LOOP-1")
async def test_a_pause_that_the_refusal_asks_for_is_kept() -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    retry = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34.5s"}
    busy = {"error": {"code": 429, "message": "Quota exceeded.", "status": "RESOURCE_EXHAUSTED", "details": [retry]}}
    faults = [{"fault": {"status": 429, "body": busy}, "text": ""}, {"fault": {"cut_after": 0}, "text": "x"}, DONE]
    async with asked(*faults, retries=Retries(sleep=sleep, chance=lambda: 0.5)) as (server, model):
        events = await heard(model)

    assert slept == [34.5, 1.0]
    assert text_of(events) == "All done."
    assert [type(event) for event in events[:2]] == [Retrying, Retrying]
    assert server.requests[0].raw == server.requests[2].raw


async def test_a_stream_that_is_cut_is_never_taken_for_whole() -> None:
    """At every place of it: before the first word it is asked for again, after it the end is an error."""
    turn = {"text": "One.", **TWO_CALLS}
    strict = open_service("gemini")
    async with asked(turn) as (server, model):
        whole = await heard(model)
    assert [type(event) for event in whole][-1] is Stopped
    length = await _length_of(turn)
    kinds: set[str] = set()
    for cut in range(0, length, 7):
        plays = [{**turn, "fault": {"cut_after": cut}}, DONE]
        async with ModelServer.playing({"turns": plays}, service=strict) as server, HttpClient({}) as client:
            model = open_model(strict.model, server.environ, client=client, retries=Retries(sleep=_no_sleep))
            try:
                events = await heard(model)
            except ModelError as error:
                kinds.add(error.kind)
            else:
                is_again = text_of(events) == "All done."
                assert is_again or [type(one) for one in events] == [type(one) for one in whole], cut
    assert kinds == {"cut"}


async def _no_sleep(_seconds: float) -> None:
    pass


async def _length_of(turn: Mapping[str, Any]) -> int:
    from ferrule.providers.script import check_script
    from ferrule.testing.services import LoggedRequest, PlayedTurn

    played = PlayedTurn(check_script({"turns": [dict(turn)]}, "s").turns[0], 0, "", LoggedRequest("/", {}, b"{}"))
    return sum(map(len, open_service("gemini").events(played)))


async def test_what_came_before_a_cut_stays_usable() -> None:
    turn = {"calls": [{"name": "Tool0", "input": {"path": "a"}}], "text": "Hello there everybody."}
    async with asked({**turn, "fault": {"cut_after": 300}}) as (_, model):
        events, error = await heard_until_error(model)

    assert error.kind == "cut"
    assert text_of(events)


async def test_what_was_read_from_the_cache_is_told() -> None:
    async with asked(DONE) as (_, model):
        events = await heard(model)

    assert [event for event in events if isinstance(event, Usage)] == [Usage(30, 4, 70)]


@pytest.mark.parametrize(
    ("name", "environ", "model"),
    [
        ("gemini:gemini-2.5-pro", {"GEMINI_API_KEY": "k", "ANTHROPIC_API_KEY": "a"}, "gemini-2.5-pro"),
        ("gemini:models/gemini-2.5-pro", {"GOOGLE_API_KEY": "k"}, "gemini-2.5-pro"),
        ("gemini-3.8-flash", {"GEMINI_API_KEY": "k"}, "gemini-3.8-flash"),
        (None, {"GEMINI_API_KEY": "k"}, "gemini-3.8-flash"),
        ("gemini:", {"GEMINI_BASE_URL": "http://localhost:1"}, "gemini-3.8-flash"),
    ],
)
def test_a_name_finds_gemini(name: str | None, environ: dict[str, str], model: str) -> None:
    assert open_model(name, environ).name == model


def test_what_is_missing_is_named() -> None:
    with pytest.raises(ModelError, match="Set GEMINI_API_KEY, or GEMINI_BASE_URL") as caught:
        open_model("gemini:gemini-2.5-pro", {"ANTHROPIC_API_KEY": "a"})

    assert caught.value.kind == "key"
    with pytest.raises(ModelError, match="GEMINI_BASE_URL is not a usable URL"):
        open_model("gemini:x", {"GEMINI_BASE_URL": "nonsense"})


async def test_the_key_of_the_settings_reaches_the_service_that_the_name_says() -> None:
    async with asked(DONE) as (server, _):
        choice = ModelChoice(api_key="from-settings", api_url=server.url)
        model = choose_model("gemini:gemini-3.8-flash", {}, choice)
        await heard(model)
        await model.close()

    assert server.requests[0].headers["x-goog-api-key"] == "from-settings"
    assert server.requests[0].path == "/v1beta/models/gemini-3.8-flash:streamGenerateContent?alt=sse"


def test_known_models_are_told_apart_and_priced_sensibly() -> None:
    assert len({row.name for row in GEMINI}) == len(GEMINI)
    assert all(row.cache_read_price < row.input_price < row.output_price for row in GEMINI)
    assert gemini_facts("gemini-3.1-pro-preview-05-2026").input_price == 2
    assert gemini_facts("gemini-2.5-flash").takes_documents
    unknown = gemini_facts("gemini-9-moon")
    assert (unknown.input_price, unknown.takes_images) == (None, True)
