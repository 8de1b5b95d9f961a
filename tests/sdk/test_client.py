"""Conversations in this process: `query`, `FerruleClient`, and what happens when somebody leaves early."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import ferrule
from ferrule.core.calls import ToolCall
from ferrule.core.content import Text
from ferrule.core.model import ModelEvent, Request, TextDelta, UserTurn
from ferrule.core.tool import ToolDefinitionError
from ferrule.hooks.hook import hook
from ferrule.providers.script import checked_script
from ferrule.providers.scripted import ScriptedModel, says
from ferrule.sdk.client import FerruleClient, query
from ferrule.sdk.errors import CannotOpen, NotConnected, NotDone
from ferrule.sdk.messages import (
    AssistantMessage,
    HookEventMessage,
    ResultMessage,
    StreamEvent,
    SystemMessage,
    ToolUseBlock,
)
from ferrule.sdk.options import Options
from ferrule.sdk.tools import create_sdk_mcp_server, tool
from ferrule.testing import ModelServer, RecordingModel

from ..requirement import requirement
from .scenes import HANG, no_task_but_this, of, options, read, results, texts


@tool("add", "Add two numbers.", {"a": float, "b": float})
async def add(args: dict[str, Any]) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": str(args["a"] + args["b"])}]}


@tool("fail", "Fail.", {})
async def fail(args: dict[str, Any]) -> dict[str, Any]:
    raise ValueError("no luck")


CALC = {"calc": create_sdk_mcp_server("calc", tools=[add, fail])}


class EndlessModel:
    """Says its first word and never comes to an end; `asked` is set by then, `left` when nobody listens any more."""

    name = "endless"
    facts = ScriptedModel.facts

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self.left = asyncio.Event()

    @asynccontextmanager
    async def stream(self, request: Request, /) -> AsyncGenerator[AsyncIterator[ModelEvent]]:
        try:
            yield self._words()
        finally:
            self.left.set()

    async def _words(self) -> AsyncIterator[ModelEvent]:
        yield TextDelta("Well")
        self.asked.set()
        await asyncio.Event().wait()


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
        ({"type": "user", "message": {"content": object()}}, "no form in JSON"),
        (7, "is no prompt"),
    ],
)
async def test_a_prompt_that_no_model_can_be_asked_is_refused(tmp_path: Path, prompt: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        await read(query(prompt=prompt, options=options(tmp_path)))


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"cwd": "/nowhere/at/all"}, "not a directory"),
        ({"mode": "fast"}, "no mode"),
        ({"setting_sources": ["team"]}, "none of user"),
        ({"allow": ["Bash(ls"]}, "Bash"),
        ({"resume": "gone"}, "no session gone"),
        ({"resume": "a", "continue_last": True}, "two conversations"),
        ({"fork": True}, "needs `resume`"),
        ({"max_budget_usd": 1.0}, "what scripted costs"),
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


async def test_modes_and_models_change_while_it_lasts(tmp_path: Path) -> None:
    write = ToolCall("1", "Write", {"file_path": "a.txt", "content": "x"})

    async with FerruleClient(options(tmp_path, says("", write), says("Done."))) as client:
        await client.set_permission_mode("acceptEdits")
        await client.query("write")
        messages = await read(client.receive_response())
        with pytest.raises(ValueError, match="when the conversation is opened"):
            await client.set_permission_mode("bypassPermissions")
        with pytest.raises(ValueError, match="no mode"):
            await client.set_permission_mode("fast")

    assert of(SystemMessage, messages)[0].data["permissionMode"] == "acceptEdits"
    assert (tmp_path / "a.txt").read_text() == "x"


async def test_servers_can_be_switched_off_and_on(tmp_path: Path) -> None:
    async with FerruleClient(options(tmp_path, mcp_servers=CALC)) as client:
        await client.toggle_mcp_server("calc", False)
        off = await client.get_mcp_status()
        await client.toggle_mcp_server("calc", True)
        (on,) = await client.get_mcp_status()
        with pytest.raises(NotDone, match="no server `other`"):
            await client.toggle_mcp_server("other", True)
        with pytest.raises(NotDone, match="nothing"):
            await client.stop_task("nothing")

    assert off[0].status == "disabled"
    assert (on.status, on.tools) == ("connected", ("mcp__calc__add", "mcp__calc__fail"))


async def test_how_full_the_window_is_can_be_asked(tmp_path: Path) -> None:
    async with FerruleClient(options(tmp_path, says("word " * 300))) as client:
        before = await client.get_context_usage()
        await client.query("x")
        await read(client.receive_response())
        after = await client.get_context_usage()

    assert after.parts["Messages"] > before.parts["Messages"] == 0
    assert before.total < after.total < after.window


async def test_a_function_that_is_asked_and_hooks_decide(tmp_path: Path) -> None:
    asked: list[str] = []
    calls = [ToolCall(str(number), "Write", {"file_path": f"{number}.txt", "content": ""}) for number in range(2)]

    def guard(event: Any) -> Any:
        if event["tool_input"]["file_path"].endswith("1.txt"):
            return {"decision": "block", "reason": "not that one"}
        return None

    chosen = options(
        tmp_path,
        says("", *calls),
        says("Done."),
        ask=lambda question: asked.append(question.tool) or True,
        hooks=[hook("PreToolUse", guard, match="Write")],
        hook_messages=True,
    )
    messages = await read(query(prompt="x", options=chosen))

    assert asked == ["Write"]
    assert [block.is_error for block in results(messages)] == [None, True]
    assert {message.hook_event_name for message in of(HookEventMessage, messages)} == {"PreToolUse"}


async def test_an_answer_can_be_held_to_a_schema(tmp_path: Path) -> None:
    schema = {"type": "object", "properties": {"sum": {"type": "number"}}, "required": ["sum"]}
    answer = ToolCall("1", "StructuredOutput", {"sum": 3})

    messages = await read(query(prompt="x", options=options(tmp_path, says("", answer), output_schema=schema)))

    assert messages[-1].structured_output == {"sum": 3}


async def test_a_conversation_is_resumed_and_forked(tmp_path: Path) -> None:
    first = await read(query(prompt="Remember 7.", options=options(tmp_path, says("Yes."), session_id="one")))
    model = RecordingModel(says("7."))
    again = await read(query(prompt="Which?", options=options(tmp_path, model=model, resume="one", fork=True)))

    assert first[-1].session_id == "one"
    assert again[-1].session_id != "one"
    assert "Remember 7." in str(model.requests[0][1][0])


async def test_a_model_of_a_service_is_chosen_by_its_name(tmp_path: Path) -> None:
    async with ModelServer(checked_script({"turns": [{"text": "Hello there."}]}, "a test")) as server:
        env = {"ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_API_KEY": "key"}
        chosen = options(tmp_path, model="anthropic:claude-sonnet-5-5", env=env)
        messages = await read(query(prompt="x", options=chosen))

    assert texts(messages) == ["Hello there."]
    assert of(AssistantMessage, messages)[0].model == "claude-sonnet-5-5"
    assert messages[-1].total_cost_usd is not None


async def test_a_model_that_cannot_be_had_is_said_before_anything_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "ANTHROPIC_BASE_URL", "OPENAI_BASE_URL", "FERRULE_MODEL"):
        monkeypatch.delenv(name, raising=False)

    with pytest.raises(CannotOpen, match="no model to ask"):
        await read(query(prompt="x", options=options(tmp_path, model=None)))


async def test_tools_made_of_functions_are_called_by_their_names(tmp_path: Path) -> None:
    @ferrule.tool
    def shout(text: str) -> str:
        """Say it loudly.

        Args:
            text: What to say.
        """
        return text.upper()

    chosen = options(
        tmp_path, says("", ToolCall("1", "shout", {"text": "hi"})), says("."), tools=[shout], allow=["shout"]
    )
    messages = await read(query(prompt="x", options=chosen))

    assert results(messages)[0].content == "HI"
    assert of(AssistantMessage, messages)[0].content == [ToolUseBlock("1", "shout", {"text": "hi"})]


def test_the_public_names_are_the_sdks() -> None:
    assert (ferrule.query, ferrule.FerruleClient, ferrule.Options) == (query, FerruleClient, Options)
    assert ferrule.create_sdk_mcp_server is create_sdk_mcp_server


@requirement("SDK-1")
async def test_tools_of_a_server_come_go_and_change_while_a_conversation_lasts(tmp_path: Path) -> None:
    server = create_sdk_mcp_server("calc", tools=[add, fail])
    instance = server["instance"]

    async def shout(args: dict[str, Any]) -> dict[str, Any]:
        return {"content": [{"type": "text", "text": f"{args['a'] + args['b']}!"}]}

    call = ToolCall("1", "mcp__calc__add", {"a": 1, "b": 2})
    chosen = options(tmp_path, says("", call), says("."), mcp_servers={"calc": server}, allow=["mcp__calc"])
    async with FerruleClient(chosen) as client:

        def names() -> list[str]:
            return [one.name for one in client.session.registry.pool if one.name.startswith("mcp__")]

        instance.disable("fail")
        assert names() == ["mcp__calc__add"]
        instance.enable("fail")
        instance.remove("fail")
        instance.add(replace(add, name="more"))
        assert names() == ["mcp__calc__add", "mcp__calc__more"]
        instance.update("add", handler=shout, description="Add, and shout.")
        await client.query("x")
        messages = await read(client.receive_response())

    assert results(messages)[0].content == "3!"
    with pytest.raises(ToolDefinitionError, match="no tool named fail"):
        instance.remove("fail")
    with pytest.raises(ToolDefinitionError, match="more than one tool named add"):
        instance.add(add)
