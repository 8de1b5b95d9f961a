"""Our tools in somebody else's loop."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from anthropic.types import Message
from openai.types.chat import ChatCompletion
from openai.types.responses import Response

from ferrule.app.build import Settings
from ferrule.core.content import Image
from ferrule.core.effects import Effects
from ferrule.core.functions import tool
from ferrule.core.tool import AnyTool
from ferrule.permissions.rules import RuleError
from ferrule.sdk.toolbox import Question, Toolbox

from ..requirement import requirement

Asked = list[tuple[str, dict[str, Any]]]


def _toolbox(folder: Path, *tools: AnyTool, **options: Any) -> Toolbox:
    return Toolbox(settings=Settings(cwd=str(folder), state_folder=folder / ".ferrule-state"), tools=tools, **options)


def _anthropic(asked: Asked) -> dict[str, Any]:
    calls = [{"type": "tool_use", "id": f"c{n}", "name": name, "input": given} for n, (name, given) in enumerate(asked)]
    return {
        "id": "msg",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [{"type": "text", "text": "Let me see."}, *calls],
        "stop_reason": "tool_use",
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }


def _chat(asked: Asked) -> dict[str, Any]:
    calls = [
        {"id": f"c{n}", "type": "function", "function": {"name": name, "arguments": json.dumps(given)}}
        for n, (name, given) in enumerate(asked)
    ]
    message = {"role": "assistant", "content": None, "tool_calls": calls}
    choice = {"index": 0, "finish_reason": "tool_calls", "message": message}
    return {"id": "chat", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}


def _responses(asked: Asked) -> dict[str, Any]:
    calls = [
        {"type": "function_call", "id": f"f{n}", "call_id": f"c{n}", "name": name, "arguments": json.dumps(given)}
        for n, (name, given) in enumerate(asked)
    ]
    return {
        "id": "resp",
        "object": "response",
        "created_at": 1,
        "model": "m",
        "output": calls,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
    }


def _told(turns: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """The results among the turns, each with its call's id."""
    told: list[tuple[str, str]] = []
    for turn in turns:
        if turn.get("role") == "tool":
            told.append((turn["tool_call_id"], turn["content"]))
        elif turn.get("type") == "function_call_output":
            told.append((turn["call_id"], turn["output"]))
        elif turn.get("role") == "user" and isinstance(turn["content"], list):
            told += [
                (block["tool_use_id"], "".join(part.get("text", "") for part in block["content"]))
                for block in turn["content"]
                if block["type"] == "tool_result"
            ]
    return told


FORMS: list[Callable[[Asked], Any]] = [
    _anthropic,
    _chat,
    _responses,
    lambda asked: Message.model_validate(_anthropic(asked)),
    lambda asked: ChatCompletion.model_validate(_chat(asked)),
    lambda asked: Response.model_validate(_responses(asked)),
]
forms = pytest.mark.parametrize("form", FORMS, ids=["anthropic", "chat", "responses", "Message", "Chat", "Response"])


@requirement("SDK-2")
@forms
async def test_a_response_is_carried_out_and_answered_in_its_own_form(tmp_path: Path, form: Callable[..., Any]) -> None:
    (tmp_path / "a.txt").write_text("one\n")
    asked = [("Read", {"file_path": "a.txt"}), ("Raed", {}), ("Read", {"path": "a.txt"})]
    async with _toolbox(tmp_path) as toolbox:
        turns = await toolbox.execute(form(asked))

    (first, one), (second, unknown), (third, invalid) = _told(turns)
    assert (first, second, third) == ("c0", "c1", "c2")
    assert "one" in one
    assert "No tool is named Raed" in unknown
    assert "`file_path` is missing" in invalid
    assert json.dumps(turns)


@forms
async def test_a_response_that_asks_for_nothing_ends_the_loop(tmp_path: Path, form: Callable[..., Any]) -> None:
    async with _toolbox(tmp_path) as toolbox:
        assert await toolbox.execute(form([])) == []


async def test_what_is_no_response_is_refused_with_words(tmp_path: Path) -> None:
    async with _toolbox(tmp_path) as toolbox:
        for other in ({}, {"role": "user", "content": "x"}, "text", None, 5):
            with pytest.raises(TypeError, match="not a supported response"):
                await toolbox.execute(other)


@requirement("SDK-2")
async def test_calls_that_do_not_conflict_run_side_by_side_and_keep_their_order(tmp_path: Path) -> None:
    both = asyncio.Barrier(2)

    @tool(effects=Effects.of())
    async def meet(name: str) -> str:
        """Wait for the other."""
        await both.wait()
        return name

    async with _toolbox(tmp_path, meet) as toolbox, asyncio.timeout(30):
        turns = await toolbox.execute(_anthropic([("meet", {"name": "a"}), ("meet", {"name": "b"})]))

    assert _told(turns) == [("c0", "a"), ("c1", "b")]


