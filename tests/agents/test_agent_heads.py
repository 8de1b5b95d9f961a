"""What the head of an agent's file asks for: effort, servers, a memory, a worktree; by what the model's server gets."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ferrule.agents.agent_catalog import Agents
from ferrule.agents.agent_kinds import AgentKind
from ferrule.app.build import Settings
from ferrule.app.settings_interpretation import load_servers_of_agent
from ferrule.core.calls import ToolCall
from ferrule.permissions.modes import Mode
from ferrule.providers.scripted import says
from ferrule.settings.layers import merge_entries
from ferrule.settings.levels import Level, SettingsPath
from ferrule.settings.settings_entries import entries_of
from ferrule.settings.settings_files import SettingsKind
from ferrule.settings.settings_loading import load_text
from tests.agents.cast import Cast, hire, opened, played
from tests.agents.test_agent_files import pages, put
from tests.app.talking import talk
from tests.app.test_mentions import denying
from tests.mcp.running import RAW
from tests.requirement import requirement

HEAD = "---\nname: worker\ndescription: Works.\n{}\n---\nYou work.\n"


def kind(**more: Any) -> AgentKind:
    return AgentKind(name="worker", description="Works.", prompt="You work.", **more)


def layered(content: dict[str, Any]) -> Any:
    loaded = load_text(SettingsPath(Level.MANAGED, "/etc/x.json", SettingsKind.SETTINGS), json.dumps(content))
    return merge_entries(entries_of(loaded))


async def of_agent(folder: Path, one: AgentKind, **settings: Any) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The agent's first request, and all of them."""
    call = {"name": "Agent", "input": {"description": "work", "prompt": "Do it.", "subagent_type": "worker"}}
    turns = ({"calls": [call]}, {"text": "Did it."}, {"text": "Done."})
    async with talk(folder, *turns, mode=Mode.BYPASS, agents=(one,), **settings) as at:
        await at.ask("Go")
        return at.server.bodies[1], at.server.bodies


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "project").mkdir()
    return tmp_path / "project"


@requirement("TASK-1")
async def test_an_agent_works_with_its_own_effort(folder: Path) -> None:
    body, all_of_them = await of_agent(folder, kind(effort="max"))

    assert body["output_config"] == {"effort": "max"}
    assert "output_config" not in all_of_them[0]


@requirement("TASK-1")
def test_a_head_is_read_whole_and_what_has_no_effect_is_said(tmp_path: Path) -> None:
    text = (
        "effort: high\nmemory: user\nisolation: worktree\ninitialPrompt: Begin.\ncolor: blue\nversion: 3\n"
        "mcpServers:\n  - github\n  - own:\n      command: serve\n      args: [x]"
    )
    put(tmp_path / "home/.claude/agents/worker.md", HEAD.format(text))

    found = Agents(pages(tmp_path)).all["worker"]

    assert (found.effort, found.memory, found.isolated) == ("high", "user", True)
    assert (found.servers, found.own_servers) == (("github", "own"), {"own": {"command": "serve", "args": ["x"]}})
    assert found.initial_prompt == "Begin."
    said = "\n".join(found.warnings)
    assert "`version` is not used" in said
    assert "color" not in said


@requirement("TASK-1")
def test_values_that_mean_nothing_are_named(tmp_path: Path) -> None:
    put(tmp_path / "home/.claude/agents/bad.md", HEAD.format("effort: huge\nmemory: cloud\nisolation: jail"))

    warnings = Agents(pages(tmp_path)).all["worker"].warnings

    assert [warning.partition(": ")[2].partition("`")[2].partition("`")[0] for warning in warnings] == [
        "effort: huge",
        "memory: cloud",
        "isolation: jail",
    ]


@requirement("TASK-1", "SET-4")
def test_a_file_of_a_folder_nobody_trusts_brings_neither_servers_nor_a_memory(tmp_path: Path) -> None:
    text = HEAD.format("memory: user\nmcpServers:\n  own:\n    command: serve")
    put(tmp_path / "project/.claude/agents/worker.md", text)

    waiting = Agents(pages(tmp_path)).all["worker"]
    trusted = Agents(pages(tmp_path, trusted=True)).all["worker"]

    assert (waiting.memory, waiting.own_servers) == ("", {})
    assert "ferrule trust" in "\n".join(waiting.warnings)
    assert (trusted.memory, set(trusted.own_servers)) == ("user", {"own"})


@requirement("TASK-1", "MCP-1")
async def test_an_agent_has_the_servers_that_its_file_defines_and_nobody_else_has_them(folder: Path) -> None:
    own = {"lab": {"command": sys.executable, "args": ["-S", str(RAW)]}}

    def configured(one: AgentKind) -> Any:
        return load_servers_of_agent(one, layered({}), str(folder))

    body, all_of_them = await of_agent(
        folder, kind(tools=("Read",), servers=("lab",), own_servers=own), servers_of_agent=configured
    )

    named = [[tool["name"] for tool in one["tools"]] for one in (body, all_of_them[2])]
    assert "Read" in named[0]
    assert any(name.startswith("mcp__lab__") for name in named[0])
    assert "Bash" not in named[0]
    assert not any(name.startswith("mcp__lab__") for name in named[1])


