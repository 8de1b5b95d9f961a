from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferrule.core.verdicts import Behavior
from ferrule.settings.layers import BEHAVIORS, Layered, merge_entries
from ferrule.settings.levels import Level, SettingsPath, Source
from ferrule.settings.settings_entries import entries_of
from ferrule.settings.settings_files import SettingsKind
from ferrule.settings.settings_loading import Loaded, load_text
from tests.requirement import requirement
from tests.settings.folders import Folders, allow, deny, hook, put, rules


@pytest.fixture
def folders(tmp_path: Path) -> Folders:
    return Folders.made(tmp_path)


@requirement("SET-1")
def test_a_plain_value_comes_from_the_highest_level_and_knows_its_file_and_line(folders: Folders) -> None:
    files = [
        folders.home / ".claude" / "settings.json",
        folders.home / ".ferrule" / "settings.json",
        folders.project / ".claude" / "settings.json",
        folders.project / ".ferrule" / "settings.json",
        folders.project / ".claude" / "settings.local.json",
        folders.project / ".ferrule" / "settings.local.json",
        folders.managed / "managed-settings.json",
        folders.managed / "managed-settings.d" / "10.json",
        folders.managed / "managed-settings.d" / "20.json",
        folders.own_managed / "managed-settings.json",
    ]
    for number, file in enumerate(files):
        put(file, f'{{\n "cleanupPeriodDays":\n {number + 1}}}')

        found = folders.all_of_it().value("cleanupPeriodDays")

        assert found is not None
        assert (found.value, found.source.path, found.source.line) == (number + 1, str(file), 2)


@requirement("SET-1")
def test_lists_are_joined_over_all_levels_with_the_source_of_each_item(folders: Folders) -> None:
    put(folders.home / ".claude" / "settings.json", allow("User"))
    put(folders.project / ".claude" / "settings.json", '{"permissions": {"allow": [\n"Project",\n"Second"]}}')
    put(folders.project / ".ferrule" / "settings.local.json", deny("Local"))
    put(folders.managed / "managed-settings.json", allow("Managed"))

    found = folders.all_of_it()

    assert [
        (BEHAVIORS[rule.key].name, rule.value, rule.source.level.name, rule.source.line) for rule in found.rules
    ] == [
        ("ALLOW", "Managed", "MANAGED", 1),
        ("ALLOW", "Project", "PROJECT", 2),
        ("ALLOW", "Second", "PROJECT", 3),
        ("ALLOW", "User", "USER", 1),
        ("DENY", "Local", "LOCAL", 1),
    ]


@requirement("SET-1")
def test_values_inside_objects_are_merged_key_by_key(folders: Folders) -> None:
    put(folders.home / ".claude" / "settings.json", {"env": {"A": "1", "B": "1"}, "sandbox": {"enabled": True}})
    put(folders.project / ".claude" / "settings.json", {"env": {"B": "2"}, "sandbox": {"bwrapPath": "/x"}})

    found = folders.all_of_it()

    assert {name: value.value for name, value in found.environment.items()} == {"A": "1", "B": "2"}
    assert [found.values[key].value for key in (("sandbox", "enabled"), ("sandbox", "bwrapPath"))] == [True, "/x"]


@requirement("SET-1")
def test_a_server_is_taken_whole_from_one_file(folders: Folders) -> None:
    put(folders.project / ".mcp.json", {"mcpServers": {"a": {"command": "x", "args": ["1"]}, "b": {"command": "y"}}})
    put(folders.managed / "managed-mcp.json", {"mcpServers": {"a": {"type": "http", "url": "http://x"}}})

    servers = folders.all_of_it().servers

    assert {name: server.value for name, server in servers.items()} == {
        "a": {"type": "http", "url": "http://x"},
        "b": {"command": "y"},
    }


@requirement("SET-1")
def test_hooks_of_all_files_run_and_an_identical_one_once(folders: Folders) -> None:
    put(folders.home / ".claude" / "settings.json", hook("same"))
    put(folders.project / ".claude" / "settings.json", hook("same"))
    put(folders.project / ".ferrule" / "settings.json", hook("other"))
    put(folders.home / ".claude" / "hooks.json", [{"event": "PreToolUse", "command": "same", "tool_matcher": "Bash"}])

    hooks = folders.all_of_it().hooks

    assert [(found.hook["command"], found.source.level.name) for found in hooks] == [
        ("same", "PROJECT"),
        ("other", "PROJECT"),
    ]


@requirement("SET-1")
def test_the_fallback_model_is_a_whole_value_and_not_a_list_to_be_joined() -> None:
    found = _merged({Level.USER: {"fallbackModel": ["a", "b"]}, Level.PROJECT: {"fallbackModel": ["c"]}})

    assert found.values[("fallbackModel",)].value == ["c"]


@requirement("SET-1")
def test_managed_models_are_all_the_models_there_are() -> None:
    lower = {Level.USER: {"availableModels": ["a"]}, Level.LOCAL: {"availableModels": ["b"]}}

    assert _values(_merged(lower), "availableModels") == ["b", "a"]
    assert _values(_merged({**lower, Level.MANAGED: {"availableModels": ["c"]}}), "availableModels") == ["c"]


