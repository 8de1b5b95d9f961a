"""Streams that no service should send and some do."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferrule.core.calls import ToolCall
from ferrule.core.content import Image, Text, join_halves
from ferrule.core.model import (
    AssistantTurn,
    CallDelta,
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
    UserTurn,
)
from ferrule.providers.anthropic_wire import AnthropicReader
from ferrule.providers.openai_calls import CallsInProgress
from ferrule.providers.openai_wire import OpenAiBodies, OpenAiReader
from ferrule.providers.service_errors import Trouble
from ferrule.providers.service_requests import Pieces, WholeCharacters
from tests.providers.hearing import SERVICE, calls_of, text_of
from tests.requirement import requirement

ODD = [1.5, 7, True, [], {}, ["a"], {"text": "a"}]
START: dict[str, Any] = {"type": "message_start", "message": {}}
STOP: tuple[dict[str, Any], ...] = (
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
    {"type": "message_stop"},
)


def block(start: dict[str, Any], *deltas: dict[str, Any], index: int = 0) -> list[dict[str, Any]]:
    return [
        {"type": "content_block_start", "index": index, "content_block": start},
        *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": index},
    ]


def wire(events: Iterable[dict[str, Any]]) -> bytes:
    return "".join(f"data: {json.dumps(event)}\n\n" for event in events).encode()


def heard(chunk: bytes, reader: Any = None) -> list[ModelEvent]:
    """As one piece of the network gives it."""
    reader = reader or AnthropicReader(SERVICE)
    characters = WholeCharacters()
    events = [*Pieces(SERVICE, reader).feed(chunk), *reader.end(is_framed=True)]
    return [whole for event in events for whole in characters.feed(event)]


@requirement("LOOP-1")
@pytest.mark.parametrize("odd", ODD, ids=str)
def test_what_is_not_a_text_where_a_text_belongs_makes_the_answer_unreadable(odd: Any) -> None:
    faults = [
        block({"type": "text", "text": odd}),
        block({"type": "text", "text": ""}, {"type": "text_delta", "text": odd}),
        block({"type": "thinking", "thinking": odd}),
        block({"type": "thinking", "thinking": "", "signature": odd}),
        block({"type": "thinking", "thinking": ""}, {"type": "thinking_delta", "thinking": odd}),
        block({"type": "thinking", "thinking": ""}, {"type": "signature_delta", "signature": odd}),
        block({"type": "tool_use", "id": "1", "name": "a"}, {"type": "input_json_delta", "partial_json": odd}),
    ]
    for events in faults:
        with pytest.raises(Trouble, match="sent an invalid response"):
            heard(wire([START, *events, *STOP]))


def test_no_text_is_an_empty_one() -> None:
    assert text_of(heard(wire([START, *block({"type": "text", "text": None}), *STOP]))) == ""


@requirement("LOOP-1")
def test_what_follows_the_end_of_a_message_is_not_of_it() -> None:
    message = [START, *block({"type": "tool_use", "id": "t1", "name": "Read", "input": {}}), *STOP]

    assert len(calls_of(heard(wire([*message, *message])))) == 1

    calls = [{"index": 0, "id": "t1", "function": {"name": "Read", "arguments": "{}"}}]
    chunk = f"data: {json.dumps({'choices': [{'delta': {'tool_calls': calls}, 'finish_reason': 'tool_calls'}]})}\n\n"
    twice = f"{chunk}data: [DONE]\n\n" * 2
    assert len(calls_of(heard(twice.encode(), OpenAiReader(SERVICE, CallsInProgress(set()))))) == 1


@requirement("LOOP-1")
def test_a_character_cut_in_two_is_one_again() -> None:
    high, low = "\ud83d", "\ude00"
    parts = ['{"text": "a', high, low, 'b"}']
    events = [
        *block({"type": "text", "text": ""}, *({"type": "text_delta", "text": text} for text in ("a" + high, low))),
        *block(
            {"type": "thinking", "thinking": ""},
            *({"type": "thinking_delta", "thinking": text} for text in (high, low)),
        ),
        *block(
            {"type": "tool_use", "id": "1", "name": "Write"},
            *({"type": "input_json_delta", "partial_json": text} for text in parts),
        ),
    ]

    found = heard(wire([START, *events, *STOP]))

    assert [event.text for event in found if isinstance(event, TextDelta)] == ["a", "\U0001f600"]
    assert [event.thought.text for event in found if isinstance(event, ThoughtReady)] == ["\U0001f600"]
    (call,) = calls_of(found)
    assert (call.arguments, call.malformed) == ({"text": "a\U0001f600b"}, None)


TEXTS = st.text(st.characters(codec=None, categories=["L", "Cs", "So"]) | st.sampled_from("\ud83d\ude00"), max_size=6)
DELTAS = st.one_of(
    TEXTS.map(TextDelta), TEXTS.map(ThoughtDelta), st.builds(CallDelta, st.sampled_from("ab"), st.just("n"), TEXTS)
)


@given(st.lists(DELTAS, max_size=8))
def test_nothing_is_lost_or_moved_by_putting_characters_together(deltas: list[ModelEvent]) -> None:
    characters = WholeCharacters()

    given_out = [whole for delta in (*deltas, Stopped("end")) for whole in characters.feed(delta)]

    assert _runs(given_out) == _runs([*deltas, Stopped("end")])


def _runs(events: Sequence[ModelEvent]) -> list[tuple[str, str]]:
    """The text of pieces that follow one another, by their kind."""
    runs: list[tuple[str, str]] = []
    for event in events:
        match event:
            case TextDelta(text) | ThoughtDelta(text):
                kind = type(event).__name__
            case CallDelta(id, _, text):
                kind = id
            case _:
                continue
        if runs and runs[-1][0] == kind:
            text = runs.pop()[1] + text
        runs.append((kind, text))
    return [(kind, join_halves(text)) for kind, text in runs if text]


@requirement("LOOP-2")
def test_messages_of_the_user_that_follow_one_another_are_one_where_a_template_wants_them_to_alternate() -> None:
    picture = Image("image/png", "aGVsbG8=")
    histories: list[tuple[list[Turn], list[tuple[str, Any]]]] = [
        ([UserTurn.saying("one"), UserTurn.saying("two"), UserTurn.saying("three")], [("user", "one\n\ntwo\n\nthree")]),
        (
            [UserTurn((picture,)), UserTurn.saying("two")],
            [("user", [{"type": "image_url", "image_url": {"url": "data:image/png;base64,aGVsbG8="}}, _part("two")])],
        ),
        (
            [UserTurn.saying("one"), AssistantTurn((Thought("not sent"),)), UserTurn.saying("two")],
            [("user", "one\n\ntwo")],
        ),
        (
            [
                UserTurn.saying("one"),
                AssistantTurn((ToolCall("t", "Read", {}),)),
                ResultTurn((ToolResult("t", (Text("x"),), is_error=False),), ("a note",)),
                UserTurn.saying("two"),
                AssistantTurn((Text("ok"),)),
            ],
            [("user", "one"), ("assistant", None), ("tool", "x"), ("user", "a note\n\ntwo"), ("assistant", "ok")],
        ),
    ]
    for history, expected in histories:
        sent = json.loads(OpenAiBodies("m", limit_name="max_tokens").body(Request(history, ())))

        assert [(message["role"], message["content"]) for message in sent["messages"]] == expected


def _part(text: str) -> dict[str, str]:
    return {"type": "text", "text": text}
