"""Rules through every door of a real session, on real files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ferrule.app.build import Settings, open_session
from ferrule.core.calls import Status, ToolCall
from ferrule.core.content import plain_text
from ferrule.core.ports import Proposal
from ferrule.core.verdicts import Verdict
from ferrule.engine.session import Session
from ferrule.permissions.modes import Mode
from tests.permissions.scene import Named, rules_of
from tests.requirement import requirement


def _session(folder: Path, **more: Any) -> Session:
    rules = rules_of(more.pop("rules", {}))
    tools, judges = more.pop("tools", ()), more.pop("judges", ())
    settings = Settings(cwd=str(folder), rules=rules, state_folder=folder.parent / "state", **more)
    return open_session(settings, tools=tools, judges=judges)


async def _said(session: Session, tool: str, **arguments: Any) -> str:
    (outcome,) = await session.run([ToolCall("1", tool, arguments)])
    return plain_text(outcome.content)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    workspace = tmp_path / "workspace"
    (workspace / "private").mkdir(parents=True)
    (workspace / "private" / "a.txt").write_text("token 1\n")
    (workspace / "b.txt").write_text("token 2\n")
    (workspace / "sub" / "private").mkdir(parents=True)
    (workspace / "sub" / "private" / "c.txt").write_text("token 3\n")
    return workspace


@requirement("GREP-3", "PERM-5")
@pytest.mark.parametrize(("tool", "pattern"), [("Grep", "token"), ("Glob", "**/*.txt")])
async def test_what_a_rule_denies_is_in_no_result_of_a_search(folder: Path, tool: str, pattern: str) -> None:
    session = _session(folder, rules={"deny": ["Read(./private/**)"]})

    found = await _said(session, tool, pattern=pattern)

    assert "b.txt" in found
    assert "private" not in found


@requirement("PERM-5")
async def test_a_denied_path_is_denied_through_a_link_and_through_dots(folder: Path) -> None:
    (folder / "link").symlink_to("private")
    session = _session(folder, rules={"deny": ["Read(./private/**)"]}, mode=Mode.BYPASS)

    for path in ("private/a.txt", "link/a.txt", "sub/../private/a.txt", f"{folder}/private/a.txt"):
        assert "denies that it reads" in await _said(session, "Read", file_path=path)


@requirement("PERM-5")
async def test_dots_behind_a_link_lead_where_the_link_leads(folder: Path) -> None:
    (folder.parent / "elsewhere" / "deep").mkdir(parents=True)
    (folder.parent / "elsewhere" / "b.txt").write_text("not yours\n")
    (folder / "link").symlink_to(folder.parent / "elsewhere" / "deep")

    said = await _said(_session(folder), "Read", file_path="link/../b.txt")

    assert "Read was not allowed" in said
    assert f"reads {folder.parent}/elsewhere/b.txt" in said


@requirement("PERM-5")
async def test_a_link_planted_after_the_check_redirects_no_write(folder: Path) -> None:
    target = folder.parent / "target.txt"
    target.write_text("mine\n")
    (folder / "src").mkdir()

    class Swaps:
        def judge(self, proposal: Proposal, /) -> Verdict | None:
            (folder / "src" / "a.txt").symlink_to(target)
            return None

    session = _session(folder, rules={"allow": ["Edit(src/**)"]}, judges=[Swaps()])

    (outcome,) = await session.run([ToolCall("1", "Write", {"file_path": "src/a.txt", "content": "theirs\n"})])

    assert outcome.status is not Status.OK
    assert target.read_text() == "mine\n"


@requirement("POOL-1")
async def test_a_tool_that_is_denied_as_a_whole_is_out_of_sight_and_one_denied_in_part_is_not(folder: Path) -> None:
    servers = [Named("mcp__srv__read", "srv"), Named("mcp__other__read", "other")]
    session = _session(folder, rules={"deny": ["mcp__srv", "Glob", "Read(./private/**)"]}, tools=servers)

    names = {tool.name for tool in session.registry.pool}

    assert not names & {"mcp__srv__read", "Glob"}
    assert {"mcp__other__read", "Read", "Grep"} <= names


@requirement("PERM-13", "PERM-2")
async def test_accepting_edits_accepts_them_inside_and_plan_mode_refuses_them(folder: Path) -> None:
    accepting, planning = _session(folder, mode=Mode.ACCEPT_EDITS), _session(folder, mode=Mode.PLAN)

    inside = await _said(accepting, "Write", file_path="new.txt", content="x\n")
    outside = await _said(accepting, "Write", file_path="../new.txt", content="x\n")
    planned = await _said(planning, "Write", file_path="other.txt", content="x\n")

    assert (folder / "new.txt").exists(), inside
    assert "Write was not allowed" in outside
    assert "plan mode changes nothing until the plan is approved" in planned
    assert not (folder.parent / "new.txt").exists()
    assert not (folder / "other.txt").exists()


@requirement("PERM-6")
async def test_a_protected_path_is_refused_where_nobody_can_be_asked_with_the_reason(folder: Path) -> None:
    said = await _said(_session(folder, mode=Mode.ACCEPT_EDITS), "Write", file_path=".git/config", content="x")

    assert f"{folder}/.git/config is protected (`.git`): programs run or trust it later" in said