@requirement("MCP-1")
@pytest.mark.parametrize(
    "limits",
    [{"deniedMcpServers": [{"serverName": "lab"}]}, {"allowedMcpServers": []}, {"allowManagedMcpServersOnly": True}],
)
def test_what_settings_say_of_servers_holds_for_those_of_agents(folder: Path, limits: dict[str, Any]) -> None:
    one = kind(own_servers={"lab": {"command": "serve"}})

    assert load_servers_of_agent(one, layered({}), str(folder))
    assert load_servers_of_agent(one, layered(limits), str(folder)) == ()


@requirement("TASK-1")
async def test_an_agent_reads_what_its_kind_has_noted(folder: Path) -> None:
    put(folder / ".claude/agent-memory/worker/MEMORY.md", "Tests are slow.\n" + "line\n" * 300)

    body, _ = await of_agent(folder, kind(memory="project"))

    system = body["system"][0]["text"]
    assert str(folder / ".claude/agent-memory/worker") in system
    assert "Tests are slow." in system
    assert system.count("\nline") == 199
    assert "[There is more; read the file.]" in system


@requirement("TASK-1", "HELD-5")
async def test_notes_that_a_rule_denies_are_left_out(folder: Path) -> None:
    put(folder / ".claude/agent-memory/worker/MEMORY.md", "Tests are slow.\n")

    body, _ = await of_agent(folder, kind(memory="project"), rules=denying("Read(.claude/**)"))

    assert "Tests are slow." not in body["system"][0]["text"]
    assert "[left out: " in body["system"][0]["text"]


def git(folder: Path, *words: str) -> str:
    own = ("-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false")
    return subprocess.run(["git", *own, *words], cwd=folder, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def repository(folder: Path) -> Path:
    git(folder, "init", "-q")
    (folder / "a.txt").write_text("committed\n")
    git(folder, "add", "a.txt")
    git(folder, "commit", "-qm", "first")
    (folder / "a.txt").write_text("not committed\n")
    return folder


def working(*calls: Any) -> Cast:
    return Cast(
        main=[says("", hire("1", "work", subagent_type="worker")), says("Done.")], You=[*calls, says("Did it.")]
    )


@requirement("TASK-1")
async def test_an_isolated_agent_works_on_the_last_commit_and_what_it_did_stays(repository: Path) -> None:
    write = ToolCall("w", "Write", {"file_path": "new.txt", "content": "x"})
    look = ToolCall("l", "Bash", {"command": "cat a.txt"})
    hook = put(repository / ".git/hooks/post-checkout", f"#!/bin/sh\ntouch {repository}/ran\n")
    hook.chmod(0o755)
    session = opened(repository, settings={"agents": (kind(isolated=True),)})
    model = working(says("", look, write))

    async with session:
        (said,) = await played(session, model)

    (path,) = (repository / ".claude/worktrees").iterdir()
    assert f"[Its work is in the worktree {path}, on the branch worktree-{path.name}.]" in said
    assert (path / "new.txt").read_text() == "x"
    assert not (repository / "new.txt").exists()
    assert (repository / "a.txt").read_text() == "not committed\n"
    assert not (repository / "ran").exists()
    seen = [str(turn) for turn in model.requests[1][1].history]
    assert any("committed" in turn and "ResultTurn" in turn for turn in seen)
    assert not any("not committed\n" in turn for turn in seen)


@requirement("TASK-1")
async def test_a_worktree_in_which_nothing_was_done_is_removed(repository: Path) -> None:
    session = opened(repository, settings={"agents": (kind(isolated=True),)})

    async with session:
        (said,) = await played(session, working())

    assert "worktree" not in said
    assert list((repository / ".claude/worktrees").iterdir()) == []
    assert git(repository, "branch", "--list", "worktree-*") == ""


@requirement("TASK-1")
async def test_a_worktree_with_an_ignored_file_stays(repository: Path) -> None:
    (repository / ".git/info/exclude").write_text("*.log\n")
    session = opened(repository, settings={"agents": (kind(isolated=True),)})
    write = ToolCall("w", "Write", {"file_path": "x.log", "content": "x"})

    async with session:
        await played(session, working(says("", write)))

    assert len(list((repository / ".claude/worktrees").glob("*/x.log"))) == 1


@requirement("TASK-1")
async def test_without_a_repository_an_isolated_agent_is_not_started(folder: Path) -> None:
    session = opened(folder, settings={"agents": (kind(isolated=True),)})
    model = working()

    async with session:
        (said,) = await played(session, model)

    assert f"{folder} is not in a git repository" in said
    assert len(model.requests) == 2


def test_settings_without_servers_of_agents_start_none() -> None:
    assert Settings().servers_of_agent is None
