"""OpenAI's Responses API: by the vendor's own types, and as others speak it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai.types.responses import Response, ResponseStreamEvent
from openai.types.responses.response_create_params import ResponseCreateParamsStreaming
from pydantic import TypeAdapter

from ferrule.core.calls import ServiceFields, ToolCall
from ferrule.core.content import Text
from ferrule.core.model import (
    AssistantPart,
    AssistantTurn,
    CallDelta,
    CallReady,
    ModelError,
    ModelEvent,
    Request,
    ResultTurn,
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
from ferrule.engine.transcript_entries import assistant_fields, assistant_turn, entry_of, line_of
from ferrule.providers.openai_responses import LADDER, choose_effort, fit_effort, is_reasoning
from ferrule.providers.responses_reader import ResponsesReader
from ferrule.providers.responses_wire import ResponsesBodies
from ferrule.providers.script import ScriptedTurn
from ferrule.providers.sse import ServerSentEvent
from ferrule.testing.model_wires import responses_frames
from tests.providers.hearing import PAPER, PICTURE, SERVICE, calls_of, long_history, text_of, tools
from tests.providers.typed_dicts import problems
from tests.requirement import requirement

ORIGIN = "responses@api.example/gpt-x"
EVENT: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)
SEALED = {"id": "rs_1", "type": "reasoning", "summary": [], "encrypted_content": "c2VhbGVk"}


def body(request: Request, origin: str = ORIGIN, **how: Any) -> dict[str, Any]:
    return json.loads(ResponsesBodies("gpt-x", origin=origin, **how).body(request))


def read(*events: dict[str, Any] | str) -> list[ModelEvent]:
    reader = ResponsesReader(SERVICE, ORIGIN)
    found: list[ModelEvent] = []
    for event in events:
        found += reader.event(ServerSentEvent("", event if isinstance(event, str) else json.dumps(event)))
    return [*found, *reader.end(is_framed=True)]


def ended(*output: dict[str, Any], status: str = "completed", **more: Any) -> dict[str, Any]:
    return {"type": f"response.{status}", "response": {"status": status, "output": list(output), **more}}


def done(item: dict[str, Any], place: int = 0) -> dict[str, Any]:
    return {"type": "response.output_item.done", "output_index": place, "item": item}


def begun(item: dict[str, Any], place: int = 0) -> dict[str, Any]:
    return {**done(item, place), "type": "response.output_item.added"}


def words(text: str, place: int = 0, kind: str = "output_text", **more: Any) -> dict[str, Any]:
    return {"type": f"response.{kind}.delta", "output_index": place, "delta": text, **more}


def call_item(arguments: str = "", name: str = "Read", call_id: str = "call_1", id: str = "fc_1") -> dict[str, Any]:
    return {"type": "function_call", "id": id, "call_id": call_id, "name": name, "arguments": arguments}


def said_item(text: str, **more: Any) -> dict[str, Any]:
    content = [{"type": "output_text", "text": text, "annotations": []}]
    return {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": content, **more}


def turn_of(events: Iterable[ModelEvent]) -> AssistantTurn:
    """The turn that the loop makes of them."""
    parts: list[AssistantPart] = []
    for event in events:
        match event:
            case ThoughtReady(thought):
                parts.append(thought)
            case TextDelta(text) if parts and isinstance(parts[-1], Text):
                parts[-1] = Text(parts[-1].text + text)
            case TextDelta(text):
                parts.append(Text(text))
            case CallReady(call):
                parts.append(call)
            case _:
                pass
    return AssistantTurn(tuple(parts))


def sent_back(turn: AssistantTurn, origin: str = ORIGIN) -> list[dict[str, Any]]:
    """The items of the model's turn in the next request."""
    history: list[Turn] = [UserTurn.saying("go"), turn, UserTurn.saying("on")]
    sent = body(Request(history, ()), origin)
    assert problems(sent, ResponseCreateParamsStreaming) == []
    return sent["input"][1:-1]


# Requests


