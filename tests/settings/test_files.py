"""Which files hold settings, under whatever name."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferrule.settings.settings_files import SettingsKind, kind_of
from tests.requirement import requirement

SETTINGS, HOOKS = SettingsKind.SETTINGS, SettingsKind.HOOKS
PERMISSIONS, MCP = SettingsKind.PERMISSIONS, SettingsKind.MCP


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/home/u/.claude/settings.json", SETTINGS),
        ("/home/u/.claude/settings.local.json", SETTINGS),
        ("/home/u/.ferrule/settings.json", SETTINGS),
        ("/project/.claude/settings.local.json", SETTINGS),
        ("/project/.ferrule/settings.local.json", SETTINGS),
        ("/project/.ferrule/hooks.json", HOOKS),
        ("/project/.claude/hooks.json", HOOKS),
        ("/home/u/.claude/permissions.json", PERMISSIONS),
        ("/project/deep/er/.ferrule/permissions.json", PERMISSIONS),
        ("/project/.mcp.json", MCP),
        ("/project/.Claude/Settings.JSON", SETTINGS),
        ("/project/.ferrule/\u017fettings.json", SETTINGS),
        ("/etc/claude-code/managed-settings.json", SETTINGS),
        ("/etc/claude-code/managed-settings.d/10-team.json", SETTINGS),
        ("/etc/claude-code/managed-mcp.json", MCP),
        ("/Library/Application Support/ClaudeCode/managed-settings.json", SETTINGS),
        ("/etc/claude-code/managed-settings.d/.hidden.json", None),
        ("/etc/claude-code/settings.json", None),
        ("/project/managed-settings.json", None),
        ("/project/settings.json", None),
        ("/project/.vscode/settings.json", None),
        ("/project/.claude/settings.json.bak", None),
        ("/project/.claude/agents/settings.json", None),
        ("/project/my.claude/settings.json", None),
        ("/project/mcp.json", None),
        ("/settings.json", None),
        ("/", None),
    ],
)
@requirement("EDIT-8")
def test_settings_are_known_by_name_below_any_folder(path: str, kind: SettingsKind | None) -> None:
    assert kind_of(path, home="/home/u", workspace="/project") == kind


@requirement("EDIT-8")
def test_the_user_may_have_moved_the_folder(tmp_path: Path) -> None:
    path = f"{tmp_path}/moved/settings.json"

    assert kind_of(path, home="/home/u", config_folder=f"{tmp_path}/moved/") == SETTINGS
    assert kind_of(path, home="/home/u") is None


@requirement("EDIT-8")
def test_a_link_to_a_settings_file_is_one_even_if_that_is_not_there_yet(tmp_path: Path) -> None:
    (tmp_path / "innocent.json").symlink_to(tmp_path / ".claude" / "settings.json")
    (tmp_path / "folder").symlink_to(".ferrule")
    (tmp_path / "first.json").symlink_to("innocent.json")

    assert kind_of(f"{tmp_path}/innocent.json", home="/home/u") == SETTINGS
    assert kind_of(f"{tmp_path}/first.json", home="/home/u") == SETTINGS
    assert kind_of(f"{tmp_path}/folder/hooks.json", home="/home/u") == HOOKS


@requirement("EDIT-8")
def test_a_settings_file_that_is_a_link_is_one_and_so_is_its_target(tmp_path: Path) -> None:
    target = tmp_path / "dotfiles" / "shared.json"
    target.parent.mkdir()
    target.write_text("{}")
    (tmp_path / "home" / ".claude").mkdir(parents=True)
    (tmp_path / "home" / ".claude" / "settings.json").symlink_to(target)

    home = str(tmp_path / "home")

    assert kind_of(f"{home}/.claude/settings.json", home=home) == SETTINGS
    assert kind_of(str(target), home=home) == SETTINGS
    assert kind_of(str(target), home="/elsewhere") is None


@requirement("EDIT-8")
def test_another_name_of_the_same_file_is_the_file(tmp_path: Path) -> None:
    (tmp_path / ".ferrule").mkdir()
    (tmp_path / ".ferrule" / "permissions.json").write_text("{}")
    os.link(tmp_path / ".ferrule" / "permissions.json", tmp_path / "other.txt")
    (tmp_path / ".mcp.json").write_text("{}")
    os.link(tmp_path / ".mcp.json", tmp_path / "servers.txt")

    workspace = str(tmp_path)

    assert kind_of(f"{tmp_path}/other.txt", home="/home/u", workspace=workspace) == PERMISSIONS
    assert kind_of(f"{tmp_path}/servers.txt", home="/home/u", workspace=workspace) == MCP


@given(st.text())
def test_any_path_has_an_answer(text: str) -> None:
    assert kind_of(f"/nowhere/{text.replace('.', '')}", home="/home/\0", workspace=text) is None


def test_a_circle_of_links_has_an_answer(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")

    assert kind_of(f"{tmp_path}/a", home="/home/u", workspace=str(tmp_path)) is None