async def test_arguments_that_are_no_object_are_an_answer_too(tmp_path: Path) -> None:
    response = _chat([("Read", {})])
    response["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"] = '{"file_path": '
    async with _toolbox(tmp_path) as toolbox:
        ((_, said),) = _told(await toolbox.execute(response))
        no_object = {"type": "tool_use", "id": "c0", "name": "Read", "input": []}
        ((_, said_again),) = _told(await toolbox.execute({"role": "assistant", "content": [no_object]}))

    assert "file_path" in said
    assert "Read" in said_again


async def test_pictures_reach_each_service_in_its_own_way(tmp_path: Path) -> None:
    @tool(effects=Effects.of())
    def look() -> Image:
        """Look."""
        return Image("image/png", "aGk=")

    async with _toolbox(tmp_path, look) as toolbox:
        anthropic = await toolbox.execute(_anthropic([("look", {})]))
        chat = await toolbox.execute(_chat([("look", {})]))
        responses = await toolbox.execute(_responses([("look", {})]))

    assert anthropic[-1]["content"][0]["content"][0]["source"]["data"] == "aGk="
    assert chat[-1]["content"][1]["image_url"]["url"] == "data:image/png;base64,aGk="
    assert responses[-1]["output"][1]["image_url"] == "data:image/png;base64,aGk="


@requirement("SDK-2")
async def test_rules_and_whoever_is_asked_decide(tmp_path: Path) -> None:
    questions: list[Question] = []

    async def ask(question: Question) -> bool | str:
        questions.append(question)
        return question.tool == "Write" or "not today"

    write, bash = ("Write", {"file_path": "a.txt", "content": ""}), ("Bash", {"command": "touch b.txt"})
    async with _toolbox(tmp_path, deny=["Glob"], ask=ask) as toolbox:
        told = _told(await toolbox.execute(_anthropic([write, bash, ("Glob", {"pattern": "*"})])))

    assert (tmp_path / "a.txt").exists()
    assert not (tmp_path / "b.txt").exists()
    assert "not today" in told[1][1]
    assert "`Glob`" in told[2][1]
    assert [question.tool for question in questions] == ["Write", "Bash"]
    assert questions[0].would == f"creates {tmp_path}/a.txt"


async def test_with_nobody_to_ask_a_call_that_needs_a_word_is_refused(tmp_path: Path) -> None:
    async with _toolbox(tmp_path) as toolbox:
        refused = await toolbox.call("Write", {"file_path": "a.txt", "content": ""})
    async with _toolbox(tmp_path, allow=["Write"]) as toolbox:
        allowed = await toolbox.call("Write", {"file_path": "a.txt", "content": ""})

    assert (refused.status, allowed.status) == ("denied", "ok")


def test_a_rule_that_is_not_understood_is_refused_at_once(tmp_path: Path) -> None:
    with pytest.raises(RuleError):
        _toolbox(tmp_path, deny=["(("])


@pytest.mark.parametrize("family", ["anthropic", "openai", "openai-responses"])
async def test_definitions_have_the_form_of_the_service(tmp_path: Path, family: Any) -> None:
    async with _toolbox(tmp_path) as toolbox:
        definitions = toolbox.definitions(family)

    read = next(each for each in definitions if "Read" in (each.get("name"), each.get("function", {}).get("name")))
    schema = {"anthropic": read.get("input_schema"), "openai-responses": read.get("parameters")}.get(
        family, read.get("function", {}).get("parameters")
    )
    assert schema["required"] == ["file_path"]
    assert read.get("type") == (None if family == "anthropic" else "function")


async def test_a_name_that_no_service_takes_is_refused_before_the_request(tmp_path: Path) -> None:
    @tool(name="a.b", effects=Effects.of())
    def dotted() -> str:
        """Named like a method."""
        return ""

    async with _toolbox(tmp_path, dotted) as toolbox:
        with pytest.raises(ValueError, match=r"a\.b"):
            toolbox.definitions("openai")


async def test_what_the_model_should_hear_besides_stands_behind_the_results(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\n")
    async with _toolbox(tmp_path) as toolbox:
        await toolbox.execute(_anthropic([("Read", {"file_path": "a.txt"})]))
        (tmp_path / "a.txt").write_text("two\n")
        turns = await toolbox.execute(_anthropic([("Glob", {"pattern": "*.txt"})]))

    assert "a.txt has changed" in turns[-1]["content"][-1]["text"]