@requirement("LOOP-1")
def test_a_request_with_everything_is_what_the_vendor_takes() -> None:
    request = Request(long_history(), tools(3), system="Be good.", max_tokens=9_000, effort="high", thinking_tokens=9)

    sent = body(request)

    assert problems(sent, ResponseCreateParamsStreaming) == []
    assert (sent["instructions"], sent["max_output_tokens"], sent["store"]) == ("Be good.", 9_000, False)
    assert sent["reasoning"] == {"effort": "high", "summary": "auto"}
    assert sent["include"] == ["reasoning.encrypted_content"]
    assert {(tool["name"], tool["strict"]) for tool in sent["tools"]} == {(f"Tool{at}", False) for at in range(3)}
    assert [item.get("role") or item["type"] for item in sent["input"]] == [
        "user",
        "assistant",
        "function_call",
        "function_call",
        "function_call_output",
        "function_call_output",
        "user",
        "user",
        "assistant",
        "user",
    ]


def test_pictures_and_documents_are_in_the_result_that_they_belong_to() -> None:
    results = (
        ToolResult("call_1", (Text("here"), PICTURE, PAPER), is_error=False),
        ToolResult("call_2", (Text("no"), Text("none")), is_error=True),
    )
    calls = AssistantTurn((ToolCall("call_1", "Read", {}), ToolCall("call_2", "Read", {})))
    request = Request([UserTurn.saying("go"), calls, ResultTurn(results, ("a note",))], ())

    sent = body(request)

    assert problems(sent, ResponseCreateParamsStreaming) == []
    first, second, note = sent["input"][3:]
    assert first["call_id"] == "call_1"
    assert first["output"] == [
        {"type": "input_text", "text": "here"},
        {"type": "input_image", "image_url": "data:image/png;base64,aGVsbG8=", "detail": "auto"},
        {"type": "input_file", "filename": "a paper.pdf", "file_data": "data:application/pdf;base64,aGVsbG8="},
    ]
    assert second["output"] == "no\n\nnone"
    assert note == {"type": "message", "role": "user", "content": "a note"}


def test_a_model_that_does_not_reason_is_not_asked_to() -> None:
    sent = body(Request([UserTurn.saying("hi")], (), effort="high", thinking_tokens=9), reasons=False)

    assert not sent.keys() & {"reasoning", "include"}


def test_nothing_is_said_of_reasoning_that_nobody_asked_for() -> None:
    sent = body(Request([UserTurn.saying("hi")], ()))

    assert "reasoning" not in sent


def test_a_conversation_keeps_its_cache_key_and_its_first_bytes() -> None:
    bodies = ResponsesBodies("gpt-x", origin=ORIGIN)
    history = long_history()
    short = bodies.body(Request(history[:3], tools(2), system="s"))
    long = bodies.body(Request(history, tools(2), system="s"))
    resumed = body(Request(history, tools(2), system="s"))
    other = body(Request([UserTurn.saying("other")], tools(2), system="s"))

    assert long.startswith(short.removesuffix(b"]}"))
    assert json.loads(long)["prompt_cache_key"] == resumed["prompt_cache_key"] != other["prompt_cache_key"]


def test_ids_and_names_of_other_services_are_made_to_fit_and_stay_different() -> None:
    ids = ("functions.Read:0", "x" * 80, "x" * 81, "ü")
    calls = AssistantTurn(tuple(ToolCall(id, "odd name!" * 10, {}) for id in ids))
    results = ResultTurn(tuple(ToolResult(id, (Text("done"),), is_error=False) for id in ids))

    items = body(Request([UserTurn.saying("go"), calls, results], ()))["input"]

    called, returned = items[1:5], items[5:]
    assert [item["call_id"] for item in called] == [item["call_id"] for item in returned]
    assert len({item["call_id"] for item in called}) == 4
    assert all(len(item["call_id"]) <= 64 and len(item["name"]) <= 64 for item in called)


# Effort


def test_every_effort_and_budget_finds_one_that_the_model_takes() -> None:
    assert [fit_effort("gpt-5", name) for name in LADDER] == ["minimal", "minimal", "low", "medium", *["high"] * 3]
    assert [fit_effort("gpt-5-pro-2025-10-06", name) for name in LADDER] == ["high"] * 7
    assert fit_effort("gpt-5-mini-2025-08-07", "minimal") == "minimal"
    assert [fit_effort("gpt-5.1", name) for name in ("none", "minimal", "max")] == ["none", "low", "high"]
    assert fit_effort("gpt-5.1-codex-max", "max") == "xhigh"
    assert [fit_effort("gpt-5.4-mini", name) for name in ("none", "xhigh", "max")] == ["none", "xhigh", "xhigh"]
    assert [fit_effort("gpt-6-astra", name) for name in ("none", "max")] == ["low", "max"]
    assert [fit_effort("gpt-6.1-sol", name) for name in ("none", "max")] == ["none", "max"]
    assert [fit_effort(name, "max") for name in ("o3", "o4-mini", "our-own")] == ["high", "high", "xhigh"]


