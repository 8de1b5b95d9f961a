"""Calls that models write as text: a corpus of forms, streams in any pieces, reasoning in tags."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from time import monotonic
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferrule.core.calls import ToolCall
from ferrule.core.model import ModelEvent, Stopped, TextDelta, ThoughtDelta, ThoughtReady
from ferrule.core.tool import ToolSpec
from ferrule.providers.openai_calls import CallsInProgress
from ferrule.providers.openai_wire import OpenAiReader
from ferrule.providers.service_errors import Trouble
from ferrule.providers.sse import ServerSentEvent
from ferrule.providers.text_calls import find_text_calls
from ferrule.providers.written_text import TextCall, WrittenText
from tests.drawing import examples
from tests.providers.hearing import SERVICE, calls_of, text_of, tools

CORPUS = Path(__file__).parent.parent / "corpus"
SCHEMAS: dict[str, dict[str, Any]] = json.loads((CORPUS / "text_call_tools.json").read_text(encoding="utf-8"))
LINES = (CORPUS / "text_calls.jsonl").read_text(encoding="utf-8").splitlines()
CASES: list[dict[str, Any]] = [json.loads(line) for line in LINES]
MISSPELT: list[dict[str, Any]] = [
    json.loads(line) for line in (CORPUS / "misspelt_arguments.jsonl").read_text(encoding="utf-8").splitlines()
]
OFFERED = tuple(ToolSpec(name, name, "", schema) for name, schema in SCHEMAS.items())


def found(text: str, names: Iterable[str] = SCHEMAS, *, is_cut: bool = False) -> list[dict[str, Any]]:
    pieces = find_text_calls(text, {name: SCHEMAS[name] for name in names}, is_cut=is_cut)
    return [{"name": one.name, "arguments": dict(one.arguments)} for one in pieces if isinstance(one, TextCall)]


def test_the_corpus_has_at_least_200_calls_of_eight_families_and_texts_without_any() -> None:
    families = Counter(case["family"] for case in CASES)

    assert sum(bool(case["calls"]) for case in CASES) >= 200
    assert len(families) >= 10
    assert families["none"] >= 50


def test_calls_of_the_corpus_are_understood_and_none_is_invented() -> None:
    wrong = [case for case in CASES if found(case["text"], case["tools"]) != case["calls"]]

    assert wrong == []


def test_a_tool_that_was_not_offered_is_never_called() -> None:
    for case in CASES:
        called = {call["name"] for call in case["calls"]}
        others = [name for name in case["tools"] if name not in called]
        assert [call for call in found(case["text"], others) if call["name"] in called] == []


def test_a_text_that_is_cut_has_no_call_that_is_not_in_the_whole_of_it() -> None:
    for case in CASES[::3]:
        text = case["text"]
        for at in range(1, len(text), max(1, len(text) // 12)):
            whole = found(text)
            assert all(call in whole for call in found(text[:at], is_cut=True)), text[:at]


@pytest.mark.parametrize(
    "junk",
    ['{"name": "\n', "<tool_call>", "```\n", "[\n", "<function=Read>\n<parameter=a>\n", "[Read(a='x'", "<Read>\n<a>"],
)
def test_a_model_that_repeats_itself_holds_nobody_up(junk: str) -> None:
    """Sixty kilobytes take a fraction of a second; what grows with the square of it takes minutes."""
    text = junk * (60_000 // len(junk))

    began = monotonic()
    assert summary(written([text[at : at + 200] for at in range(0, len(text), 200)])) == (text, [])
    assert monotonic() - began < 20


@pytest.mark.parametrize("case", MISSPELT, ids=lambda case: case["text"])
def test_arguments_that_are_misspelt_are_read_if_they_can_mean_one_thing(case: dict[str, Any]) -> None:
    call = ToolCall.from_text("1", "Read", case["text"])

    if case["arguments"] is None:
        assert (call.arguments, call.malformed) == ({}, case["text"])
    else:
        assert (call.arguments, call.malformed) == (case["arguments"], None)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**6), 10**6) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(max_size=5), VALUES, max_size=4))
def test_pythons_way_of_writing_an_object_means_the_same(value: dict[str, Any]) -> None:
    """Or nothing: it has escapes that JSON does not have."""
    call = ToolCall.from_text("1", "Read", repr(value))

    assert call.malformed is not None or call.arguments == value


@given(st.dictionaries(st.text(max_size=5), VALUES, min_size=1, max_size=4), st.integers(0, 200))
def test_half_an_object_is_completed_only_where_the_end_is_known(value: dict[str, Any], size: int) -> None:
    text = json.dumps(value)
    half = text[: min(size, len(text) - 1)]

    assert ToolCall.from_text("1", "Read", half, may_be_cut=True).malformed == (half if half.strip() else None)


# Streams


def written(pieces: Sequence[str], **options: Any) -> list[ModelEvent | TextCall]:
    text = WrittenText(OFFERED, **options)
    return [*(event for piece in pieces for event in text.feed(piece)), *text.end(is_cut=False)]


def summary(events: Iterable[Any]) -> tuple[str, list[dict[str, Any]]]:
    """The text and the calls, wherever pieces of it were cut."""
    events = list(events)
    calls = [{"name": one.name, "arguments": dict(one.arguments)} for one in events if isinstance(one, TextCall)]
    return "".join(one.text for one in events if isinstance(one, TextDelta)), calls


@examples(300)
@given(st.sampled_from(CASES), st.lists(st.integers(1, 40), min_size=1, max_size=60))
def test_a_stream_in_any_pieces_has_the_same_text_and_calls(case: dict[str, Any], sizes: list[int]) -> None:
    text, pieces, at = case["text"], list[str](), 0
    while at < len(text):
        size = sizes[len(pieces) % len(sizes)]
        pieces.append(text[at : at + size])
        at += size

    said, calls = summary(written(pieces))

    assert calls == case["calls"]
    if not calls:
        assert said == text


def test_text_passes_at_once_and_waits_only_where_a_call_may_begin() -> None:
    text = WrittenText(OFFERED)

    def fed(piece: str) -> str:
        return summary(text.feed(piece))[0]

    assert fed("I look <b>here</b>, a < b, [1] {x}") == "I look <b>here</b>, a < b, [1] {x}"
    assert fed(" and <") == " and "
    assert fed("i>so</i>") == "<i>so</i>"
    assert fed("\nRead") == "\n"
    assert fed(" it.") == "Read it."
    assert fed("\n```py\nx = {}\n```\n") == "\n```py\nx = {}\n"
    assert fed("So.\n") == "```\nSo.\n"
    assert fed('{"total": 1}\n') == '{"total": 1}\n'
    assert fed("So: <tool_") == "So: "
    assert fed('call>{"name": "Read"') == ""
    assert fed(', "arguments": {"file_path": "a"}}</tool_call>') == ""
    assert summary(text.end(is_cut=False)) == ("", [{"name": "Read", "arguments": {"file_path": "a"}}])


def read(
    *deltas: dict[str, Any], finish: str | None = "stop", offered: Sequence[ToolSpec] = OFFERED
) -> list[ModelEvent]:
    reader = OpenAiReader(SERVICE, CallsInProgress(set()), WrittenText(offered))
    events: list[ModelEvent] = []
    for delta in deltas:
        events += reader.event(ServerSentEvent("message", json.dumps({"choices": [{"index": 0, "delta": delta}]})))
    end: dict[str, Any] = (
        {"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]} if finish else {"choices": []}
    )
    events += reader.event(ServerSentEvent("message", json.dumps(end)))
    return [*events, *reader.end(is_framed=True)]


CALL = '<tool_call>\n{"name": "Read", "arguments": {"file_path": "a.py"}}\n</tool_call>'


def test_a_call_in_the_text_is_a_call_for_the_loop() -> None:
    events = read({"content": "I look.\n"}, {"content": CALL[:30]}, {"content": CALL[30:]})

    (call,) = calls_of(events)
    assert (call.name, call.arguments, call.malformed) == ("Read", {"file_path": "a.py"}, None)
    assert len(call.id) == 9
    assert text_of(events) == "I look.\n"
    assert events[-1] == Stopped("tool_use")


def test_text_stays_text_where_the_service_sends_a_call_of_its_own() -> None:
    function = {"name": "Read", "arguments": '{"file_path": "b.py"}'}
    events = read({"content": CALL}, {"tool_calls": [{"index": 0, "id": "1", "function": function}]})

    assert [call.arguments for call in calls_of(events)] == [{"file_path": "b.py"}]
    assert text_of(events) == CALL


def test_without_tools_nothing_is_a_call() -> None:
    assert text_of(read({"content": CALL}, offered=())) == CALL


def test_a_call_that_the_length_limit_cut_off_is_not_completed() -> None:
    half = CALL.removesuffix("}\n</tool_call>")

    assert len(calls_of(read({"content": half}))) == 1
    assert calls_of(read({"content": half}, finish="length")) == []
    pieces = [{"index": 0, "id": "1", "function": {"name": "Read", "arguments": '{"file_path": "a"'}}]
    assert calls_of(read({"tool_calls": pieces}))[0].arguments == {"file_path": "a"}
    assert calls_of(read({"tool_calls": pieces}, finish="length"))[0].malformed == '{"file_path": "a"'


# Reasoning in the text

THOUGHTS: list[tuple[str, dict[str, Any]]] = [
    ("<think>\nI wonder.\n</think>\n\nHello.", {}),
    ("\n<think>I wonder.</think>Hello.", {}),
    ("<thinking>I wonder.</thinking>\nHello.", {}),
    ("[THINK]I wonder.[/THINK]Hello.", {}),
    ("I wonder.\n</think>\n\nHello.", {"opens_in_thought": True}),
    ("<think>I wonder.</think>Hello.", {"opens_in_thought": True}),
    ("<think></think><think>I wonder.</think>Hello.", {}),
]


@pytest.mark.parametrize(("text", "options"), THOUGHTS)
@pytest.mark.parametrize("size", [1, 3, 7, 1000])
def test_reasoning_in_tags_is_reasoning(text: str, options: dict[str, Any], size: int) -> None:
    events = written([text[at : at + size] for at in range(0, len(text), size)], **options)

    assert [event.thought.text.strip() for event in events if isinstance(event, ThoughtReady)] == ["I wonder."]
    assert "".join(event.text for event in events if isinstance(event, ThoughtDelta)).strip() == "I wonder."
    assert summary(events)[0].strip() == "Hello."


def test_reasoning_without_its_beginning_is_learned_for_the_next_message() -> None:
    learned: list[bool] = []
    note = lambda: learned.append(True)  # noqa: E731
    events = written(["I wonder.\n</think>\n\nHello."], found_lone_end=note)

    assert [event.thought.text for event in events if isinstance(event, ThoughtReady)] == ["I wonder."]
    assert summary(events)[0] == "Hello."
    late = written(["I wonder", ".\n</think>\n\nHello."], found_lone_end=note)
    assert summary(late)[0] == "I wonder.\n\n\nHello."
    assert learned == [True, True]


def test_text_of_a_model_that_should_think_and_does_not_is_text() -> None:
    assert summary(written(["Hel", "lo."], opens_in_thought=True))[0] == "Hello."


def test_words_about_the_tags_stay() -> None:
    for text in ("The tag <think> begins it, </think> ends it.", "Use `</think>`.", "a <think> b"):
        assert summary(written([text]))[0] == text


def test_a_call_after_reasoning_is_found_and_one_in_it_is_not() -> None:
    events = written([f"<think>I could {CALL}</think>{CALL}"])

    assert len(summary(events)[1]) == 1


# Answers that are none


@pytest.mark.parametrize(
    "deltas",
    [[{"content": ""}], [{}], [{"role": "assistant", "content": None}]],
)
def test_an_empty_answer_is_a_failure_that_may_pass(deltas: list[dict[str, Any]]) -> None:
    with pytest.raises(Trouble, match="empty answer") as caught:
        read(*deltas, offered=tools(1))

    assert caught.value.passing


def test_only_empty_choices_are_a_failure_that_may_pass() -> None:
    reader = OpenAiReader(SERVICE, CallsInProgress(set()))
    events = [
        *reader.event(ServerSentEvent("message", '{"choices": []}')),
        *reader.event(ServerSentEvent("m", "[DONE]")),
    ]
    with pytest.raises(Trouble) as caught:
        events += reader.end(is_framed=True)

    assert (events, caught.value.passing) == ([], True)


def test_an_end_by_error_is_a_failure_that_may_pass() -> None:
    with pytest.raises(Trouble, match="broke off") as caught:
        read({"content": "Half"}, finish="error")

    assert caught.value.passing


def test_an_empty_answer_at_the_length_limit_or_by_a_filter_is_told_as_that() -> None:
    assert read({}, finish="length")[-1] == Stopped("max_tokens")
    assert read({}, finish="content_filter")[-1] == Stopped("refusal")
