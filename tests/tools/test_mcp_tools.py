"""ListMcpResources, ReadMcpResource and CallMcpTool."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import ClassVar

import pytest

from ferrule.app.build import Settings, open_session
from ferrule.core.calls import Status
from ferrule.core.content import Image, Text
from ferrule.core.effects import Effects, ReachesHost, ReadsPath, ReadsState
from ferrule.engine.session import Session
from ferrule.mcp.config import Stdio, in_process
from ferrule.mcp.listing import ServerListing, ToolInfo
from ferrule.mcp.server_context import Around
from ferrule.mcp.servers import McpServers
from ferrule.permissions.modes import Mode
from ferrule.testing import bare_context
from ferrule.testing.tool_contract import ToolContract
from ferrule.tools.call_mcp_tool import CallMcpTool
from ferrule.tools.list_mcp_resources import ListMcpResources
from ferrule.tools.read_mcp_resource import ReadMcpResource
from tests.mcp.running import config, raw, run, session, words
from tests.requirement import requirement
from tests.tools.test_bash import A_FEW_STEPS


@requirement("MCP-4")
async def test_resources_are_listed_by_server_and_anew_each_time(tmp_path: Path) -> None:
    dead = config(Stdio("/nonexistent"), "dead")
    async with session(tmp_path, config(raw(), "one"), config(raw(), "two"), dead) as (running, _):
        every = words(await run(running, "ListMcpResources"))
        once = words(await run(running, "ListMcpResources", {"server": "one"}))
        old_name = words(await run(running, "ListMcpResourcesTool", {"server": "one"}))
        missing = await run(running, "ListMcpResources", {"server": "three"})
        down = await run(running, "ListMcpResources", {"server": "dead"})

    assert every.count("note://1 (text/plain)") == 2
    assert "\n\ntwo:\n" in every
    assert "dead: The server `dead` is down" in every
    assert "note://{number} (template): a note by number" in once
    assert ("look://2" in once, "look://3" in old_name) == (True, True)
    assert words(missing) == "The server `three` was not found. Available: one, two, dead."
    assert (missing.status, down.status) == (Status.FAILED, Status.FAILED)


@requirement("MCP-4", "BUD-5")
async def test_a_resource_is_read_and_why_not_is_told_apart(tmp_path: Path) -> None:
    async with session(tmp_path, config(raw())) as (running, _):
        text = await run(running, "ReadMcpResource", {"server": "raw", "uri": "note://1"})
        picture = await run(running, "ReadMcpResourceTool", {"server": "raw", "uri": "picture://1"})
        missing = await run(running, "ReadMcpResource", {"server": "raw", "uri": "note://9"})
        locked = await run(running, "ReadMcpResource", {"server": "raw", "uri": "secret://1"})

    assert text.content == (Text("[note://1]\na note"),)
    assert isinstance(picture.content[0], Image)
    assert words(missing).startswith("note://9 was not found. List what there is with ListMcpResources.")
    assert words(locked).startswith("secret://1 may not be read: the server does not allow it.")


@requirement("MCP-4")
@pytest.mark.parametrize(
    ("uri", "effects"),
    [
        ("note://1", Effects.of(ReadsState("mcp:raw"))),
        ("file:///etc/../etc/pass%77d", Effects.of(ReadsState("mcp:raw"), ReadsPath("/etc/passwd"))),
        ("https://a.test/x", Effects.of(ReadsState("mcp:raw"), ReachesHost("a.test", sends=False))),
        ("file:relative", Effects()),
        ("http://[broken", Effects()),
    ],
)
def test_a_file_is_a_file_through_this_door_too(tmp_path: Path, uri: str, effects: Effects) -> None:
    tool = ReadMcpResource()

    assert tool.effects(tool.parse({"server": "raw", "uri": uri}), bare_context(tmp_path)) == effects


@requirement("MCP-4")
async def test_any_tool_can_be_called_by_server_and_name_or_by_a_name_that_is_unique(tmp_path: Path) -> None:
    async with session(tmp_path, config(raw(), "one")) as (running, servers):
        await servers.wait_until_known(60)
        alone = await run(running, "CallMcpTool", {"tool": "echo", "arguments": {"text": "a"}})
        old_name = await run(running, "McpInput", {"server": "one", "tool_name": "echo", "input": {"text": "b"}})
        near = await run(running, "CallMcpTool", {"tool": "ecko"})
        wrong = await run(running, "CallMcpTool", {"tool": "echo", "arguments": {}})
    async with session(tmp_path, config(raw(), "one"), config(raw(), "two")) as (running, servers):
        await servers.wait_until_known(60)
        several = await run(running, "CallMcpTool", {"tool": "echo", "arguments": {"text": "c"}})

    assert (words(alone), words(old_name)) == ("a", "b")
    assert words(near) == "The servers have no tool `ecko`. Did you mean echo? The servers are: one."
    assert "'text' is a required property" in words(wrong)
    assert words(several) == "Several servers have a tool `echo`: one, two. Say which in `server`."


@requirement("MCP-4")
async def test_a_call_by_name_needs_the_permission_that_the_tool_needs(tmp_path: Path) -> None:
    async with session(tmp_path, config(raw()), mode=Mode.DEFAULT) as (running, servers):
        await servers.wait_until_known(60)
        outcome = await run(running, "CallMcpTool", {"tool": "write"})

    assert (outcome.status, "mcp__raw__write was not allowed" in words(outcome)) == (Status.DENIED, True)


async def test_without_servers_these_tools_are_off(tmp_path: Path) -> None:
    async with session(tmp_path) as (running, _):
        assert not {"CallMcpTool", "ListMcpResources", "ReadMcpResource"} & {
            tool.name for tool in running.registry.pool
        }
        assert "no MCP server is configured" in words(await run(running, "ListMcpResources"))


KNOWN = ServerListing((ToolInfo(name="add", description="Add two numbers.", schema={"type": "object"}),))
"""What the last session has left to know: the tool is there before the server is up."""


class ServedContract(ToolContract):
    """With a server that runs in the same process."""

    steps = A_FEW_STEPS
    tool: ClassVar[type[ListMcpResources | ReadMcpResource | CallMcpTool]]

    def make(self) -> ListMcpResources | ReadMcpResource | CallMcpTool:
        from tests.mcp.servers.packaged import make

        folder = Path(tempfile.mkdtemp(prefix="ferrule-test-"))
        self.servers = McpServers(in_process(mine=make()), Around(state_folder=folder))
        return self.tool(self.servers)

    def _session(self, folder: Path) -> Session:
        self.make()
        self.servers.get("mine").listing = KNOWN
        state = folder.parent / f"{folder.name}-state"
        return open_session(Settings(cwd=str(folder), mode=Mode.BYPASS, state_folder=state), mcp=self.servers)

    async def prepare(self) -> None:
        await self.servers.get("mine").ready()


class TestListMcpResourcesContract(ServedContract):
    samples = ({}, {"server": "mine"})
    tool = ListMcpResources


class TestReadMcpResourceContract(ServedContract):
    samples = ({"server": "mine", "uri": "note://today"},)
    tool = ReadMcpResource


class TestCallMcpToolContract(ServedContract):
    samples = ({"tool": "add", "arguments": {"a": 1, "b": 2}},)
    tool = CallMcpTool
