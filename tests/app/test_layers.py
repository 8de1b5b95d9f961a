from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ferrule import Settings, ToolCall, open_session
from ferrule.app.layers import ReloadedPolicy, SettingsError, open_layers, understood
from ferrule.core.calls import Status
from ferrule.core.content import plain_text
from ferrule.engine.session import Session
from ferrule.permissions.modes import Mode
from ferrule.settings.files import SettingsKind
from ferrule.settings.levels import Level, SettingsPath
from ferrule.settings.loading import Loaded
from ferrule.settings.reload import LiveSettings
from tests.requirement import requirement
from tests.settings.folders import Folders, allow, deny, put


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


MASKED = '{"sandbox": {"enabled": true, "credentials": {"files": [{"path": "/x", "mode": "mask"}]}}}'


@requirement("SET-2", "SET-3")
async def test_while_the_settings_cannot_be_honoured_nothing_is_allowed(session: Session, tmp_path: Path) -> None:
    file = put(tmp_path / "home" / ".claude" / "settings.json", MASKED)
    lost = await _read(session, "a.txt")
    file.unlink()
    again = await _read(session, "a.txt")

    assert (lost[0], again[0]) == (Status.DENIED, Status.OK)
    assert "not mask it" in lost[1]


@requirement("SET-2")
async def test_a_file_that_appears_broken_allows_nothing_without_a_question(session: Session, tmp_path: Path) -> None:
    file = put(tmp_path / "project" / ".claude" / "settings.json", '{"permissions": {"deny": ["Read"]')
    lost = await _read(session, "a.txt")
    file.unlink()
    again = await _read(session, "a.txt")

    assert (lost[0], again[0]) == (Status.DENIED, Status.OK)
    assert "settings.json: invalid JSON in line 1, column 34" in lost[1]


@requirement("SET-2")
@pytest.mark.parametrize("content", ["{", '{"permissions": {"deny": [5]}}'])
def test_what_is_wrong_in_managed_settings_stops_everything(tmp_path: Path, content: str) -> None:
    folders = Folders.made(tmp_path)
    put(folders.managed / "managed-settings.json", content)

    with pytest.raises(SettingsError, match="whoever manages them"):
        understood(folders.live().current())


@requirement("SET-1")
def test_where_only_managed_rules_count_a_flag_allows_nothing(tmp_path: Path) -> None:
    folders = Folders.made(tmp_path)
    put(folders.managed / "managed-settings.json", {"allowManagedPermissionRulesOnly": True})
    flag = Loaded(SettingsPath(Level.COMMAND_LINE, "--allow", SettingsKind.SETTINGS), allow("Read"))

    live = LiveSettings(folders.around(), folders.store, given=(flag,))

    assert understood(live.current()).rules == ()


async def _read(session: Session, path: str) -> tuple[Status, str]:
    (outcome,) = await session.run([ToolCall("1", "Read", {"file_path": path})])
    return outcome.status, plain_text(outcome.content)
