"""OpenAI's chat completions: by the vendor's own types, and as others speak them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from openai.types import CompletionUsage
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.chat.chat_completion_chunk import (
    Choice,
    ChoiceDelta,
    ChoiceDeltaToolCall,
    ChoiceDeltaToolCallFunction,
)
from openai.types.chat.completion_create_params import CompletionCreateParamsStreaming
from openai.types.completion_usage import PromptTokensDetails
from pydantic import BaseModel

from ferrule.core.calls import ToolCall
from ferrule.core.model import (
    CallDelta,
    CallReady,
    ModelError,
    ModelEvent,
    Request,
    Stopped,
    TextDelta,
    ThoughtDelta,
    ThoughtReady,
    Usage,
    UserTurn,
)
from ferrule.providers.openai_calls import CallsInProgress
from ferrule.providers.openai_wire import OpenAiBodies, OpenAiReader
from ferrule.providers.sse import ServerSentEvent
from tests.providers.hearing import SERVICE, calls_of, long_history, text_of, tools
from tests.providers.typed_dicts import problems
from tests.requirement import requirement

DONE = "[DONE]"


def body(request: Request) -> dict[str, Any]:
    return json.loads(OpenAiBodies("gpt-x", limit_name="max_tokens").body(request))


def reader(taken: set[str] | None = None) -> OpenAiReader:
    return OpenAiReader(SERVICE, CallsInProgress(set() if taken is None else taken))


def read(
    *chunks: BaseModel | dict[str, Any] | str, is_framed: bool = True, taken: set[str] | None = None
) -> list[ModelEvent]:
    one = reader(taken)
    found: list[ModelEvent] = []
    for chunk in chunks:
        data = chunk.model_dump_json() if isinstance(chunk, BaseModel) else chunk
        found += one.event(ServerSentEvent("", data if isinstance(data, str) else json.dumps(data)))
    return [*found, *one.end(is_framed=is_framed)]


def chunk(delta: ChoiceDelta | None = None, finish: Any = None, usage: CompletionUsage | None = None) -> BaseModel:
    choices = [Choice(delta=delta or ChoiceDelta(), index=0, finish_reason=finish)] if delta or finish else []
    head: dict[str, Any] = {"id": "c", "created": 0, "model": "x", "object": "chat.completion.chunk"}
    return ChatCompletionChunk(choices=choices, usage=usage, **head)


def calling(index: int, id: str | None = None, name: str | None = None, arguments: str | None = None) -> ChoiceDelta:
    function = ChoiceDeltaToolCallFunction(name=name, arguments=arguments)
    return ChoiceDelta(tool_calls=[ChoiceDeltaToolCall(index=index, id=id, function=function, type="function")])


def said(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
    """As a service would say it that has no types."""
    return {"choices": [{"delta": delta, "finish_reason": finish}]}


def call(**parts: Any) -> dict[str, Any]:
    function = {key: parts.pop(key) for key in ("name", "arguments") if key in parts}
    return said({"tool_calls": [{**parts, "function": function}]})


@requirement("LOOP-1")
def test_a_request_with_everything_is_what_the_vendor_takes() -> None:
    request = Request(long_history(), tools(3), cache_after=2, system="Be good.", max_tokens=900)

    sent = body(request)

    assert problems(sent, CompletionCreateParamsStreaming) == []
    assert sent["max_tokens"] == 900
    assert sent["stream_options"] == {"include_usage": True}
    assert [message["role"] for message in sent["messages"]] == [
        "system",
        "user",
        "assistant",
        "tool",
        "tool",
        "user",
        "assistant",
        "user",
    ]


def test_pictures_of_results_follow_as_a_message_of_the_user_with_what_the_results_added() -> None:
    messages = body(Request(long_history(), ()))["messages"]

    assert messages[2]["content"] == "done"
    assert [part["type"] for part in messages[4]["content"]] == ["text", "image_url", "text"]
    assert messages[4]["content"][1]["image_url"]["url"] == "data:image/png;base64,aGVsbG8="
    assert "something changed" in messages[4]["content"][2]["text"]


def test_plain_text_is_sent_as_a_string() -> None:
    assert body(Request([UserTurn.saying("hi")], ()))["messages"] == [{"role": "user", "content": "hi"}]


@requirement("LOOP-1")
def test_a_stream_of_the_vendor_is_read() -> None:
    usage = CompletionUsage(
        completion_tokens=7,
        prompt_tokens=30,
        total_tokens=37,
        prompt_tokens_details=PromptTokensDetails(cached_tokens=20, cache_write_tokens=4),
    )
    found = read(
        chunk(ChoiceDelta(role="assistant", content="")),
        chunk(ChoiceDelta(content="Hi")),
        chunk(calling(0, "c1", "Read", "")),
        chunk(calling(0, arguments='{"a"')),
        chunk(calling(0, arguments=": 1}")),
        chunk(calling(1, "c2", "Glob", "")),
        chunk(calling(1, arguments="{}")),
        chunk(finish="tool_calls"),
        chunk(usage=usage),
        DONE,
    )

    assert found == [
        TextDelta("Hi"),
        CallDelta("c1", "Read"),
        CallDelta("c1", "Read", '{"a"'),
        CallDelta("c1", "Read", ": 1}"),
        CallReady(ToolCall("c1", "Read", {"a": 1})),
        CallDelta("c2", "Glob"),
        CallDelta("c2", "Glob", "{}"),
        CallReady(ToolCall("c2", "Glob", {})),
        Usage(6, 7, 20, 4),
        Stopped("tool_use"),
    ]


A, B = ToolCall("a", "Read", {"x": 1}), ToolCall("b", "Glob", {})

BROKEN = {
    "no index": [call(id="a", name="Read", arguments='{"x":'), call(arguments="1}"), call(id="b", name="Glob")],
    "every index 0": [
        call(index=0, id="a", name="Read", arguments='{"x": 1}'),
        call(index=0, id="b", name="Glob", arguments="{}"),
    ],
    "arguments as an object": [
        call(index=0, id="a", name="Read", arguments={"x": 1}),
        call(index=1, id="b", name="Glob", arguments={}),
    ],
    "name and id in each piece": [
        call(index=0, id="a", name="Read", arguments='{"x"'),
        call(index=0, id="a", name="Read", arguments=": 1}"),
        call(index=1, id="b", name="Glob", arguments="{}"),
    ],
    "a new id in each piece": [
        call(index=0, id="a", name="Read", arguments='{"x"'),
        call(index=0, id="z", arguments=": 1}"),
        call(index=1, id="b", name="Glob", arguments="{}"),
    ],
    "two at once": [
        call(index=0, id="a", name="Read", arguments=""),
        call(index=1, id="b", name="Glob", arguments="{"),
        call(index=0, arguments='{"x": 1}'),
        call(index=1, arguments="}"),
    ],
    "a call by itself and not in a list": [
        said({"tool_calls": {"id": "a", "function": {"name": "Read", "arguments": '{"x": 1}'}}}),
        said({"tool_calls": {"id": "b", "function": {"name": "Glob", "arguments": "{}"}}}),
    ],
    "null for no arguments": [
        call(index=0, id="a", name="Read", arguments='{"x": 1}'),
        call(index=1, id="b", name="Glob", arguments="null"),
    ],
    "null everywhere": [
        call(index=0, id="a", name="Read", arguments=None),
        call(index=0, id=None, name=None, arguments='{"x": 1}'),
        {"choices": [{"delta": None, "finish_reason": None}], "usage": None},
        call(index=1, id="b", name="Glob", arguments=None),
    ],
}


@requirement("LOOP-1")
@pytest.mark.parametrize("chunks", BROKEN.values(), ids=BROKEN)
@pytest.mark.parametrize("end", ["stop", "tool_calls"])
def test_calls_are_found_in_streams_that_others_write(chunks: list[dict[str, Any]], end: str) -> None:
    found = read(*chunks, said({}, end), DONE)

    assert calls_of(found) == [A, B]
    assert found[-1] == Stopped("tool_use")


def test_a_call_in_the_old_form_is_one() -> None:
    pieces = ({"name": "Read", "arguments": ""}, {"arguments": '{"x":'}, {"arguments": " 1}"})

    found = read(*(said({"function_call": piece}) for piece in pieces), said({}, "function_call"), DONE)

    (made,) = calls_of(found)
    assert (made.name, made.arguments) == ("Read", {"x": 1})
    assert found[-1] == Stopped("tool_use")


def test_a_null_among_the_arguments_stays_one() -> None:
    found = read(*(call(index=0, id="a", name="Read", arguments=piece) for piece in ('{"x":', "null", "}")), DONE)

    assert calls_of(found) == [ToolCall("a", "Read", {"x": None})]


def test_calls_without_an_id_get_one_each() -> None:
    found = calls_of(read(call(name="Read", arguments="{}"), call(name="Glob", arguments="{}"), said({}, "stop")))

    assert [one.name for one in found] == ["Read", "Glob"]
    assert len({one.id for one in found}) == 2
    assert all(len(one.id) == 9 and one.id.isalnum() for one in found)


def test_an_id_that_an_earlier_message_used_is_given_no_second_time() -> None:
    taken: set[str] = set()
    first = calls_of(read(call(id="0", name="Read", arguments="{}"), DONE, taken=taken))
    second = calls_of(read(call(id="0", name="Read", arguments="{}"), DONE, taken=taken))

    assert first[0].id == "0"
    assert second[0].id != "0"


def test_a_call_is_ready_as_the_next_one_begins() -> None:
    one = reader()
    found: list[ModelEvent] = []
    for piece in (call(index=0, id="a", name="Read", arguments='{"x": 1}'), call(index=1, id="b", name="Glob")):
        found += one.event(ServerSentEvent("", json.dumps(piece)))

    assert calls_of(found) == [A]


@pytest.mark.parametrize("last", [[], [DONE], [said({}, "stop")]], ids=["nothing", "done", "reason"])
def test_an_end_of_any_kind_is_an_end(last: list[Any]) -> None:
    found = read(said({"role": "assistant"}), said({"content": "Hi"}), *last)

    assert found == [TextDelta("Hi"), Stopped("end")]


@pytest.mark.parametrize(
    ("chunks", "is_framed"),
    [
        ([], True),
        ([said({"role": "assistant"})], True),
        ([said({"content": "Hi"})], False),
        ([call(index=0, id="a", name="Read", arguments='{"x"')], True),
        ([call(index=0, id="a", name="Read", arguments="")], True),
    ],
)
def test_an_end_that_nobody_marked_is_a_cut(chunks: list[Any], is_framed: bool) -> None:
    with pytest.raises(ModelError) as caught:
        read(*chunks, is_framed=is_framed)

    assert caught.value.kind == "cut"


@pytest.mark.parametrize("key", ["reasoning_content", "reasoning"])
def test_reasoning_is_told_from_text(key: str) -> None:
    found = read(said({key: "hm "}), said({key: "yes"}), said({"content": "Hi"}), said({}, "stop"))

    assert [event for event in found if not isinstance(event, ThoughtReady)] == [
        ThoughtDelta("hm "),
        ThoughtDelta("yes"),
        TextDelta("Hi"),
        Stopped("end"),
    ]
    assert [event.thought.text for event in found if isinstance(event, ThoughtReady)] == ["hm yes"]


def test_a_whole_completion_in_place_of_a_stream_is_taken() -> None:
    message = {
        "role": "assistant",
        "content": "Hi",
        "tool_calls": [{"id": "a", "type": "function", "function": {"name": "Read", "arguments": '{"x": 1}'}}],
    }
    whole = ChatCompletion.model_validate(
        {
            "id": "c",
            "created": 0,
            "model": "x",
            "object": "chat.completion",
            "choices": [{"index": 0, "finish_reason": "tool_calls", "logprobs": None, "message": message}],
            "usage": {"completion_tokens": 2, "prompt_tokens": 3, "total_tokens": 5},
        }
    )
    one = reader()

    found = [*one.whole(whole.model_dump()), *one.end(is_framed=True)]

    assert (text_of(found), calls_of(found)) == ("Hi", [A])
    assert found[-2:] == [Usage(3, 2), Stopped("tool_use")]


@pytest.mark.parametrize(
    ("delta", "finish", "reason"),
    [
        ({"content": "Hi"}, "length", "max_tokens"),
        ({"content": "Hi"}, "content_filter", "refusal"),
        ({"refusal": "I will not."}, "stop", "refusal"),
        ({"content": [{"type": "text", "text": "Hi"}]}, "stop", "end"),
    ],
)
def test_every_reason_to_stop_has_its_meaning(delta: dict[str, Any], finish: str, reason: Any) -> None:
    found = read(said(delta), said({}, finish))

    assert text_of(found)
    assert found[-1] == Stopped(reason)


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        ("{no", "answer"),
        ("[]", "answer"),
        ('{"choices": 7}', "answer"),
        ('{"choices": [{"delta": {"tool_calls": ["x"]}}]}', "answer"),
        ('{"error": {"message": "no room", "code": 503}}', "overload"),
        ('{"error": {"message": "maximum context length is 10", "code": "400"}}', "overflow"),
    ],
)
def test_what_is_no_chunk_fails_with_its_kind(data: str, kind: str) -> None:
    with pytest.raises(ModelError) as caught:
        read(data)

    assert caught.value.kind == kind
