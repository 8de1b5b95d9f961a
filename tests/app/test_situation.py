"""The model knows where it is: who is there, what is allowed, and which directory it works in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ferrule.app.session_opening import open_conversation
from ferrule.app.session_settings import Settings
from ferrule.core.calls import ToolCall
from ferrule.core.content import plain_text
from ferrule.core.verdicts import Behavior
from ferrule.permissions.modes import Mode
from ferrule.permissions.rules import parse_rule
from ferrule.testing import Answering, allow
from tests.requirement import requirement


def _settings(folder: Path, **more: Any) -> Settings:
    project = folder / "project"
    project.mkdir(exist_ok=True)
    return Settings(cwd=str(project), state_folder=folder / "state", **more)


async def _where(settings: Settings, **parts: Any) -> str:
    async with open_conversation(settings, **parts).session as session:
        assert session.system is not None
        return session.system.rpartition("# Where you are")[2]


@requirement("LOOP-4")
async def test_the_prompt_says_that_nobody_is_there_and_what_is_allowed(tmp_path: Path) -> None:
    rules = (
        parse_rule("Bash(pytest:*)", Behavior.ALLOW, "--allow"),
        parse_rule("Read(secret/**)", Behavior.DENY, "--deny"),
    )

    where = await _where(_settings(tmp_path, rules=rules, mode=Mode.ACCEPT_EDITS))

    assert "nobody is there" in where
    assert "commands in the background end with it" in where
    assert "Permission mode: acceptEdits" in where
    assert "Allowed by rules: Bash(pytest:*)" in where
    assert "Denied by rules: Read(secret/**)" in where


@requirement("LOOP-4")
async def test_the_prompt_says_that_calls_can_be_approved(tmp_path: Path) -> None:
    where = await _where(_settings(tmp_path), approver=Answering(allow()))

    assert "nobody is there" not in where
    assert "calls can be approved" in where


@requirement("LOOP-4")
async def test_of_many_rules_the_first_are_named(tmp_path: Path) -> None:
    rules = tuple(parse_rule(f"Bash(tool{n}:*)", Behavior.ALLOW, "--allow") for n in range(40))

    where = await _where(_settings(tmp_path, rules=rules))

    assert "tool11:*) and 28 more" in where


@requirement("BASH-1")
@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("Read", {"file_path": "src/a.py"}),
        ("Edit", {"file_path": "src/a.py", "old_string": "x", "new_string": "y"}),
        ("Grep", {"pattern": "x", "path": "src"}),
        ("Glob", {"pattern": "*", "path": "src"}),
    ],
)
async def test_a_command_that_moved_says_so_and_so_do_the_errors_after_it(
    tmp_path: Path, name: str, arguments: dict[str, Any]
) -> None:
    settings = _settings(tmp_path, mode=Mode.BYPASS)
    docs = Path(settings.cwd) / "docs"
    docs.mkdir()

    async with open_conversation(settings).session as session:
        (moved,) = await session.run([ToolCall("1", "Bash", {"command": "cd docs && pwd"})])
        (stayed,) = await session.run([ToolCall("2", "Bash", {"command": "pwd"})])
        (failed,) = await session.run([ToolCall("3", name, arguments)])

    assert plain_text(moved.content).endswith(f"The working directory is now {docs}.")
    assert "working directory" not in plain_text(stayed.content)
    assert failed.is_error
    assert str(docs) in plain_text(failed.content)


@requirement("GREP-2")
async def test_an_empty_search_says_where_it_looked(tmp_path: Path) -> None:
    settings = _settings(tmp_path)
    (Path(settings.cwd) / "docs").mkdir()

    async with open_conversation(settings).session as session:
        calls = [("Grep", {"pattern": "x"}), ("Glob", {"pattern": "*.x", "path": "docs"})]
        outcomes = await session.run([ToolCall(name, name, arguments) for name, arguments in calls])

    assert [plain_text(outcome.content) for outcome in outcomes] == [
        f"No match in {settings.cwd}.",
        f"No file matches in {settings.cwd}/docs.",
    ]
