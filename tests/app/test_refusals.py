"""A refusal says what is wrong and what would allow it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ferrule.app.build import open_session
from ferrule.app.session_settings import Settings
from ferrule.core.calls import Status, ToolCall, ToolOutcome
from ferrule.core.content import plain_text
from ferrule.core.verdicts import Behavior
from ferrule.permissions.rules import parse_rule
from tests.requirement import requirement


async def _call(folder: Path, name: str, arguments: dict[str, Any], *allowed: str) -> ToolOutcome:
    project = folder / "project"
    project.mkdir(exist_ok=True)
    rules = tuple(parse_rule(text, Behavior.ALLOW, "--allow") for text in allowed)
    async with open_session(Settings(cwd=str(project), state_folder=folder / "state", rules=rules)) as session:
        (outcome,) = await session.run([ToolCall("1", name, arguments)])
    return outcome


@requirement("PERM-2")
async def test_a_refused_command_names_its_guilty_part_and_the_rule_that_allows_it(tmp_path: Path) -> None:
    command = "PYTHONPATH=src python -m pytest -q"

    outcome = await _call(tmp_path, "Bash", {"command": command}, "Bash(python -m pytest:*)")

    said = plain_text(outcome.content)
    assert outcome.status is Status.DENIED
    assert "PYTHONPATH may change what the command does" in said
    assert "session" not in said
    verdict = outcome.record.verdict if outcome.record else None
    assert verdict is not None
    assert len(verdict.allowed_by) == 1
    assert f"This rule would allow it: `{verdict.allowed_by[0]}`." in said
    allowed = await _call(tmp_path, "Bash", {"command": "PYTHONPATH=src python -m pytest --version"}, "Bash")
    assert allowed.status is not Status.DENIED


@requirement("PERM-2")
async def test_the_rule_that_a_refusal_names_allows_the_call(tmp_path: Path) -> None:
    arguments = {"file_path": "a.txt", "content": "x"}

    refused = await _call(tmp_path, "Write", arguments)
    verdict = refused.record.verdict if refused.record else None
    assert verdict is not None
    allowed = await _call(tmp_path, "Write", arguments, *verdict.allowed_by)

    assert (refused.status, allowed.status) == (Status.DENIED, Status.OK)


@requirement("PERM-2")
async def test_a_path_outside_of_the_workspace_is_said_to_be_one(tmp_path: Path) -> None:
    (tmp_path / "other.txt").write_text("x")

    outcome = await _call(tmp_path, "Read", {"file_path": str(tmp_path / "other.txt")})

    assert f"reads {tmp_path}/other.txt, outside of the workspace" in plain_text(outcome.content)


@requirement("WEB-1", "PERM-2")
async def test_a_fetch_of_a_local_host_is_a_refusal_without_a_schema(tmp_path: Path) -> None:
    outcome = await _call(tmp_path, "WebFetch", {"url": "http://localhost:8000/", "prompt": "x"}, "WebFetch")

    said = plain_text(outcome.content)
    assert outcome.status is Status.DENIED
    assert "WebFetch(domain:localhost)" in said
    assert "schema" not in said
