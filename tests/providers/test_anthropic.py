"""The Anthropic Messages API, measured by the vendor's own types."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from anthropic.types import (
    InputJSONDelta,
    Message,
    MessageDeltaUsage,
    RawContentBlockDeltaEvent,
    RawContentBlockStartEvent,
    RawContentBlockStopEvent,
    RawMessageDeltaEvent,
    RawMessageStartEvent,
    RawMessageStopEvent,
    RedactedThinkingBlock,
    SignatureDelta,
    TextBlock,
    ThinkingBlock,
    ThinkingDelta,
    ToolUseBlock,
)
from anthropic.types import TextDelta as ApiTextDelta
from anthropic.types import (
    Usage as ApiUsage,
)
from anthropic.types.message_create_params import MessageCreateParamsStreaming
from anthropic.types.raw_message_delta_event import Delta
from pydantic import BaseModel

from ferrule.core.calls import ToolCall
from ferrule.core.content import Image, Text
from ferrule.core.model import (
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
    Usage,
    UserTurn,
)
from ferrule.providers.anthropic_wire import AnthropicBodies, AnthropicReader
from ferrule.providers.known_models import Thinking
from ferrule.providers.sse import ServerSentEvent
from tests.providers.hearing import SERVICE, long_history, tools
from tests.providers.typed_dicts import problems
from tests.requirement import requirement


def body(request: Request, *, thinking: Thinking = "budget", bodies: AnthropicBodies | None = None) -> dict[str, Any]:
    bodies = bodies or AnthropicBodies("claude-x", most_output=32_000, thinking=thinking)
    return json.loads(bodies.body(request))


def read(*events: BaseModel | dict[str, Any]) -> list[ModelEvent]:
    reader = AnthropicReader(SERVICE)
    found: list[ModelEvent] = []
    for event in events:
        data = event.model_dump_json() if isinstance(event, BaseModel) else json.dumps(event)
        found += reader.event(ServerSentEvent("", data))
    return [*found, *reader.end(is_framed=True)]


def started() -> RawMessageStartEvent:
    usage = ApiUsage(input_tokens=10, output_tokens=1, cache_read_input_tokens=5, cache_creation_input_tokens=3)
    message = Message(id="m", content=[], model="x", role="assistant", type="message", usage=usage)
    return RawMessageStartEvent(message=message, type="message_start")


def start(index: int, block: Any) -> RawContentBlockStartEvent:
    return RawContentBlockStartEvent(content_block=block, index=index, type="content_block_start")


def delta(index: int, piece: Any) -> RawContentBlockDeltaEvent:
    return RawContentBlockDeltaEvent(delta=piece, index=index, type="content_block_delta")


def stop(index: int) -> RawContentBlockStopEvent:
    return RawContentBlockStopEvent(index=index, type="content_block_stop")


def ended(reason: Any) -> tuple[RawMessageDeltaEvent, RawMessageStopEvent]:
    usage = MessageDeltaUsage(output_tokens=20)
    last = RawMessageDeltaEvent(delta=Delta(stop_reason=reason), type="message_delta", usage=usage)
    return last, RawMessageStopEvent(type="message_stop")


@requirement("LOOP-1")
def test_a_request_with_everything_is_what_the_vendor_takes() -> None:
    request = Request(
        long_history(), tools(3), cache_after=2, system="Be good.", max_tokens=9_000, thinking_tokens=4_000
    )

    assert problems(body(request), MessageCreateParamsStreaming) == []
    assert problems(body(request, thinking="adaptive"), MessageCreateParamsStreaming) == []


@requirement("LOOP-1")
def test_breakpoints_stand_behind_the_tools_that_stay_the_system_and_the_last_two_messages() -> None:
    sent = body(Request(long_history(), tools(3), cache_after=2, system="Be good."))

    marked = [tool["name"] for tool in sent["tools"] if "cache_control" in tool]
    in_messages = [
        (at, message["content"].index(block) - len(message["content"]))
        for at, message in enumerate(sent["messages"])
        for block in message["content"]
        if "cache_control" in block
    ]
    assert marked == ["Tool1"]
    assert sent["system"][0]["cache_control"] == {"type": "ephemeral"}
    assert in_messages == [(3, -1), (5, -1)]


def test_without_tools_and_system_there_is_nothing_of_them() -> None:
    assert sorted(body(Request([UserTurn.saying("hi")], ()))) == ["max_tokens", "messages", "model", "stream"]


@requirement("LOOP-1")
def test_reasoning_is_sent_back_as_it_came_and_only_where_it_is_signed() -> None:
    sent = body(Request(long_history(), ()))

    assert sent["messages"][1]["content"][:3] == [
        {"type": "thinking", "thinking": "hm", "signature": "signed"},
        {"type": "redacted_thinking", "data": "secret"},
        {"type": "text", "text": "I will."},
    ]


@requirement("LOOP-5")
def test_what_results_add_stands_behind_them_in_the_same_message() -> None:
    sent = body(Request(long_history(), ()))

    assert [block["type"] for block in sent["messages"][2]["content"]] == ["tool_result", "tool_result", "text"]
    assert [block.get("is_error", False) for block in sent["messages"][2]["content"][:2]] == [False, True]


def test_ids_and_text_that_the_service_refuses_are_made_fit_on_both_sides() -> None:
    sent = body(Request(long_history(), ()))
    calls = [block for block in sent["messages"][1]["content"] if block["type"] == "tool_use"]

    assert [call["id"] for call in calls] == ["call_1", "functions_Tool1_0"]
    assert [result["tool_use_id"] for result in sent["messages"][2]["content"][:2]] == ["call_1", "functions_Tool1_0"]
    assert calls[0]["input"] == {"path": "ü\ufffd", "n": None}
    assert calls[1]["input"] == {}


@pytest.mark.parametrize(
    ("tokens", "limit", "sent"),
    [
        (None, 9_000, None),
        (4_000, 9_000, {"type": "enabled", "budget_tokens": 4_000}),
        (50, 9_000, {"type": "enabled", "budget_tokens": 1_024}),
        (9_000, 4_000, {"type": "enabled", "budget_tokens": 3_999}),
        (4_000, 1_000, None),
    ],
)
def test_reasoning_has_a_budget_that_the_service_takes(tokens: int | None, limit: int, sent: Any) -> None:
    request = Request([UserTurn.saying("hi")], (), max_tokens=limit, thinking_tokens=tokens)

    assert body(request).get("thinking") == sent


def test_a_longer_answer_than_the_model_can_give_is_not_asked_for() -> None:
    assert body(Request([UserTurn.saying("hi")], (), max_tokens=99_000))["max_tokens"] == 32_000


def test_each_request_of_a_conversation_begins_with_the_one_before_it() -> None:
    bodies = AnthropicBodies("claude-x", most_output=32_000, thinking="budget")
    history, sent = long_history(), []
    for length in (1, 3, 5, 7):
        request = Request(history[:length], tools(2), cache_after=2, system="Be good.")
        raw = bodies.body(request).replace(b',"cache_control":{"type":"ephemeral"}', b"")
        sent.append(raw.removesuffix(b"]}"))

    assert all(later.startswith(earlier) for earlier, later in pairwise(sent))


def test_a_turn_that_was_replaced_or_taken_back_is_encoded_anew() -> None:
    bodies = AnthropicBodies("claude-x", most_output=32_000, thinking="budget")
    first = UserTurn.saying("first")
    for last in (UserTurn.saying("a"), UserTurn.saying("b"), AssistantTurn((Text("c"),))):
        history = [first, last]
        assert body(Request(history, ()), bodies=bodies) == body(Request(history, ()))
    assert body(Request([first], ()), bodies=bodies) == body(Request([first], ()))
    assert body(Request([last, first], ()), bodies=bodies) == body(Request([last, first], ()))


@requirement("LOOP-1")
def test_a_message_of_every_kind_of_block_is_read() -> None:
    found = read(
        started(),
        {"type": "ping"},
        start(0, ThinkingBlock(thinking="", signature="", type="thinking")),
        delta(0, ThinkingDelta(thinking="hm", type="thinking_delta")),
        delta(0, SignatureDelta(signature="signed", type="signature_delta")),
        stop(0),
        start(1, RedactedThinkingBlock(data="secret", type="redacted_thinking")),
        stop(1),
        start(2, TextBlock(text="", type="text")),
        delta(2, ApiTextDelta(text="Hi", type="text_delta")),
        stop(2),
        start(3, ToolUseBlock(id="t1", input={}, name="Read", type="tool_use")),
        delta(3, InputJSONDelta(partial_json='{"a"', type="input_json_delta")),
        delta(3, InputJSONDelta(partial_json=": 1}", type="input_json_delta")),
        stop(3),
        {"type": "content_block_sparkle", "index": 3, "new": True},
        *ended("tool_use"),
    )

    assert found == [
        Usage(10, 1, 5, 3),
        ThoughtDelta("hm"),
        ThoughtReady(Thought("hm", "signed")),
        ThoughtReady(Thought("", redacted="secret")),
        TextDelta("Hi"),
        CallDelta("t1", "Read"),
        CallDelta("t1", "Read", '{"a"'),
        CallDelta("t1", "Read", ": 1}"),
        CallReady(ToolCall("t1", "Read", {"a": 1})),
        Usage(10, 20, 5, 3),
        Stopped("tool_use"),
    ]


def test_reasoning_that_is_not_shown_keeps_its_signature() -> None:
    found = read(
        started(),
        start(0, ThinkingBlock(thinking="", signature="", type="thinking")),
        delta(0, SignatureDelta(signature="signed", type="signature_delta")),
        stop(0),
        *ended("end_turn"),
    )
    (thought,) = [event.thought for event in found if isinstance(event, ThoughtReady)]

    assert thought == Thought("", "signed")
    sent = body(Request([UserTurn.saying("a"), AssistantTurn((thought,))], ()))
    assert sent["messages"][1]["content"] == [{"type": "thinking", "thinking": "", "signature": "signed"}]


@pytest.mark.parametrize(
    ("told", "reason"),
    [
        ("end_turn", "end"),
        ("stop_sequence", "end"),
        ("pause_turn", "end"),
        ("max_tokens", "max_tokens"),
        ("model_context_window_exceeded", "max_tokens"),
        ("refusal", "refusal"),
    ],
)
def test_every_reason_to_stop_has_its_meaning(told: str, reason: Any) -> None:
    assert read(started(), *ended(told))[-1] == Stopped(reason)


def test_arguments_cut_by_the_limit_are_a_malformed_call() -> None:
    block = ToolUseBlock(id="t1", input={}, name="Read", type="tool_use")
    piece = delta(0, InputJSONDelta(partial_json='{"a": ', type="input_json_delta"))

    found = read(started(), start(0, block), piece, stop(0), *ended("max_tokens"))

    assert CallReady(ToolCall("t1", "Read", {}, malformed='{"a": ')) in found
    assert found[-1] == Stopped("max_tokens")


def test_an_input_that_comes_whole_with_the_start_of_its_block_is_taken() -> None:
    block = ToolUseBlock(id="t1", input={"a": 1}, name="Read", type="tool_use")

    found = read(started(), start(0, block), stop(0), *ended("tool_use"))

    assert CallReady(ToolCall("t1", "Read", {"a": 1})) in found


def test_a_whole_message_in_place_of_a_stream_is_taken() -> None:
    content = [TextBlock(text="Hi", type="text"), ToolUseBlock(id="t1", input={"a": 1}, name="Read", type="tool_use")]
    usage = ApiUsage(input_tokens=1, output_tokens=2)
    message = Message(id="m", content=content, model="x", role="assistant", type="message", usage=usage)
    reader = AnthropicReader(SERVICE)

    found = [*reader.whole(message.model_dump()), *reader.end(is_framed=True)]

    assert [event for event in found if not isinstance(event, CallDelta)] == [
        TextDelta("Hi"),
        CallReady(ToolCall("t1", "Read", {"a": 1})),
        Usage(1, 2),
        Stopped("tool_use"),
    ]


@pytest.mark.parametrize(
    "event",
    [
        {"type": "content_block_start", "index": 0},
        {"type": "content_block_start", "index": 0, "content_block": None},
        {"type": "content_block_start", "index": [], "content_block": {"type": "text"}},
        {"type": "message_delta", "delta": None},
        {"type": "message_start", "message": "?"},
    ],
)
def test_events_of_another_shape_are_an_answer_that_cannot_be_read(event: dict[str, Any]) -> None:
    with pytest.raises(ModelError) as caught:
        read(event)

    assert caught.value.kind == "answer"


@pytest.mark.parametrize(
    ("type", "kind"),
    [
        ("overloaded_error", "overload"),
        ("api_error", "overload"),
        ("rate_limit_error", "limit"),
        ("authentication_error", "key"),
        ("invalid_request_error", "request"),
        ("billing_error", "limit"),
        ("something_new", "overload"),
    ],
)
def test_an_error_in_the_stream_has_its_kind(type: str, kind: str) -> None:
    with pytest.raises(ModelError) as caught:
        read(started(), {"type": "error", "error": {"type": type, "message": "No."}})

    assert caught.value.kind == kind


def test_results_without_content_are_sent_without() -> None:
    history = [
        UserTurn.saying("a"),
        AssistantTurn((ToolCall("1", "Read", {}),)),
        ResultTurn((ToolResult("1", (), is_error=False),)),
    ]

    sent = body(Request(history, ()))

    assert problems(sent, MessageCreateParamsStreaming) == []
    assert "content" not in sent["messages"][2]["content"][0]


def test_an_error_is_sent_as_text_and_its_pictures_behind_all_results() -> None:
    history = [
        UserTurn.saying("a"),
        AssistantTurn((ToolCall("1", "Shot", {}), ToolCall("2", "Shot", {}), ToolCall("3", "Shot", {}))),
        ResultTurn(
            (
                ToolResult("1", (Text("Half of it."), Image("image/png", "eA==")), is_error=True),
                ToolResult("2", (Text(" "),), is_error=True),
                ToolResult("3", (Image("image/png", "eQ=="),), is_error=False),
            ),
            ("A note.",),
        ),
    ]

    sent = body(Request(history, ()))

    assert problems(sent, MessageCreateParamsStreaming) == []
    first, second, third, *more = sent["messages"][2]["content"]
    assert first["content"] == [{"type": "text", "text": "Half of it."}]
    assert second["content"] == [{"type": "text", "text": "(empty)"}]
    assert [block["type"] for block in third["content"]] == ["image"]
    assert [block["type"] for block in more] == ["text", "image", "text"]
    assert (more[0]["text"], more[2]["text"]) == ("Result of the call 1:", "A note.")


@requirement("LOOP-2")
def test_reasoning_with_a_budget_is_not_asked_for_behind_calls_that_have_lost_theirs() -> None:
    """As after a compaction in the middle of a turn; the service would refuse it."""
    call, result = ToolCall("1", "Read", {}), ResultTurn((ToolResult("1", (Text("x"),), False),))
    lost = [UserTurn.saying("summary"), AssistantTurn((call,)), result]
    kept = [UserTurn.saying("go"), AssistantTurn((Thought("hm", "signed"), call)), result]
    answered = [*lost, AssistantTurn((Text("Done."),)), UserTurn.saying("Go on.")]

    assert "thinking" not in body(Request(lost, (), thinking_tokens=4_000))
    assert body(Request(lost, (), thinking_tokens=4_000), thinking="adaptive")["thinking"] == {"type": "adaptive"}
    for history in (kept, answered):
        assert body(Request(history, (), thinking_tokens=4_000))["thinking"]["budget_tokens"] == 4_000