@pytest.mark.parametrize(
    ("tokens", "effort"), [(None, ""), (1_024, "low"), (4_096, "medium"), (10_000, "medium"), (31_999, "high")]
)
def test_a_budget_for_reasoning_is_an_effort(tokens: int | None, effort: str) -> None:
    assert choose_effort("gpt-6.1-sol", Request([], (), thinking_tokens=tokens)) == effort
    assert choose_effort("gpt-6.1-sol", Request([], (), thinking_tokens=tokens, effort="max")) == "max"


@pytest.mark.parametrize(
    ("model", "effort", "limit"), [("gpt-6.1-sol", "none", 200), ("gpt-6-astra", "low", 4_296), ("own", "low", 4_296)]
)
def test_a_short_answer_is_not_used_up_by_reasoning(model: str, effort: str, limit: int) -> None:
    request = Request([UserTurn.saying("Is it safe?")], (), max_tokens=200)

    sent = body(request, effort=lambda request: choose_effort(model, request))

    assert (sent["reasoning"], sent["max_output_tokens"]) == ({"effort": effort}, limit)
    assert "reasoning" not in body(Request(request.history, (), max_tokens=9_000))


@pytest.mark.parametrize("model", ["gpt-4o", "gpt-4.1-mini", "gpt-3.5-turbo", "chatgpt-4o-latest", "ft:gpt-4o:us::1"])
def test_older_models_are_known_not_to_reason(model: str) -> None:
    assert not is_reasoning(model)
    assert is_reasoning("o3")


# Answers


@requirement("LOOP-1")
def test_a_stream_of_the_vendor_is_read() -> None:
    script = {
        "thinking": "hm yes",
        "text": "Two words",
        "calls": [{"name": "Read", "input": {"a": 1}, "id": "call_a"}, {"name": "Glob", "input": {}, "id": "call_b"}],
        "usage": {"input_tokens": 6, "output_tokens": 7, "cache_read_tokens": 20, "cache_write_tokens": 4},
    }
    lines = list(responses_frames(ScriptedTurn.model_validate(script), 0, "", "m"))
    events = [json.loads(line.partition("data: ")[2]) for line in lines]
    for event in events:
        EVENT.validate_python(event)

    found = read(*events)

    thoughts = [event.thought for event in found if isinstance(event, ThoughtReady)]
    assert [thought.text for thought in thoughts] == ["hm yes"]
    assert [event for event in found if not isinstance(event, ThoughtReady | CallReady)] == [
        ThoughtDelta("hm "),
        ThoughtDelta("yes"),
        TextDelta("Two "),
        TextDelta("words"),
        CallDelta("call_a", "Read"),
        CallDelta("call_a", "Read", '{"a":1}'),
        CallDelta("call_b", "Glob"),
        CallDelta("call_b", "Glob", "{}"),
        Usage(6, 7, 20, 4),
        Stopped("tool_use"),
    ]
    assert [(call.id, call.name, call.arguments) for call in calls_of(found)] == [
        ("call_a", "Read", {"a": 1}),
        ("call_b", "Glob", {}),
    ]


def test_parts_of_a_summary_are_told_apart() -> None:
    summary = [{"type": "summary_text", "text": text} for text in ("One", "Two")]
    part = {"type": "response.reasoning_summary_part.added", "output_index": 0}

    found = read(
        begun({**SEALED, "encrypted_content": "half"}),
        part,
        words("One", kind="reasoning_summary_text"),
        part,
        words("Two", kind="reasoning_summary_text"),
        done({**SEALED, "summary": summary}),
        done(said_item("Hi"), 1),
        ended(),
    )

    assert "".join(event.text for event in found if isinstance(event, ThoughtDelta)) == "One\n\nTwo"
    (thought,) = [event.thought for event in found if isinstance(event, ThoughtReady)]
    assert thought.text == "One\n\nTwo"
    assert thought.extras is not None
    assert thought.extras.fields["item"]["encrypted_content"] == "c2VhbGVk"


A, B = ("call_1", "Read", {"x": 1}), ("call_2", "Glob", {})
READ, GLOB = call_item('{"x": 1}'), call_item("{}", "Glob", "call_2", "fc_2")


