from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ferrule.core.verdicts import Behavior
from ferrule.settings.layers import Layered
from ferrule.settings.levels import Level
from ferrule.settings.reload import LiveSettings
from ferrule.settings.settings_writing import save_rule
from tests.requirement import requirement
from tests.settings.folders import Folders, allow, deny, hook, put, rules


@pytest.fixture
def folders(tmp_path: Path) -> Folders:
    return Folders.made(tmp_path)


@requirement("SET-3")
def test_nothing_changed_is_the_same_answer(folders: Folders) -> None:
    put(folders.home / ".claude" / "settings.json", allow("Read"))
    live = folders.live()

    first = live.current()

    assert live.current() is first


@requirement("SET-3")
def test_a_file_that_was_not_there_counts_when_it_appears_and_not_when_it_is_gone(folders: Folders) -> None:
    live = folders.live()
    file = put(folders.home / ".claude" / "settings.json", {**allow("Read"), **hook("./x")})

    assert (rules(live.current(), Behavior.ALLOW), len(live.current().hooks)) == (["Read"], 1)
    file.unlink()
    assert (rules(live.current(), Behavior.ALLOW), len(live.current().hooks)) == ([], 0)


@requirement("SET-3")
def test_a_part_of_the_managed_settings_that_appears_counts(folders: Folders) -> None:
    put(folders.managed / "managed-settings.d" / "10.json", {})
    live = folders.live()
    _settled(live)

    put(folders.managed / "managed-settings.d" / "20.json", deny("Write"))

    assert rules(live.current(), Behavior.DENY) == ["Write"]


@requirement("SET-3")
def test_two_changes_within_one_tick_of_the_clock_are_both_seen(folders: Folders) -> None:
    file = put(folders.home / ".claude" / "settings.json", allow("Aaa"))
    live = folders.live()
    for text in ("Bbb", "Ccc", "Ddd"):
        put(file, allow(text))
        assert rules(live.current(), Behavior.ALLOW) == [text]


@requirement("SET-3", "SET-4")
def test_what_denies_counts_at_once_and_what_allows_only_within_trust(folders: Folders) -> None:
    put(folders.project / ".claude" / "settings.json", allow("Read"))
    folders.trust()
    live = folders.live()
    _settled(live)

    put(
        folders.project / ".claude" / "settings.local.json",
        {"permissions": {"allow": ["Bash"], "ask": ["Edit"], "deny": ["Write"]}, **hook("./new"), "env": {"A": "1"}},
    )

    now = live.current()
    assert [rule.value for rule in now.rules] == ["Read", "Edit", "Write"]
    assert (now.hooks, now.environment) == ((), {})
    folders.trust()
    assert [rule.value for rule in live.current().rules] == ["Bash", "Read", "Edit", "Write"]
    assert len(live.current().hooks) == 1


@requirement("SET-3", "SET-4")
@pytest.mark.parametrize("trusted", [True, False])
def test_what_the_folder_denied_stays_denied_until_a_person_agrees(folders: Folders, trusted: bool) -> None:
    file = put(folders.project / ".claude" / "settings.json", {"permissions": {"deny": ["Write"], "allow": ["Read"]}})
    if trusted:
        folders.trust()
    live = folders.live()

    put(file, {})
    assert [rule.value for rule in live.current().rules] == ["Write"]
    file.unlink()
    assert [rule.value for rule in live.current().rules] == ["Write"]

    put(file, {})
    folders.trust()
    assert live.current().rules == ()


@requirement("SET-3", "SET-4")
def test_agreeing_to_one_rule_does_not_release_what_was_denied(folders: Folders) -> None:
    file = put(folders.project / ".ferrule" / "settings.local.json", deny("Write"))
    live = folders.live()
    put(file, {})

    save_rule(folders.around(), folders.store, Level.LOCAL, Behavior.ALLOW, "Read")

    assert [rule.value for rule in live.current().rules] == ["Read", "Write"]


@requirement("SET-3")
def test_the_users_own_files_are_followed_in_both_directions(folders: Folders) -> None:
    file = put(folders.home / ".claude" / "settings.json", deny("Write"))
    live = folders.live()

    put(file, deny("Edit"))

    assert rules(live.current(), Behavior.DENY) == ["Edit"]


@requirement("SET-2", "SET-3")
@pytest.mark.parametrize("damage", ["{", "[]", "\0"])
def test_a_file_that_breaks_while_it_is_in_use_counts_as_it_was(folders: Folders, damage: str) -> None:
    file = put(folders.home / ".claude" / "settings.json", deny("Write"))
    live = folders.live()

    put(file, damage)

    now = live.current()
    assert rules(now, Behavior.DENY) == ["Write"]
    assert [note.words.endswith("Its last valid content still applies.") for note in now.skipped] == [True]
    put(file, deny("Edit"))
    assert (rules(live.current(), Behavior.DENY), live.current().skipped) == (["Edit"], ())


@requirement("SET-3")
def test_the_model_of_a_conversation_stays_and_other_values_change(folders: Folders) -> None:
    file = put(folders.home / ".claude" / "settings.json", {"model": "a", "cleanupPeriodDays": 3})
    live = folders.live()

    put(file, {"model": "b", "effortLevel": "low", "cleanupPeriodDays": 4})

    now = live.current()
    assert {".".join(key): value.value for key, value in now.values.items()} == {"model": "a", "cleanupPeriodDays": 4}


@requirement("SET-1")
def test_levels_that_are_left_out_say_nothing_but_managed_settings_always_do(folders: Folders) -> None:
    put(folders.home / ".claude" / "settings.json", allow("User"))
    put(folders.managed / "managed-settings.json", deny("Managed"))

    live = LiveSettings(folders.around(), folders.store, levels=frozenset({Level.PROJECT}))

    assert [rule.value for rule in live.current().rules] == ["Managed"]


@requirement("SET-3")
def test_a_folder_where_nothing_happens_is_soon_known_to_be_unchanged(folders: Folders) -> None:
    put(folders.project / ".claude" / "settings.json", allow("Read"))
    live = folders.live()
    _settled(live)

    assert not live.may_have_changed()
    put(folders.project / ".claude" / "settings.local.json", {})
    assert live.may_have_changed()


@requirement("SET-4", "SEC-2")
def test_a_test_run_that_writes_settings_of_every_kind_gains_nothing(folders: Folders) -> None:
    put(folders.project / ".claude" / "settings.json", {**allow("Read"), **hook("./guard")})
    folders.trust()
    live = folders.live()
    before = live.current()
    more: dict[str, Any] = {**allow("Bash"), **hook("./evil", event="Stop"), "env": {"A": "1"}, "disableAllHooks": True}

    for folder in (".claude", ".ferrule"):
        put(folders.project / folder / "settings.local.json", more)
        put(folders.project / folder / "hooks.json", [{"event": "Stop", "command": "./evil"}])
        put(folders.project / folder / "permissions.json", {"allowed_tools": ["Bash"], "defaultMode": "acceptEdits"})
        put(folders.project / folder / "agents" / "a.md", "---\npermissionMode: bypassPermissions\n---\n")
    put(folders.project / ".mcp.json", {"mcpServers": {"a": {"command": "./evil"}}})

    assert _gains(live.current()) == _gains(before)
    assert _gains(folders.live().current()) == _gains(before)


def _settled(live: LiveSettings) -> None:
    """Every file is older than the last look at it."""
    while live.may_have_changed():
        live.current()


def _gains(layered: Layered) -> Any:
    return layered.rules, layered.hooks, layered.servers, layered.environment, layered.values
