"""The tools as an MCP client sees and calls them, in both eras of the protocol."""

from __future__ import annotations

import asyncio
import base64
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.types import AudioContent, EmbeddedResource, ImageContent

from ferrule.app.build import Settings, open_session
from ferrule.core.calls import ToolOutcome
from ferrule.core.content import Document, Image, Line, Text
from ferrule.core.context import ToolContext
from ferrule.core.effects import Effects
from ferrule.core.functions import tool
from ferrule.core.ports import Amendment, Proposal
from ferrule.permissions.modes import Mode
from ferrule.sdk.tools import create_sdk_mcp_server
from ferrule.sdk.tools import tool as sdk_tool
from ferrule.server.desk import Desk

from ..requirement import requirement
from .desks import ERAS, HANG, LEGACY, MODERN, Office, text


@dataclass(frozen=True)
class Point:
    x: int
    y: int


@tool(effects=Effects.of())
def origin() -> Point:
    """Where everything begins."""
    return Point(0, 0)


@requirement("MCP-5")
@pytest.mark.parametrize("era", ERAS)
async def test_the_list_has_every_tool_in_a_fixed_order_and_says_which_only_read(tmp_path: Path, era: str) -> None:
    async with Office(tmp_path).client(era) as client:
        first, second = await client.list_tools(), await client.list_tools()

    names = [each.name for each in first.tools]
    read_only = [each.name for each in first.tools if each.annotations and each.annotations.read_only_hint]
    assert names == sorted(names) == [each.name for each in second.tools]
    assert {"Bash", "Edit", "Read", "Write"} < set(names)
    assert read_only == ["Glob", "Grep", "Read"]


@requirement("MCP-5")
@pytest.mark.parametrize("era", ERAS)
async def test_a_call_is_answered_with_what_the_model_would_read(tmp_path: Path, era: str) -> None:
    (tmp_path / "a.txt").write_text("one\n")
    async with Office(tmp_path).client(era) as client:
        result = await client.call_tool("Read", {"file_path": "a.txt"})

    assert not result.is_error
    assert "one" in text(result)


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("Raed", {}, "No tool is named Raed. Did you mean Read"),
        ("Read", {"path": 1}, "`file_path` is missing"),
        ("Read", {"file_path": "missing.txt"}, "missing.txt"),
        ("Write", {"file_path": "/etc/ferrule-test", "content": ""}, "Write was not allowed"),
    ],
)
@pytest.mark.parametrize("era", ERAS)
async def test_what_is_wrong_with_a_call_is_told_as_its_result(
    tmp_path: Path, era: str, name: str, arguments: dict[str, object], said: str
) -> None:
    async with Office(tmp_path).client(era) as client:
        result = await client.call_tool(name, arguments)

    assert result.is_error
    assert said in text(result)


async def test_pictures_sounds_and_documents_keep_their_kind(tmp_path: Path) -> None:
    data = base64.b64encode(b"some bytes").decode()

    @tool(effects=Effects.of())
    def show() -> tuple[Image | Document, ...]:
        """Show three things."""
        return (Image("image/png", data), Document("audio/wav", data), Document("application/pdf", data, "a b.pdf"))

    async with Office(tmp_path, show).client() as client:
        picture, sound, document = (await client.call_tool("show", {})).content

    assert isinstance(picture, ImageContent)
    assert isinstance(sound, AudioContent)
    assert isinstance(document, EmbeddedResource)
    assert (picture.mime_type, sound.mime_type) == ("image/png", "audio/wav")
    assert document.resource.uri == "ferrule://documents/a%20b.pdf"


async def test_an_output_of_a_declared_type_comes_as_data_too(tmp_path: Path) -> None:
    async with Office(tmp_path, origin).client() as client:
        result = await client.call_tool("origin", {})

    assert result.structured_content == {"x": 0, "y": 0}


async def test_what_a_step_after_the_call_took_out_is_not_sent_as_data(tmp_path: Path) -> None:
    class Redacting:
        def after(self, proposal: Proposal, outcome: ToolOutcome, /) -> Amendment:
            return Amendment(content=(Text("redacted"),))

    settings = Settings(cwd=str(tmp_path), state_folder=tmp_path / "state")
    desk = Desk(lambda person: open_session(settings, tools=(origin,), person=person, after=(Redacting(),)))
    async with Client(desk.server(), mode=LEGACY) as client:
        result = await client.call_tool("origin", {})
    await desk.close()

    assert (text(result), result.structured_content) == ("redacted", None)