def pieces(text: str, **place: Any) -> dict[str, Any]:
    return {"type": "response.function_call_arguments.delta", "delta": text, **place}


STREAMS: dict[str, list[dict[str, Any]]] = {
    "the ends alone": [done(READ), done(GLOB, 1), ended()],
    "a whole response at the end": [ended(READ, GLOB)],
    "two at once": [
        begun(call_item(), 0),
        begun(call_item("", "Glob", "call_2", "fc_2"), 1),
        pieces("{", output_index=1),
        pieces('{"x": 1}', output_index=0),
        pieces("}", output_index=1),
        done(READ, 0),
        done(GLOB, 1),
        ended(READ, GLOB),
    ],
    "every item has the number 0": [
        begun(call_item(), 0),
        pieces('{"x": 1}', output_index=0, item_id="fc_1"),
        done(READ, 0),
        begun(call_item("", "Glob", "call_2", "fc_2"), 0),
        pieces("{}", output_index=0, item_id="fc_2"),
        done(GLOB, 0),
        ended(READ, GLOB),
    ],
    "a new id in each event": [
        begun(call_item(id="one"), 0),
        pieces('{"x": 1}', output_index=0, item_id="two"),
        done({**READ, "id": "three"}, 0),
        begun(call_item("", "Glob", "call_2", "four"), 1),
        done({**GLOB, "id": "five"}, 1),
        ended({**READ, "id": "six"}, {**GLOB, "id": "seven"}),
    ],
    "pieces without an end of their own": [
        begun(call_item(), 0),
        pieces('{"x":', output_index=0),
        pieces(" 1}", output_index=0),
        begun(call_item("", "Glob", "call_2", "fc_2"), 1),
        ended(),
    ],
    "no numbers": [
        {"type": "response.output_item.added", "item": call_item()},
        pieces('{"x": 1}', item_id="fc_1"),
        {"type": "response.output_item.done", "item": READ},
        {"type": "response.output_item.done", "item": GLOB},
        ended(READ, GLOB),
    ],
}


@requirement("LOOP-1")
@pytest.mark.parametrize("events", STREAMS.values(), ids=STREAMS)
def test_calls_are_found_in_streams_that_others_write(events: list[dict[str, Any]]) -> None:
    found = read({"type": "response.created", "response": {}}, *events, "[DONE]")

    assert [(call.id, call.name, call.arguments) for call in calls_of(found)] == [A, B]
    assert found[-1] == Stopped("tool_use")


def test_text_that_comes_whole_is_said_once() -> None:
    assert text_of(read(done(said_item("Hi")), ended(said_item("Hi")))) == "Hi"
    assert text_of(read(words("Hi"), ended(said_item("Hi")))) == "Hi"
    assert text_of(read(words("Hi"), done(said_item("Hi")), ended(said_item("Hi")))) == "Hi"


def test_a_whole_response_in_place_of_a_stream_is_taken() -> None:
    whole = {
        "id": "resp_1",
        "object": "response",
        "created_at": 0,
        "model": "m",
        "status": "completed",
        "output": [SEALED, said_item("Hi"), READ],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": {
            "input_tokens": 3,
            "input_tokens_details": {"cached_tokens": 1, "cache_write_tokens": 0},
            "output_tokens": 2,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": 5,
        },
    }
    reader = ResponsesReader(SERVICE, ORIGIN)

    message = Response.model_validate(whole).model_dump(mode="json")
    found = [*reader.whole(message), *reader.end(is_framed=True)]

    assert (text_of(found), [call.name for call in calls_of(found)]) == ("Hi", ["Read"])
    assert found[-2:] == [Usage(2, 2, 1), Stopped("tool_use")]
    assert sent_back(turn_of(found))[0] == SEALED


@pytest.mark.parametrize(
    ("events", "reason"),
    [
        ([words("Hi"), ended(status="incomplete", incomplete_details={"reason": "max_output_tokens"})], "max_tokens"),
        ([words("Hi"), ended(status="incomplete", incomplete_details={"reason": "content_filter"})], "refusal"),
        ([words("Hi"), ended(status="incomplete")], "max_tokens"),
        ([words("I will not.", kind="refusal"), ended()], "refusal"),
        ([done(said_item("Hi")), ended()], "end"),
    ],
)
def test_every_reason_to_stop_has_its_meaning(events: list[dict[str, Any]], reason: Any) -> None:
    found = read(*events)

    assert text_of(found)
    assert found[-1] == Stopped(reason)


