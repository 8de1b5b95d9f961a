from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from ferrule.app.build import Settings, open_session
from ferrule.app.headless_run import Headless
from ferrule.core.calls import Status, ToolCall, ToolOutcome
from ferrule.core.content import Image, Line, Text
from ferrule.core.events import (
    CallDrafted,
    Compacted,
    Envelope,
    Event,
    MessageEnded,
    MessageStarted,
    NoteAdded,
    Retried,
    TextStreamed,
    ThoughtFinished,
    ThoughtStreamed,
    ToolFinished,
    ToolRequested,
    TurnEnded,
    UsageReported,
)
from ferrule.core.model import AssistantTurn, Retrying, Thought, Usage
from ferrule.output.run_answer import Ending, RunAnswer
from ferrule.output.stream_input import BadLine, read_line
from ferrule.output.stream_json import StreamJson, encode_json_line
from ferrule.permissions.modes import Mode
from ferrule.providers.asked_model import AskedModel
from ferrule.providers.scripted import ScriptedModel, says
from tests.cli.prompting import fits, kinds

TEXT_TURN = AssistantTurn((Text("x"),))


def stream(*events: Event, partial: bool = False) -> list[dict[str, Any]]:
    numbers = itertools.count()
    translator = StreamJson("s", model=lambda: "m", partial=partial, new_id=lambda: f"id-{next(numbers)}")
    lines = [line for event in events for line in translator.lines(Envelope(0, 0.0, "main", event))]
    for line in lines:
        fits(json.loads(encode_json_line(line)))
    return lines


def call(id: str) -> ToolCall:
    return ToolCall(id, "Read", {"file_path": "a"})


def finished(id: str, *content: Text | Image, output: Any = None) -> ToolFinished:
    return ToolFinished(ToolOutcome(call(id), Status.OK, content or (Text(id),), Line(id), output=output))


def contents(lines: list[dict[str, Any]]) -> Iterator[tuple[str, str]]:
    for line in lines:
        block = line["message"]["content"][0]
        yield line["type"], block.get("text") or block.get("id") or block.get("tool_use_id") or block.get("thinking")


def test_results_wait_for_the_message_and_for_the_results_before_them() -> None:
    early = stream(
        MessageStarted(), ToolRequested(call("1")), ToolRequested(call("2")), finished("2"), TextStreamed("x")
    )
    lines = stream(
        MessageStarted(),
        ToolRequested(call("1")),
        ToolRequested(call("2")),
        finished("2"),
        TextStreamed("x"),
        MessageEnded("tool_use", TEXT_TURN),
        finished("1"),
    )

    assert list(contents(early)) == [("assistant", "1"), ("assistant", "2")]
    assert list(contents(lines)) == [
        ("assistant", "1"),
        ("assistant", "2"),
        ("assistant", "x"),
        ("user", "1"),
        ("user", "2"),
    ]


def test_an_interrupted_turn_tells_what_there_is() -> None:
    lines = stream(
        MessageStarted(), ToolRequested(call("1")), TextStreamed("half"), finished("1"), TurnEnded("interrupted")
    )

    assert list(contents(lines)) == [("assistant", "1"), ("assistant", "half"), ("user", "1")]


def test_text_that_was_cut_off_and_is_asked_for_again_is_no_message() -> None:
    lines = stream(
        MessageStarted(), TextStreamed("cut"), MessageEnded("end", None), MessageStarted(), TextStreamed("x")
    )

    assert lines == []


def test_a_call_that_another_call_makes_is_no_part_of_the_conversation() -> None:
    lines = stream(
        MessageStarted(),
        ToolRequested(call("1")),
        ToolRequested(call("1.1")),
        finished("1.1"),
        MessageEnded("tool_use", AssistantTurn((call("1"),))),
        finished("1"),
    )

    assert list(contents(lines)) == [("assistant", "1"), ("user", "1")]


def test_retries_notes_and_compactions_are_told() -> None:
    lines = stream(
        Retried(Retrying(2, 5, 0.6, "Overloaded")), NoteAdded("changed_files", "a.txt"), Compacted(1000, 100)
    )

    assert kinds(lines) == ["system/api_retry", "user", "system/compact_boundary"]
    assert (lines[0]["attempt"], lines[0]["max_retries"], lines[0]["retry_delay_ms"]) == (1, 4, 600)
    assert lines[1]["message"]["content"][0]["text"] == "<changed_files>\na.txt\n</changed_files>"


