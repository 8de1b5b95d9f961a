"""Conversations in this process: `query`, `FerruleClient`, and what happens when somebody leaves early."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from ferrule.core.calls import ToolCall
from ferrule.core.content import Text
from ferrule.core.model import UserTurn
from ferrule.providers.scripted import ScriptedModel, says
from ferrule.sdk.client import FerruleClient, query
from ferrule.sdk.errors import CannotOpen, NotConnected
from ferrule.sdk.messages import (
    ResultMessage,
    StreamEvent,
    SystemMessage,
)
from ferrule.testing import RecordingModel

from ..requirement import requirement
from .scenes import CALC, HANG, EndlessModel, no_task_but_this, of, options, read, results, texts


@requirement("SDK-1")
async def test_a_query_tells_the_conversation_and_ends_with_its_result(tmp_path: Path) -> None:
    chosen = options(
        tmp_path,
        says("Adding.", ToolCall("1", "mcp__calc__add", {"a": 1, "b": 2})),
        says("It is 3."),
        mcp_servers=CALC,
        allow=["mcp__calc__add"],
    )

    messages = await read(query(prompt="1 + 2?", options=chosen))

    assert [type(message).__name__ for message in messages] == [
        "SystemMessage",
        "AssistantMessage",
        "AssistantMessage",
        "UserMessage",
        "AssistantMessage",
        "ResultMessage",
    ]
    init, *_, result = messages
    assert init.subtype == "init"
    assert "mcp__calc__add" in init.data["tools"]
    assert init.data["mcp_servers"] == [{"name": "calc", "status": "connected"}]
    assert texts(messages) == ["Adding.", "It is 3."]
    assert results(messages)[0].content == "3"
    assert (result.subtype, result.result, result.num_turns, result.is_error) == ("success", "It is 3.", 2, False)


async def test_a_call_that_nobody_allows_is_refused_and_listed(tmp_path: Path) -> None:
    call = ToolCall("1", "mcp__calc__add", {"a": 1, "b": 2})

    messages = await read(query(prompt="x", options=options(tmp_path, says("", call), says("No."), mcp_servers=CALC)))

    assert results(messages)[0].is_error
    assert messages[-1].permission_denials[0]["tool_name"] == "mcp__calc__add"


async def test_a_handler_that_raises_is_a_result_that_says_so(tmp_path: Path) -> None:
    chosen = options(
        tmp_path, says("", ToolCall("1", "mcp__calc__fail", {})), says("Oh."), mcp_servers=CALC, allow=["mcp__calc"]
    )

    messages = await read(query(prompt="x", options=chosen))

    assert results(messages)[0].is_error
    assert "no luck" in str(results(messages)[0].content)
    assert messages[-1].subtype == "success"


async def test_leaving_the_loop_early_ends_the_turn_and_every_task(tmp_path: Path) -> None:
    model = EndlessModel()

    async for message in query(prompt="x", options=options(tmp_path, model=model, partial_messages=True)):
        if isinstance(message, StreamEvent):
            break

    await no_task_but_this()
    assert model.left.is_set()


async def test_an_error_in_the_loop_ends_the_turn_and_every_task(tmp_path: Path) -> None:
    async def fail() -> None:
        async for _ in query(prompt="x", options=options(tmp_path, model=EndlessModel(), partial_messages=True)):
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await fail()

    await no_task_but_this()


async def test_leaving_a_block_early_waits_for_the_end(tmp_path: Path) -> None:
    model = EndlessModel()

    async with query(prompt="x", options=options(tmp_path, model=model, partial_messages=True)) as messages:
        async for message in messages:
            if isinstance(message, StreamEvent):
                break

    assert model.left.is_set()
    assert len(asyncio.all_tasks()) == 1
    assert await read(messages) == []


async def test_a_reader_that_is_cancelled_can_end_the_conversation(tmp_path: Path) -> None:
    model = EndlessModel()
    messages = query(prompt="x", options=options(tmp_path, model=model))
    reading = asyncio.create_task(read(messages))
    async with asyncio.timeout(HANG):
        await model.asked.wait()

    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    await messages.aclose()

    assert model.left.is_set()


@requirement("SDK-1")
async def test_a_client_keeps_the_conversation_between_prompts(tmp_path: Path) -> None:
    model = RecordingModel(says("Paris."), says("Two million."))

    async with FerruleClient(options(tmp_path, model=model)) as client:
        await client.query("The capital of France?")
        first = await read(client.receive_response())
        await client.query("And how many live there?")
        second = await read(client.receive_response())

    assert (texts(first), texts(second)) == (["Paris."], ["Two million."])
    said = [turn.content for turn in model.requests[1][1] if isinstance(turn, UserTurn)]
    assert said[0] == (Text("The capital of France?"),)
    assert len(of(SystemMessage, second)) == 1


@pytest.mark.parametrize("prompt_is_begun", [False, True])
async def test_an_interrupt_ends_the_turn_and_the_conversation_goes_on(tmp_path: Path, prompt_is_begun: bool) -> None:
    model = EndlessModel()

    async with FerruleClient(options(tmp_path, model=model)) as client:
        await client.query("Count for ever.")
        if prompt_is_begun:
            async with asyncio.timeout(HANG):
                await model.asked.wait()
        assert await client.interrupt()
        first = await read(client.receive_response())
        client.conversation.opened.model.model = ScriptedModel([says("A joke.")])
        await client.query("Never mind.")
        second = await read(client.receive_response())

        assert not await client.interrupt()

    assert (first[-1].subtype, first[-1].errors) == ("error_during_execution", ["Interrupted."])
    assert (texts(second), second[-1].subtype) == (["A joke."], "success")


async def test_several_clients_work_side_by_side(tmp_path: Path) -> None:
    async def talk(number: int) -> list[str]:
        async with FerruleClient(options(tmp_path, says(f"one {number}"), says(f"two {number}"))) as client:
            await client.query("x")
            await client.query("y")
            return texts([*await read(client.receive_response()), *await read(client.receive_response())])

    said = await asyncio.gather(*(talk(number) for number in range(10)))

    assert said == [[f"one {number}", f"two {number}"] for number in range(10)]


async def test_prompts_may_come_as_a_stream_of_messages(tmp_path: Path) -> None:
    async def prompts() -> AsyncIterator[dict[str, Any]]:
        for word in ("one", "two"):
            yield {"type": "user", "message": {"role": "user", "content": word}}

    messages = await read(query(prompt=prompts(), options=options(tmp_path, says("1"), says("2"))))

    assert texts(messages) == ["1", "2"]
    assert len(of(ResultMessage, messages)) == 2


async def test_a_stream_of_prompts_that_fails_is_told_to_the_reader(tmp_path: Path) -> None:
    async def prompts() -> AsyncIterator[str]:
        yield "one"
        raise ZeroDivisionError("the stream broke")

    with pytest.raises(ZeroDivisionError, match="the stream broke"):
        await read(query(prompt=prompts(), options=options(tmp_path, says("1"))))


@pytest.mark.parametrize(
    ("prompt", "words"),
    [
        ("  ", "empty"),
        ({"type": "user", "message": {"content": ""}}, "is empty"),
        ({"type": "control_request"}, "must be an object"),
        ({"type": "user", "message": {"content": object()}}, "cannot be written as JSON"),
        (7, "is not a valid prompt"),
    ],
)
async def test_a_prompt_that_no_model_can_be_asked_is_refused(tmp_path: Path, prompt: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        await read(query(prompt=prompt, options=options(tmp_path)))


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"cwd": "/nowhere/at/all"}, "not a directory"),
        ({"mode": "fast"}, "is not a mode"),
        ({"setting_sources": ["team"]}, "not one of user"),
        ({"allow": ["Bash(ls"]}, "Bash"),
        ({"resume": "gone"}, "Session gone was not found"),
        ({"resume": "a", "continue_last": True}, "two conversations"),
        ({"fork": True}, "needs `resume`"),
        ({"max_budget_usd": 1.0}, "The price of scripted"),
        ({"output_schema": {"type": "array"}}, "object"),
        ({"mcp_servers": {"x": {"type": "sdk", "name": "x"}}}, "no `instance`"),
        ({"added_directories": ["nowhere"]}, "not a directory"),
    ],
)
async def test_options_that_cannot_be_honoured_are_refused_when_it_is_opened(
    tmp_path: Path, more: dict[str, Any], words: str
) -> None:
    with pytest.raises(CannotOpen, match=words):
        await FerruleClient(options(tmp_path, **more)).connect()


async def test_a_client_must_be_connected() -> None:
    client = FerruleClient()

    with pytest.raises(NotConnected):
        await client.query("x")
    with pytest.raises(NotConnected):
        client.receive_response()
    await client.disconnect()


async def test_a_slow_reader_slows_the_model_and_loses_nothing(tmp_path: Path) -> None:
    words = " ".join(str(number) for number in range(2000))

    async with FerruleClient(options(tmp_path, says(words), partial_messages=True)) as client:
        await client.query("x")
        await client.session.settled(0)
        messages = await read(client.receive_response())

    pieces = [one.event["delta"]["text"] for one in of(StreamEvent, messages) if "text" in one.event.get("delta", {})]
    assert "".join(pieces) == words


async def test_a_client_that_nobody_reads_can_be_closed(tmp_path: Path) -> None:
    words = " ".join(str(number) for number in range(2000))
    client = FerruleClient(options(tmp_path, says(words), partial_messages=True))
    await client.connect("x")
    async with asyncio.timeout(HANG):
        await client.receive_messages().__anext__()
        await client.disconnect()

    assert len(asyncio.all_tasks()) == 1


async def test_a_client_that_is_closed_at_once_leaves_nothing_held(tmp_path: Path) -> None:
    await read(query(prompt="Remember 7.", options=options(tmp_path, says("Yes."), session_id="one")))

    for _ in range(2):
        client = FerruleClient(options(tmp_path, says("7."), resume="one", mcp_servers=CALC))
        await client.connect()
        await client.disconnect()
    messages = await read(query(prompt="Which?", options=options(tmp_path, says("7."), resume="one")))

    assert texts(messages) == ["7."]
    assert len(asyncio.all_tasks()) == 1


def test_a_program_may_end_right_after_it_left_a_loop(tmp_path: Path) -> None:
    async def main() -> None:
        chosen = options(tmp_path, model=EndlessModel(), partial_messages=True, session_id="one")
        async for message in query(prompt="x", options=chosen):
            if isinstance(message, StreamEvent):
                break

    asyncio.run(main())

    (transcript,) = (tmp_path / "state" / "projects").rglob("one.jsonl")
    assert '"reason":"interrupted"' in transcript.read_text().splitlines()[-1]
