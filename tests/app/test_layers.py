from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ferrule import Settings, ToolCall, open_session
from ferrule.app.settings_interpretation import ReloadedPolicy, interpret_settings, load_session_settings
from ferrule.core.calls import Status
from ferrule.core.content import plain_text
from ferrule.core.effects import Change, Effects, ReadsPath, WritesPath
from ferrule.engine.session import Session
from ferrule.permissions.modes import Mode
from ferrule.permissions.path_patterns import Places
from ferrule.permissions.protected import DEFAULT_LISTS, PathGuard
from ferrule.settings.levels import Level, SettingsPath
from ferrule.settings.reload import LiveSettings
from ferrule.settings.settings_files import SettingsKind
from ferrule.settings.settings_loading import Loaded
from ferrule.settings.settings_sources import SettingsError, open_layers
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

    with pytest.raises(SettingsError, match="their administrator"):
        interpret_settings(folders.live().current())


@requirement("SET-1")
def test_where_only_managed_rules_count_a_flag_allows_nothing(tmp_path: Path) -> None:
    folders = Folders.made(tmp_path)
    put(folders.managed / "managed-settings.json", {"allowManagedPermissionRulesOnly": True})
    flag = Loaded(SettingsPath(Level.COMMAND_LINE, "--allow", SettingsKind.SETTINGS), allow("Read"))

    live = LiveSettings(folders.around(), folders.store, given=(flag,))

    assert interpret_settings(live.current()).rules == ()


@requirement("SET-3")
def test_rules_are_parsed_once_and_again_only_after_a_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    file = put(tmp_path / ".claude" / "settings.json", allow("Read"))
    settings, policy = load_session_settings(Settings(cwd=str(tmp_path), state_folder=tmp_path / "state"))
    current = settings.policy_source()

    assert current().rules is settings.rules is policy.rules
    assert current() is current()

    put(file, deny("Read", "Write"))

    assert [rule.text for rule in current().rules] == ["Read", "Write"]
    assert current() is current()


async def _read(session: Session, path: str) -> tuple[Status, str]:
    (outcome,) = await session.run([ToolCall("1", "Read", {"file_path": path})])
    return outcome.status, plain_text(outcome.content)


@requirement("HELD-5")
def test_settings_put_names_on_the_lists_and_take_them_off(tmp_path: Path) -> None:
    folders = Folders.made(tmp_path)
    lists = {
        "protectedPaths": ["deploy"],
        "unprotectedPaths": [".vscode"],
        "secretPaths": ["*.vault"],
        "notSecretPaths": ["fake.pem"],
    }
    put(folders.home / ".claude" / "settings.json", {"permissions": lists})
    found = interpret_settings(folders.live().current()).more_paths

    changed = found.add_to(DEFAULT_LISTS)
    guard = PathGuard(Places(cwd=("/w",), home=("/home/u",), roots=("/w",)), changed)

    def concerned(touch: ReadsPath | WritesPath) -> bool:
        return any(guard.concerns(Effects.of(touch)))

    assert concerned(WritesPath("/w/deploy/x", Change.REPLACES))
    assert not concerned(WritesPath("/w/.vscode/settings.json", Change.REPLACES))
    assert concerned(WritesPath("/w/.git/config", Change.REPLACES))
    assert concerned(ReadsPath("/w/a.vault"))
    assert not concerned(ReadsPath("/w/fake.pem"))
    assert concerned(ReadsPath("/w/real.pem"))


@requirement("HELD-5")
def test_a_folder_that_nobody_trusts_only_adds_to_the_lists(tmp_path: Path) -> None:
    folders = Folders.made(tmp_path)
    lists = {
        "protectedPaths": ["deploy"],
        "unprotectedPaths": [".git"],
        "secretPaths": ["*.vault"],
        "notSecretPaths": [".env"],
    }
    put(folders.project / ".claude" / "settings.json", {"permissions": lists})

    found = interpret_settings(folders.live().current()).more_paths

    assert (found.protected, found.secrets) == (("deploy",), ("*.vault",))
    assert (found.unprotected, found.not_secrets) == ((), ())


@requirement("HELD-5")
async def test_the_state_folder_is_protected_wherever_it_is(tmp_path: Path) -> None:
    state = tmp_path / "project" / "state"
    settings = Settings(cwd=str(tmp_path / "project"), state_folder=state, mode=Mode.ACCEPT_EDITS)
    put(tmp_path / "project" / "a.txt", "one\n")
    async with open_session(settings) as session:
        (outcome,) = await session.run(
            [ToolCall("1", "Write", {"file_path": str(state / "trust.json"), "content": "{}"})]
        )

    assert outcome.status is Status.DENIED
    assert "is protected" in plain_text(outcome.content)


@requirement("SET-2")
@pytest.mark.parametrize("hooks", [None, "Read", 5, [{}], {"PreToolUse": 3}])
def test_keys_of_other_programs_in_a_servers_file_are_let_be(tmp_path: Path, hooks: object) -> None:
    folders = Folders.made(tmp_path)
    put(folders.project / ".mcp.json", {"mcpServers": {}, "hooks": hooks, "permissions": {"allow": ["Bash"]}})

    found = interpret_settings(folders.live(trusting=True).current())

    assert (found.rules, bool(found.hooks)) == ((), False)
