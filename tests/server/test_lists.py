"""Resources, prompts, and the word that a list has changed."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.shared.exceptions import MCPDeprecationWarning, MCPError
from mcp.shared.subscriptions import ToolsListChanged
from mcp.types import (
    Prompt,
    PromptArgument,
    PromptListChangedNotification,
    PromptMessage,
    PromptReference,
    Resource,
    ResourceListChangedNotification,
    ResourceTemplate,
    ResourceUpdatedNotification,
    TextContent,
    TextResourceContents,
    ToolListChangedNotification,
)

from ferrule.app.build import Settings, open_session
from ferrule.core.effects import Change, Effects, WritesPath
from ferrule.core.events import ListChanged
from ferrule.core.functions import tool
from ferrule.permissions.modes import Mode
from ferrule.server.caller import Caller
from ferrule.server.skills import SkillPrompts
from ferrule.server.sources import Contents, NoSuchPrompt, NoSuchResource
from ferrule.settings.definition_files import DefinitionFiles
from ferrule.settings.levels import surroundings

from ..requirement import requirement
from .desks import ERAS, HANG, MODERN, Office, text

SKILL = """---
description: Greet somebody.
---
Say hello to $ARGUMENTS.
"""


class Heard:
    """Notifications as they arrive."""

    def __init__(self) -> None:
        self._messages: asyncio.Queue[Any] = asyncio.Queue()

    async def __call__(self, message: Any) -> None:
        self._messages.put_nowait(message)

    async def until(self, kind: type) -> Any:
        async with asyncio.timeout(HANG):
            while not isinstance(message := await self._messages.get(), kind):
                pass
        return message


class OneSkill:
    def prompts(self) -> Sequence[Prompt]:
        asked = PromptArgument(name="what", description="What to review.", required=True)
        return (Prompt(name="review", description="Review a change.", arguments=[asked]),)

    async def prompt(self, name: str, arguments: Mapping[str, str], caller: Caller, /) -> Sequence[PromptMessage]:
        if name != "review":
            raise NoSuchPrompt(f"There is no skill named {name}.")
        return (PromptMessage(role="user", content=TextContent(text=f"Review {arguments['what']}.")),)


@tool(effects=Effects.of())
def long() -> str:
    """Say a great deal."""
    return "word " * 20_000


async def _read(client: Client, uri: str) -> str:
    (contents,) = (await client.read_resource(uri)).contents
    assert isinstance(contents, TextResourceContents)
    return contents.text


@requirement("MCP-5")
@pytest.mark.parametrize("era", ERAS)
async def test_a_result_that_was_saved_can_be_read_whole(tmp_path: Path, era: str) -> None:
    async with Office(tmp_path, long).client(era) as client:
        result = await client.call_tool("long", {})
        (saved,) = (await client.list_resources()).resources

        assert len(text(result)) < 60_000
        assert await _read(client, saved.uri) == "word " * 20_000


@requirement("MCP-5")
@pytest.mark.parametrize("era", ERAS)
async def test_a_file_that_a_call_changed_can_be_read_and_another_cannot(tmp_path: Path, era: str) -> None:
    (tmp_path / "secret.txt").write_text("secret")
    async with Office(tmp_path, mode=Mode.BYPASS).client(era) as client:
        await client.call_tool("Write", {"file_path": "a b.txt", "content": "new"})
        (changed,) = (await client.list_resources()).resources

        assert (changed.name, await _read(client, changed.uri)) == ("a b.txt", "new")
        for other in ((tmp_path / "secret.txt").as_uri(), "file://host/etc/passwd", "other:x", "file:///%zz"):
            with pytest.raises(MCPError, match="was not found"):
                await client.read_resource(other)


async def test_a_changed_file_that_became_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("secret")
    async with Office(tmp_path, mode=Mode.BYPASS).client() as client:
        await client.call_tool("Write", {"file_path": "a.txt", "content": "new"})
        (tmp_path / "a.txt").unlink()
        (tmp_path / "a.txt").symlink_to("secret.txt")

        with pytest.raises(MCPError, match="cannot be read"):
            await client.read_resource((tmp_path / "a.txt").as_uri())


@requirement("MCP-5")
async def test_a_connection_hears_of_every_list_that_changed(tmp_path: Path) -> None:
    heard, office = Heard(), Office(tmp_path, mode=Mode.BYPASS)
    async with office.client(message_handler=heard) as client:
        await client.list_tools()
        (session,) = office.sessions
        session.registry.add(long)
        await heard.until(ToolListChangedNotification)
        session.pipeline.emit(ListChanged("prompts", ("review",)))
        await heard.until(PromptListChangedNotification)
        await client.call_tool("Write", {"file_path": "a.txt", "content": "new"})
        await heard.until(ResourceListChangedNotification)

        assert "long" in [each.name for each in (await client.list_tools()).tools]


@requirement("MCP-5")
async def test_who_listens_without_a_connection_hears_of_it_too(tmp_path: Path) -> None:
    office = Office(tmp_path, mode=Mode.BYPASS)
    async with office.client(MODERN) as client:
        await client.list_tools()
        async with client.listen(tools_list_changed=True) as changes, asyncio.timeout(HANG):
            office.sessions[0].registry.add(long)

            assert await anext(changes) == ToolsListChanged()


async def test_who_follows_a_resource_hears_that_it_changed(tmp_path: Path) -> None:
    heard, write = Heard(), {"file_path": "a.txt", "content": "new"}
    async with Office(tmp_path, mode=Mode.BYPASS).client(message_handler=heard) as client:
        await client.call_tool("Write", write)
        with pytest.warns(MCPDeprecationWarning):  # of the revision that follows
            await client.subscribe_resource((tmp_path / "a.txt").as_uri())
        await client.call_tool("Edit", {"file_path": "a.txt", "old_string": "new", "new_string": "newer"})

        updated = await heard.until(ResourceUpdatedNotification)
        assert updated.params.uri == (tmp_path / "a.txt").as_uri()


async def test_a_file_that_is_gone_or_has_no_name_in_unicode_does_not_spoil_the_list(tmp_path: Path) -> None:
    gone, folder, odd = (tmp_path / name for name in ("gone.txt", "folder.txt", os.fsdecode(b"\xff.txt")))

    @tool(effects=Effects.of(*(WritesPath(str(path), Change.CREATES) for path in (gone, folder, odd))))
    def leave() -> str:
        """Leave three files."""
        for path in (gone, folder, odd):
            path.write_text("text")
        return ""

    async with Office(tmp_path, leave, mode=Mode.BYPASS).client() as client:
        await client.call_tool("leave", {})
        gone.unlink()
        folder.unlink()
        folder.mkdir()
        (listed,) = (await client.list_resources()).resources

        assert listed.uri.endswith("%FF.txt")
        assert await _read(client, listed.uri) == "text"


class Fixed:
    """Resources that are always there."""

    def resources(self) -> Sequence[Resource]:
        return (Resource(name="motto", uri="ours://motto", mime_type="text/plain"),)

    def templates(self) -> Sequence[ResourceTemplate]:
        return (ResourceTemplate(name="square", uri_template="ours://square/{number}"),)

    async def read(self, uri: str, caller: Caller, /) -> Sequence[Contents]:
        if not uri.startswith("ours://"):
            raise NoSuchResource(f"There is no resource {uri}.")
        return (TextResourceContents(uri=uri, text="fail closed"),)


@pytest.mark.parametrize("era", ERAS)
async def test_resources_of_ones_own_stand_beside_what_calls_leave(tmp_path: Path, era: str) -> None:
    async with Office(tmp_path, resources=Fixed(), mode=Mode.BYPASS).client(era) as client:
        await client.call_tool("Write", {"file_path": "a.txt", "content": "new"})
        names = [each.name for each in (await client.list_resources()).resources]
        (template,) = (await client.list_resource_templates()).resource_templates

        assert names == ["motto", "a.txt"]
        assert template.uri_template == "ours://square/{number}"
        assert await _read(client, "ours://motto") == "fail closed"
        with pytest.raises(MCPError, match="There is no resource other:x"):
            await client.read_resource("other:x")


@requirement("MCP-5")
async def test_a_skill_that_comes_while_a_client_is_there_is_told_and_offered(tmp_path: Path) -> None:
    settings = Settings(cwd=str(tmp_path), state_folder=tmp_path / "state")
    pages = DefinitionFiles(surroundings(str(tmp_path), {"HOME": str(tmp_path / "home")}))
    prompts = SkillPrompts(pages, lambda: open_session(settings))
    path = tmp_path / ".claude/skills/greet/SKILL.md"
    heard = Heard()
    async with Office(tmp_path, prompts=prompts, mode=Mode.BYPASS).client(message_handler=heard) as client:
        before = (await client.list_prompts()).prompts
        path.parent.mkdir(parents=True)
        path.write_text(SKILL)
        await client.call_tool("Bash", {"command": "touch anything"})
        await heard.until(PromptListChangedNotification)
        (listed,) = (await client.list_prompts()).prompts
        (message,) = (await client.get_prompt("greet", {"arguments": "Ada"})).messages

    assert before == []
    assert (listed.name, listed.description) == ("greet", "Greet somebody.")
    assert isinstance(message.content, TextContent)
    assert "Say hello to Ada." in message.content.text


class Cities(OneSkill):
    async def completions(self, prompt: str, argument: str, begun: str, /) -> Sequence[str]:
        return [f"{begun}{number}" for number in range(150)] if (prompt, argument) == ("review", "what") else ()


@pytest.mark.parametrize("era", ERAS)
async def test_a_source_that_knows_arguments_completes_them(tmp_path: Path, era: str) -> None:
    what = {"name": "what", "value": "a"}
    async with Office(tmp_path, prompts=Cities()).client(era) as client:
        found = (await client.complete(PromptReference(name="review"), what)).completion

        assert (found.values[:2], len(found.values), found.total, found.has_more) == (["a0", "a1"], 100, 150, True)
    async with Office(tmp_path, prompts=OneSkill()).client(era) as client:
        with pytest.raises(MCPError, match="Method not found"):
            await client.complete(PromptReference(name="review"), what)


@requirement("MCP-5")
@pytest.mark.parametrize("era", ERAS)
async def test_prompts_come_from_whoever_has_them(tmp_path: Path, era: str) -> None:
    async with Office(tmp_path, prompts=OneSkill()).client(era) as client:
        (listed,) = (await client.list_prompts()).prompts
        (message,) = (await client.get_prompt("review", {"what": "it"})).messages

        assert (listed.name, listed.arguments and listed.arguments[0].required) == ("review", True)
        assert message.content == TextContent(text="Review it.")
        with pytest.raises(MCPError, match="no skill named nope"):
            await client.get_prompt("nope", {})
