"""Variables that people have set for another agent, and those that hooks and commands find."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ferrule import ToolCall
from ferrule.app.build import Settings, open_session
from ferrule.core.content import plain_text
from ferrule.core.verdicts import Behavior
from ferrule.hooks.hook import HookBook
from ferrule.permissions.modes import Mode
from ferrule.permissions.rules import Origin, parse_rule
from tests.app.talking import talk
from tests.hooks.scripts import program
from tests.requirement import requirement


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "project").mkdir()
    return tmp_path / "project"


async def ran(folder: Path, command: str, environment: dict[str, str] | None = None, *, hooks: Any = ()) -> str:
    settings = Settings(
        cwd=str(folder),
        state_folder=folder.parent / "state",
        mode=Mode.BYPASS,
        environment=environment or {},
        hooks=HookBook(hooks),
    )
    async with open_session(settings, session_id="the-id") as session:
        (outcome,) = await session.run([ToolCall("1", "Bash", {"command": command})])
    return plain_text(outcome.content)


KNOWN = "$CLAUDECODE $CLAUDE_CODE_ENTRYPOINT $CLAUDE_CODE_SESSION_ID $CLAUDE_PROJECT_DIR"


@requirement("HOOK-1")
async def test_commands_and_hooks_know_their_session_and_their_project(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CLAUDE_CODE_ENTRYPOINT", raising=False)
    hook = program(f"echo {KNOWN} > {folder}/heard", "PreToolUse")

    said = await ran(folder, f"cd sub 2>/dev/null; echo {KNOWN}", hooks=(hook,))

    assert said.splitlines()[0] == f"1 sdk-cli the-id {folder}"
    assert (folder / "heard").read_text() == f"1 sdk-cli the-id {folder}\n"


async def test_the_entry_that_a_program_names_is_passed_on(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAUDE_CODE_ENTRYPOINT", "sdk-py")

    assert (await ran(folder, "echo $CLAUDE_CODE_ENTRYPOINT")).strip() == "sdk-py"


async def test_the_usual_and_the_longest_time_of_a_command_can_be_set(folder: Path) -> None:
    times = {"BASH_DEFAULT_TIMEOUT_MS": "300", "BASH_MAX_TIMEOUT_MS": "400"}

    assert "It was ended after 0.3 s" in await ran(folder, "sleep 30", times)


async def test_the_model_is_told_the_limits_and_gets_as_much_output_as_is_set(folder: Path) -> None:
    around = {"BASH_DEFAULT_TIMEOUT_MS": "7000", "BASH_MAX_TIMEOUT_MS": "9000", "BASH_MAX_OUTPUT_LENGTH": "500"}
    call = {"name": "Bash", "input": {"command": "seq 1 2000"}}
    allowed = (parse_rule("Bash(seq *)", Behavior.ALLOW, Origin("test")),)

    async with talk(folder, {"calls": [call]}, {"text": "Done."}, rules=allowed, environment=around) as at:
        await at.ask("Count")

        (bash,) = [tool for tool in at.server.bodies[0]["tools"] if tool["name"] == "Bash"]
        result = at.server.bodies[1]["messages"][-1]["content"][0]["content"][0]["text"]
    assert "the time limit is 7 seconds by default and 9 at most" in bash["description"]
    assert 300 < len(result) < 1_500


@pytest.mark.parametrize(("chosen", "asked"), [("haiku", "claude-haiku-5-5"), ("inherit", "claude-opus-5-5")])
async def test_the_model_of_all_agents_can_be_set(folder: Path, chosen: str, asked: str) -> None:
    call = {"name": "Agent", "input": {"description": "look", "prompt": "Look.", "model": "opus"}}
    turns = ({"calls": [call]}, {"text": "Looked."}, {"text": "Done."})

    async with talk(folder, *turns, mode=Mode.BYPASS, environment={"CLAUDE_CODE_SUBAGENT_MODEL": chosen}) as at:
        await at.ask("Have somebody look")

        assert [body["model"] for body in at.server.bodies] == ["claude-sonnet-5-5", asked, "claude-sonnet-5-5"]