@requirement("SET-1")
def test_a_project_cannot_choose_the_mode_auto() -> None:
    chosen = {"permissions": {"defaultMode": "auto"}}
    user = {"permissions": {"defaultMode": "plan"}}

    found = _merged({Level.USER: user, Level.PROJECT: chosen, Level.LOCAL: chosen})

    assert found.mode is not None
    assert found.mode.value == "plan"
    assert [(note.source.level.name, note.place) for note in found.skipped] == [
        ("PROJECT", ("permissions", "defaultMode")),
        ("LOCAL", ("permissions", "defaultMode")),
    ]
    mine = _merged({Level.USER: chosen}).mode
    assert mine is not None
    assert mine.value == "auto"


@requirement("SET-1")
@pytest.mark.parametrize("level", list(Level))
def test_any_file_can_switch_off_the_modes_that_ask_nobody(level: Level) -> None:
    chosen = {"permissions": {"defaultMode": "bypassPermissions"}}
    off = {"permissions": {"disableBypassPermissionsMode": "disable"}}

    assert _merged({Level.COMMAND_LINE: chosen}).mode is not None
    assert _merged({Level.COMMAND_LINE: chosen}, {level: off}).mode is None


@requirement("SET-1")
def test_only_managed_settings_say_that_only_managed_settings_count() -> None:
    only: dict[str, Any] = {"allowManagedPermissionRulesOnly": True, "allowManagedHooksOnly": True}
    user: dict[str, Any] = {"permissions": {"allow": ["A"], "ask": ["B"], "deny": ["C"]}, **hook("mine")}
    managed: dict[str, Any] = {"permissions": {"allow": ["M"]}, **hook("theirs")}

    by_user = _merged({Level.USER: {**user, **only}, Level.MANAGED: managed})
    by_manager = _merged({Level.USER: user, Level.MANAGED: {**managed, **only}})

    assert rules(by_user, Behavior.ALLOW) == ["M", "A"]
    assert [note.place for note in by_user.skipped] == [
        ("allowManagedPermissionRulesOnly",),
        ("allowManagedHooksOnly",),
    ]
    assert [rule.value for rule in by_manager.rules] == ["M", "B", "C"]
    assert [found.hook["command"] for found in by_manager.hooks] == ["theirs"]


@requirement("SET-1")
def test_nobody_below_switches_off_managed_hooks() -> None:
    user: dict[str, Any] = {"disableAllHooks": True, **hook("mine")}

    below = _merged({Level.USER: user, Level.MANAGED: hook("theirs")})
    above = _merged({Level.USER: hook("mine"), Level.MANAGED: {"disableAllHooks": True, **hook("theirs")}})

    assert [found.hook["command"] for found in below.hooks] == ["theirs"]
    assert above.hooks == ()


@requirement("SET-1")
@pytest.mark.parametrize(
    ("key", "strict"),
    [
        ("disableClaudeAiConnectors", True),
        ("isolatePeerMachines", True),
        ("remoteControlAtStartup", False),
        ("useAutoModeDuringPlan", False),
        ("syncClaudeAiSkills", False),
    ],
)
def test_some_keys_are_won_by_the_stricter_value(key: str, strict: bool) -> None:
    below = _merged({Level.USER: {key: strict}, Level.MANAGED: {key: not strict}})
    above = _merged({Level.USER: {key: not strict}, Level.MANAGED: {key: strict}})

    assert below.values[(key,)].value is strict
    assert above.values[(key,)].value is strict


def test_a_source_is_written_as_file_and_line() -> None:
    assert [str(Source(Level.USER, "a.json", 3)), str(Source(Level.COMMAND_LINE, "--settings"))] == [
        "a.json:3",
        "--settings",
    ]


TEXTS = st.lists(st.sampled_from(["Read", "Glob", "Bash(x *)", "Bash(", 5, None]), max_size=4)


@requirement("SET-2")
@given(st.dictionaries(st.sampled_from(Level), st.tuples(TEXTS, st.binary(max_size=3), st.booleans())))
def test_damage_never_adds_a_rule_that_allows(files: dict[Level, tuple[list[Any], bytes, bool]]) -> None:
    """Each file as it is written, or damaged by bytes at its end."""
    loaded, written = list[Loaded](), list[Any]()
    for level, (texts, damage, damaged) in sorted(files.items()):
        text = json.dumps(allow(*texts)) + (damage.decode("latin-1") if damaged else "")
        loaded.append(_loaded(level, text))
        written += texts

    found = merge_entries(entry for one in loaded for entry in entries_of(one))

    assert set(rules(found, Behavior.ALLOW)) <= {text for text in written if text not in (5, None, "Bash(")}


def _loaded(level: Level, text: str) -> Loaded:
    return load_text(SettingsPath(level, level.name, SettingsKind.SETTINGS), text)


def _merged(*files: dict[Level, dict[str, Any]]) -> Layered:
    loaded = sorted(
        (_loaded(level, json.dumps(content)) for one in files for level, content in one.items()),
        key=lambda one: one.at.level,
    )
    assert [note for one in loaded for note in one.skipped] == []
    return merge_entries(entry for one in loaded for entry in entries_of(one))


def _values(layered: Layered, *key: str) -> list[Any]:
    return [item.value for item in layered.items(*key)]
