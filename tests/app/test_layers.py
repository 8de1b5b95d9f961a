from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ferrule import Settings, ToolCall, open_session
from ferrule.app.layers import ReloadedPolicy, open_layers
from ferrule.core.calls import Status
from ferrule.core.content import plain_text
from ferrule.engine.session import Session
from ferrule.permissions.modes import Mode
from tests.requirement import requirement
from tests.settings.folders import allow, deny, hook, put


@pytest.fixture
def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Session:
    """In a project whose settings are followed while it lasts."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    put(tmp_path / "project" / "a.txt", "one\n")
    put(tmp_path / "outside.txt", "two\n")
    base = Settings(cwd=str(tmp_path / "project"), state_folder=tmp_path / "state")
    live = open_layers(base.cwd, base.state_folder)
    return open_session(replace(base, reload=ReloadedPolicy(live, Mode.DEFAULT)))


@requirement("SET-3")
async def test_a_rule_that_appears_during_a_session_denies_the_next_call(session: Session, tmp_path: Path) -> None:
    first = await _read(session, "a.txt")
    put(tmp_path / "project" / ".claude" / "settings.json", deny("Read"))
    second = await _read(session, "a.txt")

    assert (first[0], second[0]) == (Status.OK, Status.DENIED)
    assert "settings.json:1 denies it" in second[1]


@requirement("SET-3", "SET-4")
async def test_a_rule_that_an_agent_writes_allows_it_nothing(session: Session, tmp_path: Path) -> None:
    put(tmp_path / "project" / ".claude" / "settings.local.json", allow("Read"))
    refused = await _read(session, "../outside.txt")
    put(tmp_path / "home" / ".claude" / "settings.json", allow("Read"))
    by_user = await _read(session, "../outside.txt")

    assert (refused[0], by_user[0]) == (Status.DENIED, Status.OK)


@requirement("SET-2", "SET-3")
async def test_while_the_settings_cannot_be_honoured_nothing_is_allowed(session: Session, tmp_path: Path) -> None:
    file = put(tmp_path / "home" / ".claude" / "settings.json", hook("./guard"))
    lost = await _read(session, "a.txt")
    file.unlink()
    again = await _read(session, "a.txt")

    assert (lost[0], again[0]) == (Status.DENIED, Status.OK)
    assert "hooks for `PreToolUse` are not supported" in lost[1]


async def _read(session: Session, path: str) -> tuple[Status, str]:
    (outcome,) = await session.run([ToolCall("1", "Read", {"file_path": path})])
    return outcome.status, plain_text(outcome.content)
