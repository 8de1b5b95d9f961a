"""Folders that bring agents, skills, commands, hooks and servers to a conversation."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ferrule.core.calls import ToolCall
from ferrule.core.content import plain_text
from ferrule.core.model import UserTurn
from ferrule.providers.scripted import says
from ferrule.sdk.client import query
from ferrule.sdk.errors import CannotOpen
from ferrule.sdk.messages import SystemMessage
from ferrule.settings.plugins import read_plugin
from ferrule.testing import RecordingModel

from .scenes import of, options, read, results, texts


@pytest.fixture
def plugin(tmp_path: Path) -> Path:
    folder = tmp_path / "some folder"
    files = {
        ".claude-plugin/plugin.json": '{"name": "demo", "version": "1.0.0"}',
        "commands/greet.md": "# Greet\n\nGreet $ARGUMENTS warmly.",
        "skills/tidy/SKILL.md": "---\ndescription: Tidies up.\n---\nTidy up.",
        "agents/critic.md": "---\nname: critic\ndescription: Criticises.\ntools: Read\n---\nYou criticise.",
        "hooks/hooks.json": json.dumps(
            {
                "description": "Nothing is removed.",
                "hooks": {
                    "PreToolUse": [
                        {
                            "matcher": "Bash",
                            "hooks": [{"type": "command", "command": 'sh "${CLAUDE_PLUGIN_ROOT}/hooks/no.sh"'}],
                        }
                    ]
                },
            }
        ),
        "hooks/no.sh": "echo 'not here' >&2; exit 2",
    }
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def _options(folder: Path, *messages: Any, **more: Any) -> Any:
    return options(folder, *messages, **{"allow": ["Bash", "Skill"], **more})


async def test_a_plugin_is_introduced_with_what_it_brings(tmp_path: Path, plugin: Path) -> None:
    messages = await read(query(prompt="x", options=_options(tmp_path, says("."), plugins=[plugin])))

    data = of(SystemMessage, messages)[0].data
    assert data["plugins"] == [{"name": "demo", "path": str(plugin)}]
    assert {"demo:greet", "demo:tidy"} <= set(data["slash_commands"])
    assert "demo:critic" in data["agents"]


async def test_a_command_of_a_plugin_can_be_asked_for(tmp_path: Path, plugin: Path) -> None:
    model = RecordingModel(says("Hello!"))

    await read(query(prompt="/demo:greet Ann", options=_options(tmp_path, model=model, plugins=[plugin])))

    (asked,) = model.requests[0][1]
    assert isinstance(asked, UserTurn)
    assert "Greet Ann warmly." in plain_text(asked.content)


async def test_an_agent_of_a_plugin_can_be_started(tmp_path: Path, plugin: Path) -> None:
    call = ToolCall("1", "Agent", {"description": "d", "prompt": "p", "subagent_type": "demo:critic"})
    model = RecordingModel(says("", call), says("Bad."), says("It is bad."))

    messages = await read(query(prompt="x", options=_options(tmp_path, model=model, plugins=[plugin])))

    assert model.requests[1][0].system.startswith("You criticise.")
    assert texts(messages)[-1] == "It is bad."


async def test_a_hook_of_a_plugin_refuses(tmp_path: Path, plugin: Path) -> None:
    call = ToolCall("1", "Bash", {"command": "touch gone"})

    messages = await read(query(prompt="x", options=_options(tmp_path, says("", call), says("."), plugins=[plugin])))

    assert "not here" in str(results(messages)[0].content)
    assert not (tmp_path / "gone").exists()


def test_a_server_of_a_plugin_is_named_after_both_and_knows_its_folder(plugin: Path) -> None:
    (plugin / ".mcp.json").write_text('{"tools": {"command": "${CLAUDE_PLUGIN_ROOT}/server"}}')

    (servers,) = read_plugin(plugin).load_servers()

    assert servers.value == {"mcpServers": {"plugin_demo_tools": {"command": f"{plugin}/server"}}}


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        (".claude-plugin/plugin.json", "{", "cannot be read"),
        (".claude-plugin/plugin.json", "[]", "not a JSON object"),
        (".claude-plugin/plugin.json", '{"name": "../x"}', "not a valid name"),
        ("hooks/hooks.json", '{"hooks": {"PreToolUse": [{"hooks": [{"type": "command"}]}]}}', "command"),
    ],
)
async def test_a_plugin_that_is_broken_is_refused(
    tmp_path: Path, plugin: Path, name: str, text: str, words: str
) -> None:
    (plugin / name).write_text(text)

    with pytest.raises(CannotOpen, match=words):
        await read(query(prompt="x", options=_options(tmp_path, says("."), plugins=[plugin])))


async def test_one_broken_agent_leaves_the_rest_of_a_plugin(tmp_path: Path, plugin: Path) -> None:
    (plugin / "agents/bad.md").write_text("nothing")

    messages = await read(query(prompt="x", options=_options(tmp_path, says("."), plugins=[plugin])))

    assert "demo:critic" in of(SystemMessage, messages)[0].data["agents"]


async def test_a_plugin_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CannotOpen, match="not a directory"):
        await read(query(prompt="x", options=_options(tmp_path, says("."), plugins=[tmp_path / "gone"])))


async def test_skills_can_be_chosen_by_name(tmp_path: Path, plugin: Path) -> None:
    chosen = _options(tmp_path, says("."), plugins=[plugin], skills=["demo:tidy"])

    messages = await read(query(prompt="x", options=chosen))

    assert of(SystemMessage, messages)[0].data["skills"] == ["demo:tidy"]
