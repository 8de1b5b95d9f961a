from __future__ import annotations

import os
from pathlib import Path

import pytest

from ferrule.core.verdicts import Behavior
from ferrule.settings.levels import Level, settings_paths
from tests.requirement import requirement
from tests.settings.folders import Folders, allow, git, put, rules


@pytest.fixture
def folders(tmp_path: Path) -> Folders:
    return Folders.made(tmp_path)


@requirement("SET-1")
def test_every_level_has_its_files_and_ours_count_more_than_theirs(folders: Folders) -> None:
    put(folders.managed / "managed-settings.d" / "20-more.json", {})
    put(folders.managed / "managed-settings.d" / "10-first.json", {})
    put(folders.managed / "managed-settings.d" / ".hidden.json", {})
    put(folders.managed / "managed-settings.d" / "notes.txt", "")

    found = [
        (place.level.name, os.path.relpath(place.path, folders.root)) for place in settings_paths(folders.around())
    ]

    assert found == [
        ("USER", "home/.claude/hooks.json"),
        ("USER", "home/.claude/permissions.json"),
        ("USER", "home/.claude/settings.json"),
        ("USER", "home/.ferrule/hooks.json"),
        ("USER", "home/.ferrule/permissions.json"),
        ("USER", "home/.ferrule/settings.json"),
        ("PROJECT", "project/.mcp.json"),
        ("PROJECT", "project/.claude/hooks.json"),
        ("PROJECT", "project/.claude/permissions.json"),
        ("PROJECT", "project/.claude/settings.json"),
        ("PROJECT", "project/.ferrule/hooks.json"),
        ("PROJECT", "project/.ferrule/permissions.json"),
        ("PROJECT", "project/.ferrule/settings.json"),
        ("LOCAL", "project/.claude/settings.local.json"),
        ("LOCAL", "project/.ferrule/settings.local.json"),
        ("MANAGED", "etc/claude-code/managed-mcp.json"),
        ("MANAGED", "etc/claude-code/managed-settings.json"),
        ("MANAGED", "etc/claude-code/managed-settings.d/10-first.json"),
        ("MANAGED", "etc/claude-code/managed-settings.d/20-more.json"),
        ("MANAGED", "etc/ferrule/managed-mcp.json"),
        ("MANAGED", "etc/ferrule/managed-settings.json"),
    ]


@requirement("SET-1")
def test_project_settings_are_read_where_one_starts_and_not_from_the_folders_above(folders: Folders) -> None:
    put(folders.project / ".claude" / "settings.json", allow("Above"))
    put(folders.project / "sub" / ".claude" / "settings.json", allow("Here"))

    assert rules(folders.all_of_it(folders.project / "sub"), Behavior.ALLOW) == ["Here"]


@requirement("SET-1")
def test_local_settings_are_those_of_the_root_of_the_repository(folders: Folders) -> None:
    git(folders.project, "init")
    put(folders.project / ".claude" / "settings.local.json", allow("Root"))
    put(folders.project / "sub" / ".claude" / "settings.local.json", allow("Sub"))

    assert rules(folders.all_of_it(folders.project / "sub"), Behavior.ALLOW) == ["Root"]


@requirement("SET-1")
def test_a_worktree_has_the_local_settings_of_the_main_checkout(folders: Folders) -> None:
    git(folders.project, "init")
    git(folders.project, "commit", "--allow-empty", "-m", "first")
    git(folders.project, "worktree", "add", str(folders.root / "tree"))
    put(folders.project / ".ferrule" / "settings.local.json", allow("Main"))

    assert rules(folders.all_of_it(folders.root / "tree"), Behavior.ALLOW) == ["Main"]


@requirement("SET-1")
def test_outside_of_a_repository_local_settings_are_those_of_the_folder(folders: Folders) -> None:
    put(folders.project / "sub" / ".claude" / "settings.local.json", allow("Sub"))

    assert rules(folders.all_of_it(folders.project / "sub"), Behavior.ALLOW) == ["Sub"]


@requirement("SET-1")
def test_a_home_that_is_a_repository_makes_no_local_settings_for_all_below_it(folders: Folders) -> None:
    git(folders.home, "init")
    put(folders.home / ".claude" / "settings.local.json", allow("Home"))
    (folders.home / "work").mkdir()

    assert rules(folders.all_of_it(folders.home / "work"), Behavior.ALLOW) == []
    assert rules(folders.all_of_it(folders.home), Behavior.ALLOW) == ["Home"]


@requirement("SET-1")
def test_in_the_home_its_settings_are_the_users_and_are_read_once(folders: Folders) -> None:
    put(folders.home / ".claude" / "settings.json", allow("Mine"))

    (rule,) = folders.all_of_it(folders.home).rules

    assert (rule.value, rule.source.level) == ("Mine", Level.USER)


@requirement("SET-1")
def test_the_users_folder_can_be_moved_but_only_to_an_absolute_place(folders: Folders) -> None:
    moved = folders.around(CLAUDE_CONFIG_DIR=str(folders.root / "moved"))
    relative = folders.around(CLAUDE_CONFIG_DIR=".claude")

    assert settings_paths(moved)[0].path == str(folders.root / "moved" / "hooks.json")
    assert settings_paths(relative)[0].path == str(folders.home / ".claude" / "hooks.json")


def test_a_home_that_is_relative_is_not_believed(folders: Folders) -> None:
    assert os.path.isabs(folders.around(HOME=".").home)