async def test_what_a_handler_of_the_sdk_structures_comes_with_its_schema(tmp_path: Path) -> None:
    @sdk_tool("where", "Say where.", {}, output_schema={"x": int})
    async def where(args: dict[str, Any]) -> dict[str, Any]:
        return {"structuredContent": {"x": 1}}

    (served,) = create_sdk_mcp_server("own", tools=[where])["instance"].tools
    async with Office(tmp_path, served, builtin=False, mode=Mode.BYPASS).client() as client:
        (listed,) = (await client.list_tools()).tools
        result = await client.call_tool("where", {})

    assert listed.output_schema is not None
    assert listed.output_schema["properties"] == {"x": {"type": "integer"}}
    assert (result.structured_content, text(result)) == ({"x": 1}, '{"x": 1}')


@requirement("MCP-5")
@pytest.mark.parametrize("era", ERAS)
async def test_the_progress_of_a_command_is_its_last_line(tmp_path: Path, era: str) -> None:
    told: list[str | None] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        told.append(message)
        if message == "first":
            (tmp_path / "go-on").touch()

    command = "echo first; until test -e go-on; do sleep 0.05; done; echo second"
    async with Office(tmp_path, mode=Mode.BYPASS).client(era) as client:
        result = await client.call_tool("Bash", {"command": command}, progress_callback=hear)

    assert told[0] == "first"
    assert text(result) == "first\nsecond"


@pytest.mark.parametrize("era", ERAS)
async def test_progress_is_told_before_the_result(tmp_path: Path, era: str) -> None:
    @tool(effects=Effects.of())
    async def count(ctx: ToolContext) -> str:
        """Count to three."""
        for number in (1, 2, 3):
            ctx.report(Line(f"at {number}"))
        return "done"

    told: list[tuple[float, str | None]] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        told.append((progress, message))

    async with Office(tmp_path, count).client(era) as client:
        await client.call_tool("count", {}, progress_callback=hear)

    assert told == [(1, "at 1"), (2, "at 2"), (3, "at 3")]


@requirement("MCP-5")
@pytest.mark.parametrize("era", ERAS)
async def test_a_client_that_gives_up_ends_its_call(tmp_path: Path, era: str) -> None:
    started, ended = asyncio.Event(), asyncio.Event()

    @tool(effects=Effects.of())
    async def wait() -> str:
        """Wait for ever."""
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return ""

    async with Office(tmp_path, wait).client(era) as client:
        call = asyncio.create_task(client.call_tool("wait", {}))
        await asyncio.wait_for(started.wait(), HANG)
        call.cancel()
        await asyncio.wait_for(ended.wait(), HANG)


async def test_each_connection_has_a_session_of_its_own_and_closes_it(tmp_path: Path) -> None:
    office = Office(tmp_path)
    async with office.client() as first, office.client() as second:
        await first.list_tools()
        await second.list_tools()
        await first.list_tools()

        assert office.desk.open_clients == 2
    assert len(office.sessions) == 2
    assert office.desk.open_clients == 0


async def test_tools_of_ones_own_can_be_served_alone(tmp_path: Path) -> None:
    async with Office(tmp_path, origin, builtin=False, mode=Mode.BYPASS).client() as client:
        listed = await client.list_tools()

    assert [each.name for each in listed.tools] == ["origin"]


async def test_a_caller_that_is_slow_to_hear_holds_up_nobody_else(tmp_path: Path) -> None:
    @tool(effects=Effects.of())
    async def reports(ctx: ToolContext) -> str:
        """Say how far it is."""
        ctx.report(Line("begun"))
        return "done"

    hears, may_go_on = asyncio.Event(), asyncio.Event()

    async def slow(progress: float, total: float | None, message: str | None) -> None:
        hears.set()
        await may_go_on.wait()

    async with Office(tmp_path, reports, origin).client(MODERN) as client, asyncio.timeout(HANG):
        first = asyncio.create_task(client.call_tool("reports", {}, progress_callback=slow))
        await hears.wait()
        second = await client.call_tool("origin", {})
        assert not first.done()
        may_go_on.set()

        assert text(await first) == "done"
        assert not second.is_error
