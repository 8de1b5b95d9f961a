"""Servers whose answers are not what the protocol wants: what can be used is used, the rest is said."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from ferrule.core.calls import Status
from ferrule.core.ports import Answer, Question
from ferrule.engine.session import Session
from ferrule.mcp import server_process as process
from ferrule.mcp.config import Stdio
from ferrule.mcp.server_context import Phase, ServerTrouble
from ferrule.mcp.servers import McpServers
from tests.mcp.running import HANG, config, connected, run, session, text_of, until, words
from tests.requirement import requirement

CROOKED = Path(__file__).parent / "servers" / "crooked.py"
OBJECT = {"type": "object", "properties": {}}
FINE = {"name": "fine", "inputSchema": OBJECT}


def crooked(**answers: Any) -> Stdio:
    """By the last part of the method: `call`, `tools`, `prompts`, `resources`."""
    methods = {"call": "tools/call", "tools": "tools/list", "prompts": "prompts/list", "resources": "resources/list"}
    wrong = {methods.get(key, key.replace("_", " ")): answer for key, answer in answers.items()}
    return Stdio(sys.executable, ("-S", str(CROOKED), json.dumps(wrong)))


@asynccontextmanager
async def working(folder: Path, **answers: Any) -> AsyncGenerator[tuple[Session, McpServers]]:
    async with session(folder, config(crooked(**answers), "it", timeout=HANG)) as (running, servers):
        await servers.wait_until_known(HANG)
        yield running, servers


def tools(*more: Any) -> dict[str, Any]:
    return {"result": {"tools": [FINE, *more]}}


@requirement("MCP-1", "MCP-2")
@pytest.mark.parametrize(
    ("bad", "names"),
    [
        ({"name": "x"}, ["fine", "x"]),
        ({"name": "x", "inputSchema": None}, ["fine", "x"]),
        ({"name": "x", "inputSchema": {"oneOf": [OBJECT]}}, ["fine", "x"]),
        ({"name": "x", "inputSchema": {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#"}}}}, ["fine", "x"]),
        ({"name": "x", "inputSchema": True}, ["fine"]),
        ({"name": "x", "inputSchema": {"type": "string"}}, ["fine"]),
        ({"name": "x", "inputSchema": {"type": "object", "properties": ["a"]}}, ["fine"]),
        ({"name": "x", "inputSchema": OBJECT, "annotations": "yes"}, ["fine"]),
        ({"name": "", "inputSchema": OBJECT}, ["fine"]),
        ({"name": 5, "inputSchema": OBJECT}, ["fine"]),
        ({**FINE, "description": "once again"}, ["fine"]),
        ("no tool at all", ["fine"]),
    ],
)
async def test_a_tool_that_is_none_does_not_cost_the_others(tmp_path: Path, bad: Any, names: list[str]) -> None:
    async with working(tmp_path, tools=tools(bad)) as (running, servers):
        assert [tool.info.name for tool in servers.tools()] == names
        for name in names:
            assert words(await run(running, f"mcp__it__{name}")) == "done"


async def test_names_with_odd_characters_stay_apart_and_reach_their_own_tool(tmp_path: Path) -> None:
    odd = ["a.b", "a/b", "a__b", "\u4f60", "\u597d", "x" * 300]
    listed = tools(*({"name": name, "inputSchema": OBJECT} for name in odd))
    async with working(tmp_path, tools=listed) as (_, servers):
        made = {tool.name: tool.info.name for tool in servers.tools()}

    assert list(made.values()) == ["fine", *odd]


@requirement("MCP-2")
@pytest.mark.parametrize(
    "prompts", [{"error": {"code": -32601, "message": "no"}}, {"result": {"prompts": "none"}}, {"result": {}}]
)
async def test_prompts_that_cannot_be_listed_do_not_cost_the_tools(tmp_path: Path, prompts: Any) -> None:
    async with working(tmp_path, prompts=prompts) as (running, servers):
        assert servers.prompts() == ()
        assert words(await run(running, "mcp__it__fine")) == "done"


async def test_one_bad_resource_does_not_cost_the_others(tmp_path: Path) -> None:
    listed = {"result": {"resources": [{"uri": "a://b", "name": "good"}, {"uri": 5}]}}
    async with connected(tmp_path, crooked(resources=listed)) as server:
        assert [one.name for one in await server.resources()] == ["good"]


@requirement("MCP-2")
@pytest.mark.parametrize(
    ("answer", "shown"),
    [
        ({"result": {"content": "plain"}}, "plain"),
        ({"result": {"content": None}}, "(no output)"),
        (
            {"result": {"content": [{"type": "text", "text": "words"}, {"type": "hologram"}]}},
            "words\n[a part of the kind `hologram`, which cannot be shown]",
        ),
        ({"result": {"content": [{"type": "text", "text": "half \ud800"}]}}, "half ?"),
        ({"result": {"content": [{"type": "text", "text": "one"}]}, "then": [{"id": 99, "result": {}}]}, "one"),
    ],
)
async def test_an_answer_that_can_be_understood_is_shown(tmp_path: Path, answer: Any, shown: str) -> None:
    async with working(tmp_path, call=answer) as (running, _):
        assert words(await run(running, "mcp__it__fine")) == shown


@requirement("MCP-2")
@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ({"result": None}, "Its answer is not a valid message of the protocol"),
        ({"error": "boom"}, "Its answer is not a valid message of the protocol"),
        ({"result": {}}, "it does not follow the protocol: `content`: Field required"),
        (
            '{"jsonrpc": "2.0", "id": ID, "result": ' + '{"a":' * 400 + "1" + "}" * 401,
            "is not a valid message of the protocol",
        ),
        ('{"jsonrpc": "2.0", "id": ID, "result": {"a": ' + "[" * 30_000 + "]" * 30_000 + "}}", "nested too deeply"),
        ({"error": {"code": 1, "message": "long\n" * 1000}}, "long long long"),
    ],
)
async def test_an_answer_that_cannot_be_understood_is_an_error_at_once(tmp_path: Path, answer: Any, said: str) -> None:
    async with working(tmp_path, call=answer) as (running, servers):
        outcome = await run(running, "mcp__it__fine")

        assert (outcome.status, said in words(outcome), len(words(outcome)) < 1000) == (Status.FAILED, True, True)
        assert servers.get("it").phase is Phase.UP


def _doubling(levels: int) -> dict[str, Any]:
    steps: dict[str, Any] = {"d0": {"type": "string"}}
    for level in range(1, levels):
        steps[f"d{level}"] = {"allOf": [{"$ref": f"#/$defs/d{level - 1}"}] * 2}
    return {"type": "object", "$defs": steps, "properties": {"text": {"$ref": f"#/$defs/d{levels - 1}"}}}


def _pattern(pattern: str) -> dict[str, Any]:
    return {"type": "object", "properties": {"text": {"type": "string", "pattern": pattern}}}


@requirement("MCP-2")
@pytest.mark.parametrize(
    ("schema", "shown"),
    [
        (_pattern("^(a+)+$"), "does not match the pattern '^(a+)+$'"),
        (_pattern("^(?=(a+)+$)"), "done"),
        (_pattern("((a{999}){999}){999}"), "done"),
        (_pattern("("), "done"),
        ({"type": "object", "patternProperties": {"^(t+)+x$": {}}, "additionalProperties": False}, "was unexpected"),
        ({"type": "object", "patternProperties": {"^(.*)*!$": {}}, "unevaluatedProperties": False}, "done"),
        (_doubling(40), "done"),
    ],
)
async def test_no_schema_of_a_server_holds_up_the_check_of_arguments(tmp_path: Path, schema: Any, shown: str) -> None:
    listed = tools({"name": "slow", "inputSchema": schema})
    async with working(tmp_path, tools=listed) as (running, _):
        async with asyncio.timeout(HANG):
            outcome = await run(running, "mcp__it__slow", {"text": "a" * 5_000 + "!"})

        assert shown in words(outcome)


PADDED = '{"jsonrpc": "2.0", "id": ID, "result": {"content": [{"type": "text", "text": "PAD"}]}}'


@requirement("BUD-2")
async def test_ten_megabytes_of_text_are_cut_and_saved(tmp_path: Path) -> None:
    async with working(tmp_path, call=PADDED, pad=10_000_000) as (running, _):
        outcome = await run(running, "mcp__it__fine")

    assert outcome.record is not None
    assert len(words(outcome)) <= 100_000
    assert Path(outcome.record.saved_to or "").stat().st_size == 10_000_000


@requirement("MCP-2")
async def test_an_answer_that_is_too_long_is_an_error_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "LONGEST_LINE", 1 << 20)
    async with connected(tmp_path, crooked(call=PADDED, pad=2 << 20), timeout=HANG) as server:
        with pytest.raises(ServerTrouble, match="The answer was discarded: it was longer than"):
            await text_of(server, "fine")


@requirement("MCP-2")
async def test_a_server_that_says_again_and_again_that_its_tools_changed_is_not_asked_each_time(tmp_path: Path) -> None:
    storm = {**tools(), "then": [{"method": "notifications/tools/list_changed"}] * 3}
    async with connected(tmp_path, crooked(tools=storm)) as server:
        await server.ready()
        link = server._link  # pyright: ignore[reportPrivateUsage]
        assert link is not None
        asked, listing = 0, link.listing

        async def counted() -> Any:
            nonlocal asked
            asked += 1
            return await listing()

        link.listing = counted
        async with asyncio.timeout(HANG):
            for _ in range(200):
                await text_of(server, "fine")
        await until(lambda: asked > 0)

        assert asked < 20


@requirement("MCP-2")
async def test_a_server_that_has_stopped_reading_is_started_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "TAKEN_WITHIN", 0.2)
    async with connected(tmp_path, crooked(deaf_after="prompts/list"), timeout=HANG) as server:
        with pytest.raises(ServerTrouble, match="it does not read its input"):
            await text_of(server, "fine", {"much": "x" * (1 << 20)})
        await until(lambda: server.phase is Phase.UP)


async def test_a_form_that_is_none_is_asked_as_far_as_it_goes(tmp_path: Path) -> None:
    class Person:
        asked: tuple[Question, ...] = ()

        async def ask(self, questions: tuple[Question, ...], /, *, asker: str) -> tuple[Answer, ...]:
            self.asked += questions
            return tuple(Answer(text="seven") for _ in questions)

    fields = {"a": {"type": "string", "enum": 5}, "b": {"type": "array", "items": {"anyOf": "none"}}}
    asking = {
        "id": "q",
        "method": "elicitation/create",
        "params": {"message": "Well?", "requestedSchema": {"type": "object", "properties": fields}},
    }
    person = Person()
    async with connected(tmp_path, crooked(tools={**tools(), "then": [asking]}), questioner=person) as server:
        await server.ready()
        await until(lambda: len(person.asked) == 2)