def test_a_refusal_that_comes_whole_is_said_and_is_one() -> None:
    item = {**said_item(""), "content": [{"type": "refusal", "refusal": "I will not."}]}

    found = read(done(item), ended(item))

    assert (text_of(found), found[-1]) == ("I will not.", Stopped("refusal"))


@pytest.mark.parametrize("is_ended", [False, True])
def test_a_call_that_was_cut_by_the_limit_is_not_carried_out(is_ended: bool) -> None:
    half = '{"path": "a", "content": "b"'
    events = [begun(call_item(), 0), pieces(half, output_index=0)]
    events += [done({**call_item(half), "status": "incomplete"})] if is_ended else []

    found = read(*events, ended(status="incomplete", incomplete_details={"reason": "max_output_tokens"}))

    (call,) = calls_of(found)
    assert (call.malformed, call.arguments) == (half, {})
    assert found[-1] == Stopped("max_tokens")


@pytest.mark.parametrize("events", [[], [words("Hi")], [done(READ)], [done(READ), "[DONE]"]], ids=str)
def test_an_end_that_the_service_did_not_name_is_a_cut(events: list[Any]) -> None:
    with pytest.raises(ModelError) as caught:
        read(*events)

    assert caught.value.kind == "cut"


@pytest.mark.parametrize("output", [(), (SEALED,), (said_item(""),)], ids=str)
def test_an_answer_without_a_word_or_a_call_is_an_error(output: tuple[dict[str, Any], ...]) -> None:
    with pytest.raises(ModelError, match="empty answer") as caught:
        read(*(done(item, place) for place, item in enumerate(output)), ended(*output))

    assert caught.value.kind == "answer"


def failed(**error: Any) -> dict[str, Any]:
    return {"type": "response.failed", "response": {"status": "failed", "output": [], "error": error}}


@pytest.mark.parametrize(
    ("event", "kind", "is_passing"),
    [
        (failed(code="server_error", message="Sorry."), "overload", True),
        (failed(code="rate_limit_exceeded", message="Slow down."), "limit", True),
        (failed(code="insufficient_quota", message="No credit."), "limit", False),
        (failed(code="invalid_prompt", message="No."), "request", False),
        (failed(code="image_too_large", message="No."), "request", False),
        (failed(code="context_length_exceeded", message="It exceeds the context window."), "overflow", False),
        (failed(code="upstream_error", message="Oh."), "overload", True),
        ({"type": "error", "code": "rate_limit_exceeded", "message": "Slow down.", "param": None}, "limit", True),
        ({"type": "error", "error": {"type": "server_error", "code": None, "message": "Oh."}}, "overload", True),
        ({"error": {"type": "invalid_request_error", "message": "No.", "code": None}}, "request", False),
        ({"type": "response.failed", "response": {"status": "failed", "error": None}}, "cut", True),
        (ended(status="cancelled") | {"type": "response.completed"}, "cut", True),
        ("{no", "answer", True),
        ("[]", "answer", True),
        ({"type": "response.completed"}, "answer", True),
        ({"type": "response.output_item.done", "item": 7}, "answer", True),
    ],
)
def test_what_goes_wrong_in_a_stream_has_its_kind(event: Any, kind: str, is_passing: bool) -> None:
    with pytest.raises(ModelError) as caught:
        read(event)

    assert caught.value.kind == kind
    assert getattr(caught.value, "passing", None) is is_passing


def test_events_that_nobody_knows_are_passed_over() -> None:
    assert read({"type": "response.steer.pending"}, {"type": "keepalive"}, words("Hi"), ended()) == [
        TextDelta("Hi"),
        Stopped("end"),
    ]


# What goes back


def reasoned() -> AssistantTurn:
    second = {**SEALED, "id": "rs_2", "content": None, "status": None}
    events = (done(SEALED), done(READ, 1), done(second, 2), done(said_item("So", phase="commentary"), 3), done(GLOB, 4))
    return turn_of(read(*events, ended()))


def test_reasoning_goes_back_sealed_before_what_it_led_to() -> None:
    assert sent_back(reasoned()) == [
        SEALED,
        {**READ, "arguments": '{"x":1}'},
        {**SEALED, "id": "rs_2"},
        {"type": "message", "role": "assistant", "content": "So", "phase": "commentary"},
        GLOB,
    ]


