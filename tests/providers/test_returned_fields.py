"""What a service sent in fields of its own goes back to it, and to nobody else."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ferrule.core.content import Text
from ferrule.core.model import (
    AssistantPart,
    AssistantTurn,
    CallReady,
    ModelEvent,
    Request,
    TextDelta,
    ThoughtReady,
    UserTurn,
)
from ferrule.providers.openai_calls import CallsInProgress
from ferrule.providers.openai_wire import OpenAiBodies, OpenAiReader
from ferrule.providers.sse import ServerSentEvent
from tests.providers.hearing import SERVICE

SIGNED = {"google": {"thought_signature": "c2lnbmVk"}}


def answered(*deltas: dict[str, Any]) -> AssistantTurn:
    """The turn that the loop makes of these pieces of one message."""
    reader = OpenAiReader(SERVICE, CallsInProgress(set(), SERVICE.origin))
    events: list[ModelEvent] = []
    for number, delta in enumerate(deltas, 1):
        choice = {"index": 0, "delta": delta, "finish_reason": "stop" if number == len(deltas) else None}
        events += reader.event(ServerSentEvent("message", json.dumps({"choices": [choice]})))
    events += reader.end(is_framed=True)
    parts: list[AssistantPart] = []
    for event in events:
        match event:
            case ThoughtReady(thought):
                parts.append(thought)
            case TextDelta(text):
                parts.append(Text(text))
            case CallReady(call):
                parts.append(call)
            case _:
                pass
    return AssistantTurn(tuple(parts))


def sent(turn: AssistantTurn, origin: str = SERVICE.origin) -> dict[str, Any]:
    """The message of the model, as the next request has it."""
    bodies = OpenAiBodies("m", limit_name="max_tokens", origin=origin)
    body = json.loads(bodies.body(Request([UserTurn.saying("go"), turn, UserTurn.saying("on")], ())))
    return body["messages"][1]


@pytest.mark.parametrize("name", ["reasoning_content", "reasoning"])
def test_reasoning_goes_back_under_the_name_it_came_with(name: str) -> None:
    turn = answered({name: "first "}, {name: "second"}, {"content": "Hi"})

    assert sent(turn) == {"role": "assistant", "content": "Hi", name: "first second"}


def test_details_of_reasoning_that_come_in_pieces_go_back_whole() -> None:
    turn = answered(
        {"reasoning": "hm", "reasoning_details": [{"type": "reasoning.text", "index": 0, "text": "h"}]},
        {"reasoning_details": [{"type": "reasoning.text", "index": 0, "text": "m", "signature": "s"}]},
        {"reasoning_details": [{"type": "reasoning.encrypted", "index": 1, "data": "x"}]},
        {"content": "Hi"},
    )

    assert sent(turn)["reasoning_details"] == [
        {"type": "reasoning.text", "index": 0, "text": "hm", "signature": "s"},
        {"type": "reasoning.encrypted", "index": 1, "data": "x"},
    ]


def test_a_signature_of_a_call_goes_back_with_the_call() -> None:
    function = {"name": "Read", "arguments": "{}"}
    turn = answered({"tool_calls": [{"index": 0, "id": "a", "function": function, "extra_content": SIGNED}]})

    assert sent(turn)["tool_calls"][0]["extra_content"] == SIGNED


def test_another_service_is_sent_none_of_it() -> None:
    function = {"name": "Read", "arguments": "{}"}
    turn = answered(
        {"reasoning_content": "hm", "reasoning_details": [{"index": 0, "data": "x"}]},
        {"tool_calls": [{"index": 0, "id": "a", "function": function, "extra_content": SIGNED}]},
    )

    plain = sent(turn, origin="chat@elsewhere.example")

    assert plain.keys() == {"role", "content", "tool_calls"}
    assert plain["tool_calls"][0].keys() == {"id", "type", "function"}
