"""`/name args` as a prompt: skills, prompts of servers, and what is only a word with a slash."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from ferrule import Settings, ToolCall
from ferrule.app.session_opening import open_conversation
from ferrule.app.slash_commands import SlashCommands
from ferrule.core.content import Text
from ferrule.core.model import ModelFacts, ResultTurn
from ferrule.engine.session import Session
from ferrule.engine.transcript_entries import kind_of, user_turn
from ferrule.permissions.modes import Mode
from ferrule.providers.scripted import ScriptedModel, says
from ferrule.skills.skill_catalog import Skills
from tests.agents.cast import opened
from tests.agents.test_agent_files import pages, put
from tests.cli.prompting import ask, lines_of
from tests.engine.conversing import sums
from tests.mcp.running import RAW
from tests.requirement import requirement
from tests.server.processes import served

SKILL = "---\ndescription: Greets.\n{}---\nGreet $ARGUMENTS."


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    put(tmp_path / "home/.claude/skills/greet/SKILL.md", SKILL.format("allowed-tools: Write\n"))
    return tmp_path


def prompt_of(folder: Path) -> str:
    """What the model was asked, by the transcript."""
    (path,) = (folder / "xdg-state/ferrule/projects").rglob("*.jsonl")
    entries = [json.loads(line) for line in path.read_bytes().splitlines()]
    (asked,) = [entry for entry in entries if kind_of(entry) == "user"]
    return "\n".join(block.text for block in user_turn(asked).content if isinstance(block, Text))


@requirement("TASK-2", "CLI-1")
def test_a_skill_is_asked_for_with_a_slash_and_its_rules_hold_for_the_turn(folder: Path) -> None:
    write: dict[str, Any] = {"name": "Write", "input": {"file_path": "new", "content": "x"}}

    done = ask(folder, [{"calls": [write]}, {"text": "Hello."}], "/greet big world", "--output-format", "stream-json")

    lines = lines_of(done)
    assert (lines[0]["skills"], lines[0]["slash_commands"][0]) == (["greet"], "greet")
    assert "compact" in lines[0]["slash_commands"]
    assert (done.returncode, (folder / "new").read_text()) == (0, "x")
    assert prompt_of(folder) == "Greet big world."


@requirement("TASK-2")
@pytest.mark.parametrize("prompt", ["/etc/hosts is what?", "see /greet"])
def test_what_names_no_command_is_an_ordinary_prompt(folder: Path, prompt: str) -> None:
    assert ask(folder, [{"text": "Well."}], prompt).returncode == 0
    assert prompt_of(folder) == prompt


@requirement("PROG-5")
def test_an_unknown_command_is_an_error_and_one_that_is_answered_here_is_printed(folder: Path) -> None:
    unknown, answered = (ask(folder, [{"text": "Well."}], prompt) for prompt in ("/unknown thing", "/model"))

    assert (unknown.returncode, unknown.stdout) == (1, b"")
    assert b"Unknown command: /unknown." in unknown.stderr
    assert answered.returncode == 0
    assert answered.stdout.startswith(b"The model is scripted:")


@requirement("TASK-2")
def test_a_skill_whose_command_is_refused_is_not_asked(folder: Path) -> None:
    put(folder / "home/.claude/skills/bad/SKILL.md", SKILL.format("") + " !`rm -rf elsewhere`")

    done = ask(folder, [{"text": "Well."}], "/bad x")

    assert (done.returncode, done.stdout) == (1, b"")
    assert b"The skill bad could not be used because `rm -rf elsewhere` failed" in done.stderr


@requirement("MCP-1", "TASK-2")
def test_a_prompt_of_a_server_is_asked_for_in_the_same_way(folder: Path) -> None:
    servers = json.dumps({"mcpServers": {"raw": {"command": sys.executable, "args": ["-S", str(RAW)]}}})

    done = ask(folder, [{"text": "Well."}], "/mcp__raw__greet 'Ann Lee'", "--mcp-config", servers)
    asked = prompt_of(folder)
    without = ask(folder, [{"text": "Well."}], "/mcp__raw__greet", "--mcp-config", servers)

    assert (done.returncode, asked) == (0, "Say hello to Ann Lee.")
    assert without.returncode == 1
    assert b"/mcp__raw__greet needs who. Write: /mcp__raw__greet <who>" in without.stderr


@requirement("TASK-2")
async def test_the_rules_of_a_skill_end_with_its_turn(tmp_path: Path) -> None:
    put(tmp_path / "home/.claude/skills/greet/SKILL.md", SKILL.format("allowed-tools: Write\n"))
    skills = Skills(pages(tmp_path))
    session = opened(tmp_path / "project", settings={"mode": Mode.DEFAULT, "pages": pages(tmp_path)}, skills=skills)
    write = ToolCall("w", "Write", {"file_path": "new", "content": "x"})

    text = await SlashCommands(session, skills).expand("/greet all")
    assert text == "Greet all."
    first = await _statuses(session, text, [says("", write), says("")])
    second = await _statuses(session, "more", [says("", write), says("")])

    assert (first, second) == ([False], [True])


async def _statuses(session: Session, prompt: str, script: Any) -> list[bool]:
    async with session.ask(prompt, ScriptedModel(script)) as events:
        _ = [one async for one in events]
    last = next(turn for turn in reversed(session.history) if isinstance(turn, ResultTurn))
    return [result.is_error for result in last.results]


class Small(ScriptedModel):
    facts = ModelFacts(window=2_000, most_output=200)


@requirement("READ-11", "TASK-2")
async def test_a_file_that_is_read_makes_its_skills_and_instructions_known_again_after_a_compaction(
    tmp_path: Path,
) -> None:
    put(tmp_path / "home/.claude/skills/vue/SKILL.md", "---\ndescription: For views.\npaths: '*.vue'\n---\nx")
    put(tmp_path / "project/web/CLAUDE.md", "Views are small.")
    put(tmp_path / "project/web/a.vue", "<a>\n")
    settings = Settings(cwd=str(tmp_path / "project"), state_folder=tmp_path / "state", pages=pages(tmp_path))
    session = open_conversation(settings).session
    session.compaction.is_automatic = False
    read = ToolCall("1", "Read", {"file_path": "web/a.vue"})
    again = ToolCall("2", "Read", {"file_path": "web/a.vue"})
    third = ToolCall("3", "Read", {"file_path": "web/a.vue"})
    script = [says("", read), says("", again), says("Read."), says("Fine."), sums("Short."), says("", third), says("")]
    model = Small(script)

    for prompt in ("read", "long " * 600):
        async with session.ask(prompt, model) as events:
            _ = [one async for one in events]
    before = [turn.messages for turn in session.history if isinstance(turn, ResultTurn)]
    assert await session.compact(model)
    async with session.ask("and again", model) as events:
        _ = [one async for one in events]
    (after,) = [turn.messages for turn in session.history if isinstance(turn, ResultTurn)]

    assert before[1] == ()
    for told in (before[0], after):
        assert "- vue: For views." in "".join(told)
        assert "Views are small." in "".join(told)


@requirement("MCP-5", "TASK-2")
def test_skills_are_prompts_of_the_server(folder: Path) -> None:
    put(folder / "home/.claude/skills/hidden/SKILL.md", SKILL.format("user-invocable: false\n"))
    with served(folder) as server:
        server.greet()
        server.send({"jsonrpc": "2.0", "id": 1, "method": "prompts/list"})
        listed = server.receive()["result"]["prompts"]
        asked = {"name": "greet", "arguments": {"arguments": "you all"}}
        server.send({"jsonrpc": "2.0", "id": 2, "method": "prompts/get", "params": asked})
        given = server.receive()["result"]["messages"]
        server.send({"jsonrpc": "2.0", "id": 3, "method": "prompts/get", "params": {"name": "hidden"}})
        refused = server.receive()["error"]
        assert server.end_of_input() == 0

    assert [(prompt["name"], prompt["description"]) for prompt in listed] == [("greet", "Greets.")]
    assert given[0]["content"]["text"] == "Greet you all."
    assert refused["message"] == "No prompt is named hidden."


@requirement("TASK-2")
def test_skills_may_be_named_one_after_another_and_share_the_arguments(folder: Path) -> None:
    head = "---\ndescription: Thanks.\nargument-hint: [who] [why]\n---\n"
    put(folder / "home/.claude/skills/thank/SKILL.md", f"{head}Thank $0.")
    write: dict[str, Any] = {"name": "Write", "input": {"file_path": "new", "content": "x"}}

    done = ask(folder, [{"calls": [write]}, {"text": "Hello."}], "/greet /thank Ann")

    assert (done.returncode, done.stderr) == (0, b"")
    assert prompt_of(folder) == "Greet Ann.\n\nThank Ann."


@requirement("TASK-2")
def test_a_skill_gains_nothing_by_the_one_before_it(folder: Path) -> None:
    put(folder / "home/.claude/skills/free/SKILL.md", SKILL.format("allowed-tools: Bash\n"))
    put(folder / "home/.claude/skills/bad/SKILL.md", SKILL.format("") + " !`touch made`")

    done = ask(folder, [{"text": "Well."}], "/free /bad x")

    assert done.returncode == 1
    assert not (folder / "made").exists()


def test_a_skill_that_is_skipped_is_told(folder: Path) -> None:
    put(folder / "home/.claude/skills/bad/SKILL.md", "---\nname: bad\n")

    done = ask(folder, [{"text": "Well."}], "Hi")

    assert done.returncode == 0
    assert b"home/.claude/skills/bad/SKILL.md is skipped: its head has no end" in done.stderr


def test_what_a_skill_in_a_fork_does_belongs_to_the_call_that_is_shown(folder: Path) -> None:
    put(folder / "home/.claude/skills/look/SKILL.md", SKILL.format("context: fork\nagent: Explore\n"))
    use = {"name": "Skill", "id": "s", "input": {"skill": "look"}}

    done = ask(folder, [{"calls": [use]}, {"text": "Seen."}, {"text": "Done."}], "Hi", "--output-format=stream-json")

    (seen,) = [line for line in lines_of(done) if "Seen." in json.dumps(line) and line["type"] == "assistant"]
    assert seen["parent_tool_use_id"] == "s"