def test_another_service_or_model_is_sent_none_of_it() -> None:
    plain = sent_back(reasoned(), origin="responses@api.example/gpt-y")

    assert [item["type"] for item in plain] == ["function_call", "message", "function_call"]
    assert all(not item.keys() & {"id", "phase"} for item in plain)


def test_a_transcript_keeps_all_that_goes_back() -> None:
    turn = reasoned()

    fields = assistant_fields(turn, model="gpt-x", stopped="tool_use", usage=Usage())
    kept = assistant_turn(entry_of(line_of({"type": "assistant", **fields})))

    assert sent_back(kept) == sent_back(turn)


@pytest.mark.parametrize("fields", [{"item": 7}, {"item": {}}, {"item": {"type": 7}}, {"message": []}, {"message": 7}])
def test_what_somebody_wrote_into_a_transcript_is_not_taken_for_an_item(fields: dict[str, Any]) -> None:
    turn = AssistantTurn((Text("Hi"), Thought("", extras=ServiceFields(ORIGIN, fields))))

    assert sent_back(turn) == [{"type": "message", "role": "assistant", "content": "Hi"}]


def test_reasoning_without_what_it_led_to_stays_here() -> None:
    both = turn_of(read(done(said_item("Hi")), done(SEALED, 1), ended()))

    assert [item["type"] for item in sent_back(both)] == ["message"]
    assert sent_back(turn_of(read(done(SEALED), ended(status="incomplete")))) == []


def test_reasoning_that_is_not_sealed_cannot_go_back_and_takes_the_ids_of_its_calls_along() -> None:
    bare = {"id": "rs_1", "type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]}

    items = sent_back(turn_of(read(done(bare), done(READ, 1), ended())))

    assert [item["type"] for item in items] == ["function_call"]
    assert "id" not in items[0]


def test_reasoning_in_the_open_goes_back_as_it_came() -> None:
    content = [{"type": "reasoning_text", "text": "hm"}]
    bare = {"id": "rs_1", "type": "reasoning", "summary": [], "content": content, "encrypted_content": None}

    found = read(words("hm", kind="reasoning_text"), done(bare), done(READ, 1), ended())

    assert found[0] == ThoughtDelta("hm")
    assert sent_back(turn_of(found))[0] == {"id": "rs_1", "type": "reasoning", "summary": [], "content": content}


def test_items_and_fields_that_nobody_knows_go_back_to_where_they_came_from() -> None:
    compaction = {"type": "compaction", "id": "cmp_1", "encrypted_content": "x"}
    call = {**READ, "namespace": "files", "caller": None, "status": "completed"}
    turn = turn_of(read(done(compaction), done(SEALED, 1), done(call, 2), ended()))

    assert sent_back(turn) == [compaction, SEALED, {**READ, "arguments": '{"x":1}', "namespace": "files"}]


# Nonsense

WHOLE = [
    json.loads(line.partition("data: ")[2])
    for line in responses_frames(
        ScriptedTurn.model_validate(
            {"thinking": "hm", "text": "Hi", "calls": [{"name": "Read", "input": {"a": 1}}], "usage": {}}
        ),
        0,
        "",
        "m",
    )
]


def spoilt(value: Any, path: list[int], odd: Any) -> Any:
    """With something odd in place of one of its values."""
    if not path or not value or not isinstance(value, dict | list):
        return odd
    at = path[0] % len(value)
    if isinstance(value, list):
        return [spoilt(one, path[1:], odd) if number == at else one for number, one in enumerate(value)]
    key = list(value)[at]
    return {**value, key: spoilt(value[key], path[1:], odd)}


@given(
    at=st.integers(0, len(WHOLE) - 1),
    path=st.lists(st.integers(0, 12), min_size=1, max_size=5),
    odd=st.sampled_from([None, 7, 1.5, True, "x", "", [], {}, ["a"], [None], {"type": 7}, [{"text": 7}], [7]]),
)
def test_whatever_stands_in_an_event_there_is_a_message_or_a_model_error(at: int, path: list[int], odd: Any) -> None:
    events = [spoilt(event, path, odd) if number == at else event for number, event in enumerate(WHOLE)]
    try:
        found = read(*events)
    except ModelError:
        return
    json.dumps(sent_as(turn_of(found)))


def sent_as(turn: AssistantTurn) -> list[dict[str, Any]]:
    return body(Request([UserTurn.saying("go"), turn], ()))["input"]