def test_a_compaction_is_told_with_whose_it_is_how_it_was_made_and_what_came_of_it() -> None:
    of_agent = StreamJson("s", model=lambda: "m", parent="call_1")
    compacted = Compacted(1000, 100, "summary", "manual", "What was done.")

    boundary, summary = of_agent.lines(Envelope(0, 0.0, "main/Explore_1", compacted))

    about = {"trigger": "manual", "pre_tokens": 1000, "post_tokens": 100, "how": "summary"}
    assert (boundary["compact_metadata"], boundary["parent_tool_use_id"]) == (about, "call_1")
    assert summary["message"]["content"][0]["text"] == "What was done."
    assert (summary["isSynthetic"], summary["parent_tool_use_id"]) == (True, "call_1")


def test_partial_events_are_a_whole_message_of_the_api() -> None:
    lines = stream(
        MessageStarted(),
        ThoughtStreamed("Hm"),
        ThoughtFinished(Thought("Hm", "sig")),
        ThoughtFinished(Thought("", redacted="xx")),
        TextStreamed("x"),
        CallDrafted("1", "Read", ""),
        CallDrafted("1", "Read", '{"file'),
        CallDrafted("1", "Read", '_path": "a"}'),
        ToolRequested(call("1")),
        UsageReported(Usage(1, 2)),
        MessageEnded("tool_use", AssistantTurn((Text("x"),))),
        partial=True,
    )

    events = [line["event"] for line in lines if line["type"] == "stream_event"]
    named = [event["type"].removeprefix("content_block_") for event in events]
    block = ["start", "delta", "stop"]
    assert named == [
        "message_start",
        *("start", "delta", "delta", "stop"),
        *("start", "stop"),
        *block,
        *("start", "delta", "delta", "stop"),
        "message_delta",
        "message_stop",
    ]
    assert events[-2]["usage"]["output_tokens"] == 2


def test_pictures_and_outputs_of_any_kind_are_json() -> None:
    (line,) = [
        line
        for line in stream(
            MessageStarted(),
            ToolRequested(call("1")),
            MessageEnded("tool_use", None),
            finished("1", Text("a\udcff"), Image("image/png", "eA=="), output={"bytes": b"\xff", "nan": float("nan")}),
        )
        if line["type"] == "user"
    ]

    assert json.loads(encode_json_line(line))["tool_use_result"] == {"bytes": "_w==", "nan": "nan"}


@given(st.binary(max_size=200), st.integers(1, 3))
def test_no_line_of_input_raises(line: bytes, number: int) -> None:
    read_line(line, number)


@given(
    st.recursive(
        st.none() | st.booleans() | st.text(),
        lambda inner: (
            st.lists(inner)
            | st.dictionaries(
                st.sampled_from(["type", "message", "content", "request", "request_id", "subtype", "source"]), inner
            )
        ),
        max_leaves=8,
    )
)
def test_no_json_of_input_raises(value: Any) -> None:
    read_line(json.dumps(value).encode(), 1)


def test_a_bad_line_is_named_by_its_number() -> None:
    assert read_line(b"{", 7) == BadLine(
        7, "it is not JSON: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)."
    )


def test_refused_calls_give_way_to_other_ends() -> None:
    assert [RunAnswer(ending=ending).exit_code for ending in Ending] == [0, 4, 4, 4, 1]


async def test_the_model_waits_for_a_slow_reader(tmp_path: Path) -> None:
    session = open_session(Settings(cwd=str(tmp_path), state_folder=tmp_path / "state", mode=Mode.BYPASS))
    model = AskedModel(ScriptedModel([says("word " * 200)]))
    count = {"written": 0, "read": 0, "ahead": 0}

    async def watch(envelope: Envelope) -> None:
        count["read"] += isinstance(envelope.event, TextStreamed)
        for _ in range(5):
            await asyncio.sleep(0)
        count["ahead"] = max(count["ahead"], count["written"] - count["read"])

    headless = Headless(session, model, watch=watch, watch_last=lambda _: None)
    reader_is_free = model.ready

    async def counting() -> None:
        await reader_is_free()
        count["written"] += 1

    model.ready = counting
    async with session:
        answer = await headless.ask("Go")

    assert answer.text == "word " * 200
    assert count["ahead"] <= 5
