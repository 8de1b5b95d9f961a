"""An unknown key costs a warning, unless it is a slip for one that could have forbidden something."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferrule.settings.edit_checks import check
from ferrule.settings.forbidding import nearest
from ferrule.settings.levels import Level, SettingsPath
from ferrule.settings.settings_entries import entries_of
from ferrule.settings.settings_files import SettingsKind
from ferrule.settings.settings_loading import Loaded, load_text
from tests.requirement import requirement

COMMAND = {"type": "command", "command": "./check"}


def group(event: str = "PreToolUse", *, hook: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    return {"hooks": {event: [{"matcher": "Bash", "hooks": [{**COMMAND, **(hook or {})}], **more}]}}


@requirement("HELD-3")
@pytest.mark.parametrize(
    "content",
    [
        group(description="Auto-format"),
        group("PostToolUse", description="Auto-format"),
        group(id="guard"),
        group(enabled=True, priority=3),
        group(hook={"description": "d"}),
        group(hook={"id": "x", "name": "n", "comment": "c"}),
        group(hook={"continueOnError": True}),
        group(hook={"rewakeMessage": "m", "rewakeSummary": "s"}),
        {**group(), "tomorrow": 1, "includeCoAuthoredBy": False},
    ],
)
def test_a_key_that_takes_nothing_from_a_hook_leaves_the_hook_as_it_is(content: dict[str, Any]) -> None:
    loaded = read(content)

    assert all(note.is_harmless for note in loaded.skipped)
    assert [entry.value for entry in entries_of(loaded) if entry.key[0] == "hooks"] == [
        {"matcher": "Bash", "hook": COMMAND}
    ]


UNKNOWN: tuple[dict[str, Any], ...] = (
    {"hooks": {"preEditHook": {"command": "x"}}},
    {"hooks": {"SomeFutureEvent": [{"hooks": []}]}},
    {"permissions": {"allowFileAccess": True}},
    {"permissions": {"alow": ["Read"]}},
    {"permissions": {"_deny": ["Read"]}},
    {"permissions": {"//": "a comment"}},
    {"sandbox": {"tomorrow": 1}},
    {"oversized_results": {"tomorrow": 1}},
)


@requirement("HELD-3")
@pytest.mark.parametrize("content", UNKNOWN)
def test_an_unknown_key_that_could_not_forbid_is_one_warning(content: dict[str, Any]) -> None:
    assert [(note.may_forbid, note.unknown) for note in read(content).skipped] == [(False, True)]


@requirement("HELD-3")
@pytest.mark.parametrize(
    "key", ["_permissions", "permissions_old", "tasks", "hooksPath", "blockedMarketplaces", "perms"]
)
def test_another_key_at_the_top_is_let_be(key: str) -> None:
    assert read({key: {"deny": ["Bash"]}}).skipped == ()


@requirement("HELD-3")
@pytest.mark.parametrize(
    ("content", "meant"),
    [
        ({"permisions": {"deny": ["Bash"]}}, "permissions"),
        ({"permission": {"deny": ["Bash"]}}, "permissions"),
        ({"Permissions": {"deny": ["Bash"]}}, "permissions"),
        ({"hook": {}}, "hooks"),
        ({"HOOKS": {}}, "hooks"),
        ({"deny": ["Bash"]}, "permissions.deny"),
        ({"Ask": ["Bash"]}, "permissions.ask"),
        ({"disallowedTools": ["Bash"]}, "permissions.deny"),
        ({"PreToolUse": []}, "hooks.PreToolUse"),
        ({"sandBox": {"enabled": True}}, "sandbox"),
        ({"permissions": {"Deny": ["Bash"]}}, "deny"),
        ({"permissions": {"dney": ["Bash"]}}, "deny"),
        ({"permissions": {"denied": ["Bash"]}}, "deny"),
        ({"permissions": {"disallowedTools": ["Bash"]}}, "deny"),
        ({"permissions": {"askFirst": ["Bash"]}}, "ask"),
        ({"permissions": {"ASK": ["Bash"]}}, "ask"),
        ({"permissions": {"defaultmode": "plan"}}, "defaultMode"),
        ({"permissions": {"disableBypassPermissionMode": "disable"}}, "disableBypassPermissionsMode"),
        ({"hooks": {"PreTooluse": []}}, "PreToolUse"),
        ({"hooks": {"preToolUse": []}}, "PreToolUse"),
        ({"hooks": {"PermisionRequest": []}}, "PermissionRequest"),
        ({"sandbox": {"enable": True}}, "enabled"),
        ({"sandbox": {"filesystem": {"denyReads": ["~/.ssh"]}}}, "denyRead"),
        (group(hook={"failclosed": True}), "failClosed"),
        (group(Matcher="Write"), "matcher"),
    ],
)
def test_a_slip_for_a_key_that_could_forbid_is_as_one_that_cannot_be_read(content: Any, meant: str) -> None:
    (note,) = read(content).skipped

    assert note.may_forbid
    assert f"Did you mean `{meant}`?" in note.words


@requirement("HELD-3")
@pytest.mark.parametrize(
    ("content", "forbids"),
    [
        ({"hooks": {"PreToolUse": [{"hooks": [{"type": "command"}]}]}}, True),
        ({"hooks": {"UserPromptSubmit": 5}}, True),
        ({"hooks": {"PostToolUse": [{"hooks": [{"type": "command"}]}]}}, False),
        ({"hooks": {"Stop": 5}}, False),
        ({"hooks": 5}, True),
        ({"hooks": [{"event": "PreToolUse", "command": 5}]}, True),
        ({"hooks": [{"event": "Stop", "command": 5}]}, False),
        ({"hooks": [{"command": "x"}]}, True),
    ],
)
def test_of_hooks_that_cannot_be_read_those_that_could_refuse_count(content: Any, forbids: bool) -> None:
    assert [note.may_forbid for note in read(content).skipped] == [forbids]


@requirement("HELD-3")
@pytest.mark.parametrize(
    ("kind", "content", "forbids"),
    [
        (SettingsKind.PERMISSIONS, {"denny": ["Bash"]}, True),
        (SettingsKind.PERMISSIONS, {"allowFileAccess": True}, False),
        (SettingsKind.HOOKS, [{"event": "Stop", "command": "x", "description": "d"}], False),
        (SettingsKind.HOOKS, [{"event": "PreToolUse", "command": "x", "toolMatcher": "Bash"}], True),
        (SettingsKind.HOOKS, {"description": "d", "hooks": {"Stop": [{"hooks": [COMMAND], "id": 1}]}}, False),
    ],
)
def test_the_same_holds_for_the_files_of_hooks_and_permissions(kind: SettingsKind, content: Any, forbids: bool) -> None:
    assert [note.may_forbid for note in read(content, kind).skipped] == [forbids]


def test_a_change_may_not_bring_a_slip_into_a_file() -> None:
    refusal = check(SettingsKind.SETTINGS, "{}", '{"permission": {"deny": ["Bash"]}}')

    assert refusal is not None
    assert "Did you mean `permissions`?" in refusal.describe("settings.json")
    assert check(SettingsKind.SETTINGS, '{"permission": {}}', '{"permission": {}, "theme": "dark"}') is None


@given(key=st.sampled_from(["permissions", "PreToolUse", "disallowedTools", "deny"]), data=st.data())
def test_a_key_with_one_slip_is_near_and_one_with_other_letters_is_not(key: str, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(key) - 1))
    slip = data.draw(
        st.sampled_from([key[:at] + key[at + 1 :], key[:at] + key[at] + key[at:], key[:at] + "x" + key[at + 1 :]])
    )

    assert nearest(slip, [key]) == key
    assert nearest(slip.upper(), [key]) == key
    assert nearest("".join(reversed(key)) + "zzz", [key]) == ""


def read(content: Any, kind: SettingsKind = SettingsKind.SETTINGS) -> Loaded:
    return load_text(SettingsPath(Level.USER, "settings.json", kind), json.dumps(content))
