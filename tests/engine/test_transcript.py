"""The record of a conversation: what it holds, and that any rest of it can be gone on with."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ferrule.core.calls import ServiceFields, ToolCall
from ferrule.core.content import Document, Image, Text
from ferrule.core.context import ToolContext
from ferrule.core.model import (
    AssistantTurn,
    CallReady,
    ModelError,
    ResultTurn,
    Stopped,
    TextDelta,
    Thought,
    ThoughtReady,
    ToolResult,
    Usage,
    UserTurn,
)
from ferrule.core.ports import Note
from ferrule.core.state import MovedTo, StateSet, ToolsFound
from ferrule.core.tool import Result
from ferrule.engine.message_history import MessageHistory
from ferrule.engine.restoring import NO_RESULT, restore_conversation
from ferrule.engine.transcript import Transcript
from ferrule.engine.transcript_entries import (
    assistant_fields,
    assistant_turn,
    entry_of,
    line_of,
    result_turn,
    results_fields,
    user_fields,
    user_turn,
)
from ferrule.providers.scripted import says
from ferrule.testing import RecordingModel, well_formed
from tests.requirement import requirement

from .conversing import Faulty, InMemory, ask, result
from .stage import Act, Given, Stage, call, echo, stage, steps

FIRST = Path(__file__).parent / "first_transcript.jsonl"
KEYS = st.sampled_from(
    (
        *("type", "session", "agent", "uuid", "content", "parts", "results", "texts", "messages", "text", "base64"),
        *("media_type", "title", "call", "id", "name", "arguments", "signature", "redacted", "malformed", "summary"),
        *("kept", "whole", "usage", "error", "key", "value"),
    )
)


def recorded(at: Stage) -> InMemory:
    store = InMemory()
    at.session.conversation = MessageHistory((), Transcript(store, "session-1", meta=lambda: {"workspace": "/project"}))
    return store


# What it holds


@requirement("LOOP-2")
async def test_a_turn_is_recorded_as_it_happens_and_synced_at_its_end() -> None:
    at = stage(Act(body=echo))
    store = recorded(at)

    await ask(
        at,
        "go",
        RecordingModel(
            [*says("Look.", call("Act", "1", text="hi"))[:-1], Usage(3, 4), Stopped("tool_use")], says("ok")
        ),
    )

    assert store.kinds() == ["meta", "user", "assistant", "results", "state", "state", "assistant", "end"]
    entries = store.entries()
    assert {(entry["sessionId"], entry["agent"]) for entry in entries} == {("session-1", "main")}
    assert entries[2]["message"]["usage"] == {
        "input_tokens": 3,
        "output_tokens": 4,
        "cache_read_input_tokens": 0,
        "cache_creation_input_tokens": 0,
    }
    assert store.synced == len(store.lines)


@requirement("LOOP-2")
async def test_a_call_that_changes_something_is_recorded_before_it_runs() -> None:
    recorded_by_then: list[str] = []

    async def body(input: Given, ctx: ToolContext) -> str:
        recorded_by_then.extend(store.kinds())
        return "done"

    at = stage(Act(body=body))
    store = recorded(at)

    await ask(at, "go", RecordingModel(says("", call()), says("ok")))

    assert recorded_by_then == ["meta", "user", "assistant"]


async def test_what_state_a_session_had_comes_back() -> None:
    async def body(input: Given, ctx: ToolContext) -> Result[str]:
        changes = (
            MovedTo("/project/sub"),
            ToolsFound(("Zeta",)),
            StateSet("todos", ({"content": "a", "status": "x"},)),
        )
        return Result("done", changes=changes)

    at = stage(Act(body=body))
    store = recorded(at)

    await ask(at, "go", RecordingModel(says("", call()), says("ok")))
    await ask(at, "again", RecordingModel(says("", call()), says("ok")))

    found = restore_conversation(store.lines)
    assert (found.cwd, found.found_tools) == ("/project/sub", ("Zeta",))
    assert found.values == {"todos": [{"content": "a", "status": "x"}]}
    assert found.prompts == 2
    assert store.kinds().count("state") == 3, "what did not change is not written again"


async def test_a_value_that_is_no_json_costs_a_warning_and_not_the_turn(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def body(input: Given, ctx: ToolContext) -> Result[str]:
        return Result("done", changes=(StateSet("odd", object()),))

    at = stage(Act(body=body))
    store = recorded(at)
    with caplog.at_level(logging.WARNING):
        await ask(at, "go", RecordingModel(says("", call()), says("ok")))

    assert "object has no form in JSON" in caplog.text
    assert restore_conversation(store.lines).turns == at.session.history


async def test_a_full_disk_costs_a_warning_and_not_the_turn(caplog: pytest.LogCaptureFixture) -> None:
    class Full(InMemory):
        def append(self, line: bytes, /) -> None:
            raise OSError(28, "No space left on device")

    at = stage(Act())
    at.session.conversation = MessageHistory((), Transcript(Full(), "session-1"))
    with caplog.at_level(logging.WARNING):
        events = await ask(at, "go", RecordingModel(says("", call()), says("ok")))

    assert events[-1].reason == "end"  # type: ignore[union-attr]
    assert caplog.text.count("is not complete") == 1


@requirement("LOOP-2")
async def test_an_entry_is_one_that_readers_of_other_transcripts_know() -> None:
    at = stage(Act(body=echo))
    store = InMemory()
    around = {"version": "1.2.3", "gitBranch": "main", "userType": "external"}
    transcript = Transcript(store, "session-1", cwd="/project", surroundings=lambda: around)
    at.session.conversation = MessageHistory((), transcript)

    await ask(at, "go", RecordingModel(says("Look.", call("Act", "1", text="hi")), says("ok")))

    prompt, asked, answered, *_, last, end = store.entries()
    assert {key: prompt[key] for key in prompt.keys() - {"uuid", "timestamp"}} == {
        "type": "user",
        "parentUuid": None,
        "sessionId": "session-1",
        "agent": "main",
        "isSidechain": False,
        "cwd": "/project",
        **around,
        "message": {"role": "user", "content": "go"},
    }
    assert (asked["type"], asked["message"]["role"], asked["message"]["stop_reason"]) == ("assistant",) * 2 + (
        "tool_use",
    )
    assert asked["message"]["content"] == [
        {"type": "text", "text": "Look."},
        {"type": "tool_use", "id": "1", "name": "Act", "input": {"text": "hi"}},
    ]
    assert answered["type"] == "user"
    assert answered["message"]["content"] == [{"type": "tool_result", "tool_use_id": "1", "content": "hi"}]
    assert last["message"]["content"] == [{"type": "text", "text": "ok"}]
    chain = [prompt, asked, answered, last]
    assert [one["parentUuid"] for one in chain] == [None, *(one["uuid"] for one in chain[:-1])]
    assert end["parentUuid"] == last["uuid"]
    assert datetime.fromisoformat(prompt["timestamp"]).tzinfo == UTC


def test_an_agents_entries_are_a_chain_of_their_own_beside_the_conversation() -> None:
    store = InMemory()
    transcript = Transcript(store, "s")
    transcript.user(UserTurn.saying("go"))
    agent = transcript.of_agent("main/Explore_1")
    agent.user(UserTurn.saying("look"))
    transcript.notes(("news",))

    main, theirs, notes = store.entries()
    assert (theirs["isSidechain"], theirs["agentId"], theirs["parentUuid"]) == (True, "Explore_1", None)
    assert (notes["isMeta"], notes["parentUuid"], notes["message"]["content"]) == (True, main["uuid"], "news")


# Of the first version


def test_a_transcript_of_the_first_version_gives_the_same_conversation() -> None:
    found = restore_conversation(FIRST.read_bytes().splitlines(keepends=True))

    assert (found.damaged, found.is_cut, found.prompts) == (0, False, 2)
    assert (found.cwd, found.found_tools) == ("/project/sub", ("Zeta",))
    assert found.values == {"todos": [{"content": "a"}]}
    summary, *turns = found.turns
    assert "What went before." in str(summary)
    assert turns == [
        UserTurn(
            (
                Text("Look at ünïcode and"),
                Image("image/png", "aaaa"),
                Document("application/pdf", "bbbb", "a.pdf"),
                Text("A file changed."),
            )
        ),
        AssistantTurn(
            (
                Thought("hm", "sig"),
                Thought("", "", "secret"),
                Text("Looking."),
                ToolCall("1", "Read", {"file_path": "a"}),
                ToolCall("2", "Act", {}, malformed="{"),
            )
        ),
        ResultTurn(
            (
                ToolResult("1", (Text("1\tone"), Image("image/png", "cccc")), is_error=False),
                ToolResult("2", (Text("bad"),), is_error=True),
            ),
            ("a message",),
        ),
        UserTurn.saying("Apart."),
        AssistantTurn((Text("Done."),)),
    ]


json_lines = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
)


@given(st.dictionaries(KEYS, json_lines, max_size=8))
def test_no_odd_entry_of_the_first_version_stops_the_reading(odd: dict[str, Any]) -> None:
    line = line_of({"type": "user", "session": "s", "agent": "main", **odd})

    assert well_formed(restore_conversation([line]).turns)


# There and back

texts = st.text(st.characters(exclude_categories=()), max_size=20)
blocks = st.lists(
    st.builds(Text, texts) | st.builds(Image, texts, texts) | st.builds(Document, texts, texts, texts), max_size=3
).map(tuple)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | texts, lambda inner: st.lists(inner) | st.dictionaries(texts, inner)
)
fields = st.dictionaries(texts, json_values, max_size=3)
extras = st.none() | st.builds(ServiceFields, texts, fields)
calls = st.builds(ToolCall, texts, texts, fields, st.none() | texts, extras)
thoughts = st.builds(Thought, texts, texts, texts, extras)
parts = st.lists(st.builds(Text, texts) | thoughts | calls, max_size=4).map(tuple)
results = st.builds(
    ResultTurn,
    st.lists(st.builds(ToolResult, texts, blocks, st.booleans()), max_size=3).map(tuple),
    st.lists(texts, max_size=2).map(tuple),
)


@requirement("LOOP-2", "CON-8")
@given(st.builds(UserTurn, blocks), st.builds(AssistantTurn, parts), results)
def test_every_turn_comes_back_with_every_character(user: UserTurn, assistant: AssistantTurn, turn: ResultTurn) -> None:
    assert user_turn(entry_of(line_of(user_fields(user)))) == user
    written = assistant_fields(assistant, model="m", stopped="end", usage=Usage())
    assert assistant_turn(entry_of(line_of(written))) == assistant
    assert result_turn(entry_of(line_of(results_fields(turn)))) == turn
    assert line_of(user_fields(user)).count(b"\n") == 1


async def dawdles(input: Given, ctx: ToolContext) -> Result[str]:
    await steps(2)
    return Result("dawdled " * 100, messages=("a message",))


class Talkative:
    """Has something to say before every message."""

    def __init__(self) -> None:
        self.told = 0

    async def notes(self, agent: str, /) -> tuple[Note, ...]:
        self.told += 1
        return (Note("news", f"number {self.told}"),) if self.told % 2 else ()


CUT = ModelError("cut", "cut")
MESSAGES = st.sampled_from(
    [
        says("", call("Act", "1"), call("Nope", "2")),
        [TextDelta("a"), CallReady(call("Act", "3")), TextDelta("half"), CUT],
        [TextDelta("nothing whole"), CUT],
        [ThoughtReady(Thought("t", "s")), *says("b", call("Act", "4"))],
        [CallReady(call("Act", "5")), ModelError("down", "overload")],
        [CallReady(ToolCall("6", "Act", {}, malformed="{")), Stopped("max_tokens")],
        says("the end"),
    ]
)


def conversation(messages: Sequence[Any], interrupted_after: int | None) -> tuple[Stage, InMemory]:
    at = stage(Act(body=dawdles))
    at.session.note_sources = (Talkative(),)
    store = recorded(at)
    model = Faulty(*messages, *[says("the end")] * 40)

    async def both() -> None:
        async with asyncio.timeout(60):
            if interrupted_after is not None:
                async with at.session.ask("first", model):
                    await steps(interrupted_after)
            for prompt in ("second", "third"):
                await ask(at, prompt, model)

    asyncio.run(both())
    return at, store


@requirement("LOOP-2", "PIPE-4")
@given(st.lists(MESSAGES, max_size=6), st.none() | st.integers(0, 30))
@settings(max_examples=40, deadline=None)
def test_the_record_of_any_conversation_gives_the_conversation(messages: list[Any], interrupted: int | None) -> None:
    at, store = conversation(messages, interrupted)

    found = restore_conversation(store.lines)

    assert found.turns == at.session.history
    assert not found.is_cut
    assert well_formed(found.turns)


@requirement("LOOP-2", "PIPE-4")
@given(st.lists(MESSAGES, max_size=4), st.none() | st.integers(0, 30), st.data())
@settings(max_examples=40, deadline=None)
def test_any_beginning_of_a_record_and_any_rest_of_it_is_well_formed(
    messages: list[Any], interrupted: int | None, data: st.DataObject
) -> None:
    _, store = conversation(messages, interrupted)
    whole = b"".join(store.lines)

    beginning = whole[: data.draw(st.integers(0, len(whole)))]
    kept = data.draw(st.lists(st.booleans(), min_size=len(store.lines), max_size=len(store.lines)))
    rest = [line for line, keep in zip(store.lines, kept, strict=True) if keep]

    from_beginning = restore_conversation(beginning.splitlines(keepends=True))
    assert well_formed(from_beginning.turns)
    assert well_formed(restore_conversation(rest).turns)
    assert from_beginning.damaged <= 1


def test_a_call_whose_result_was_never_written_is_told_so() -> None:
    store = InMemory()
    transcript = Transcript(store, "s")
    transcript.user(UserTurn.saying("go"))
    turn = AssistantTurn((call("Act", "1"), call("Act", "2")))
    transcript.assistant(turn, model="m", stopped="tool_use", usage=Usage())

    found = restore_conversation([*store.lines, b'{"type":"results","agent":"main","resul'])

    assert found.turns == [
        UserTurn.saying("go"),
        turn,
        ResultTurn((result("1", NO_RESULT, is_error=True), result("2", NO_RESULT, is_error=True))),
    ]
    assert found.is_cut
    assert found.damaged == 1


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"[]",
        b"nonsense",
        b'{"type":"user","agent":"main","message":{"content":7}}',
        b'{"type":"user","agent":"main","session":"s","content":7}',
        b"\xff\xfe",
    ],
)
def test_a_line_that_is_no_entry_is_counted_and_left_out(line: bytes) -> None:
    assert (restore_conversation([line]).turns, restore_conversation([line]).damaged) == ([], 1)


def test_entries_of_other_agents_and_of_later_versions_are_left_out() -> None:
    store = InMemory()
    transcript = Transcript(store, "s")
    transcript.user(UserTurn.saying("go"))
    transcript.of_agent("explorer").user(UserTurn.saying("look"))

    lines = [*store.lines, line_of({"type": "mood", "agent": "main"})]

    assert restore_conversation(lines).turns == [UserTurn.saying("go")]
    assert restore_conversation(lines).damaged == 0
    assert restore_conversation(lines, "explorer").turns == [UserTurn.saying("look")]
