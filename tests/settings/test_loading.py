# ruff: noqa: E501 (messages are compared whole)
from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot

from ferrule.settings.levels import Level, SettingsPath
from ferrule.settings.settings_entries import entries_of
from ferrule.settings.settings_files import SettingsKind
from ferrule.settings.settings_loading import LARGEST, Loaded, load, load_text
from tests.requirement import requirement

KINDS = st.sampled_from(SettingsKind)


@requirement("SET-2")
def test_a_bad_entry_is_skipped_alone_and_named_with_file_line_and_key() -> None:
    loaded = _read(
        """{
  "permissions": {
    "allow": ["Read", 5, "Glob", "Bash(rm", "Grep"],
    "denny": ["Write"]
  },
  "env": {"A": 1, "B": "2"},
  "hooks": {
    "Stop": [{"hooks": [{"type": "command", "command": "a", "if": 3}, {"type": "command", "command": "b"}]}],
    "MoonRise": []
  },
  "theme": "pink",
  "tomorrow": {"any": ["thing"]}
}"""
    )

    assert [str(note) for note in loaded.skipped] == snapshot(
        [
            "settings.json:3: `permissions.allow[1]` is skipped: expected a string, found 5.",
            "settings.json:3: `permissions.allow[3]` is skipped: `Bash(rm` has a parenthesis that is not closed. Write `Bash(rm)`.",
            "settings.json:4: `permissions.denny` is skipped: this key is unknown. Did you mean `deny`?",
            "settings.json:6: `env.A` is skipped: expected a string, found 1.",
            "settings.json:8: `hooks.Stop[0].hooks[0]` is skipped: `if`: expected a string, found 3.",
            "settings.json:9: `hooks.MoonRise` is ignored: this key is unknown. Known here: PreToolUse, PostToolUse, PostToolUseFailure, PostToolBatch, PermissionRequest, PermissionDenied, UserPromptSubmit, UserPromptExpansion, MessageDisplay, SessionStart, SessionEnd, Setup, InstructionsLoaded, Notification, Stop, StopFailure and 15 more.",
            'settings.json:11: `theme` is skipped: expected one of "light", "dark", "system", "auto", "light-daltonized", "dark-daltonized", "light-ansi", "dark-ansi", found "pink".',
        ]
    )
    assert [(entry.key, entry.value, entry.source.line) for entry in entries_of(loaded)] == snapshot(
        [
            (("permissions", "allow"), "Read", 3),
            (("permissions", "allow"), "Glob", 3),
            (("permissions", "allow"), "Grep", 3),
            (("env", "B"), "2", 6),
            (("hooks", "Stop"), {"matcher": "", "hook": {"type": "command", "command": "b"}}, 8),
            (("tomorrow",), {"any": ["thing"]}, 12),
        ]
    )


@requirement("SET-2")
@pytest.mark.parametrize(
    ("text", "forbids"),
    [
        ('{"permissions": {"allow": [5]}}', False),
        ('{"permissions": {"additionalDirectories": 5}}', False),
        ('{"env": []}', False),
        ('{"theme": 5}', False),
        ('{"permissions": {"deny": [5]}}', True),
        ('{"permissions": {"ask": "Read"}}', True),
        ('{"permissions": {"alow": []}}', False),
        ('{"permissions": {"defaultMode": "plann"}}', True),
        ('{"permissions": 5}', True),
        ('{"hooks": {"PreToolUse": [{"hooks": [{"type": "comand"}]}]}}', True),
        ('{"sandbox": {"enabled": "yes"}}', True),
        ('{"permissions": {"deny": ["A"]}, "permissions": {}}', True),
        ('{"permissions": {"deny": ["A"],}}', True),
        ("[]", True),
        (" \n", False),
    ],
)
def test_what_is_skipped_says_whether_it_could_have_forbidden_something(text: str, forbids: bool) -> None:
    assert [note.may_forbid for note in _read(text).skipped] == [forbids]


@requirement("SET-2")
def test_a_hook_with_a_fault_anywhere_in_it_does_not_run_at_all() -> None:
    loaded = _read(
        '{"hooks": {"PreToolUse": [{"matcher": 5, "hooks": [{"type": "command", "command": "a"}]},'
        ' {"hooks": [{"type": "command", "command": "b", "timeout": "soon"}, {"type": "command", "command": "c"}]}]}}'
    )

    assert [entry.value["hook"]["command"] for entry in entries_of(loaded)] == ["c"]


@requirement("SET-2")
def test_what_cannot_be_read_is_skipped_as_a_whole(tmp_path: Path) -> None:
    (tmp_path / "latin.json").write_bytes(b'{"model":\n "\xe9"}')
    (tmp_path / "folder.json").mkdir()
    os.mkfifo(tmp_path / "pipe.json")
    (tmp_path / "large.json").write_bytes(b" " * (LARGEST + 1))
    (tmp_path / "loop.json").symlink_to(tmp_path / "loop.json")

    words = {
        path.name: [str(note).removeprefix(str(tmp_path)) for note in load(_place(str(path))).skipped]
        for path in sorted(tmp_path.iterdir())
    }

    assert words == snapshot(
        {
            "folder.json": ["/folder.json: the file is skipped: it cannot be read: it is a directory."],
            "large.json": ["/large.json: the file is skipped: it cannot be read: it has more than 1,048,576 bytes."],
            "latin.json": ["/latin.json:2: the file is skipped: it is not UTF-8. Save it as UTF-8."],
            "loop.json": ["/loop.json: the file is skipped: it cannot be read: Too many levels of symbolic links."],
            "pipe.json": ["/pipe.json: the file is skipped: it cannot be read: it is a named pipe."],
        }
    )


@requirement("SET-2")
def test_a_file_with_more_faults_than_anybody_makes_is_skipped_as_a_whole() -> None:
    loaded = _read(json.dumps({"permissions": {"allow": ["Read", *[5] * 1001]}}))

    assert (loaded.value, [note.words for note in loaded.skipped]) == (
        None,
        ["it has 1,001 faults. Correct it, or remove it."],
    )


def test_a_file_that_is_not_there_is_no_fault(tmp_path: Path) -> None:
    place = _place(str(tmp_path / "settings.json"))

    assert load(place) == Loaded(place, None)


@requirement("SET-5")
def test_the_older_ways_to_write_rules_and_hooks_are_read_as_the_present_ones() -> None:
    permissions = _read(
        '{"allowed_tools": ["Bash(npm *)"],\n "disabled_tools": ["Task"],\n'
        ' "allowed_domains": ["docs.rs"], "blocked_domains": ["x.org"]}',
        SettingsKind.PERMISSIONS,
    )
    hooks = _read(
        '[{"event": "PreToolUse", "command": "x", "timeout_sec": 5, "tool_matcher": "Bash"},\n {"event": "Stop"}]',
        SettingsKind.HOOKS,
    )

    assert [(".".join(entry.key), entry.value, entry.source.line) for entry in entries_of(permissions)] == [
        ("permissions.allow", "Bash(npm *)", 1),
        ("permissions.deny", "Task", 2),
        ("permissions.allowed_domains", True, 3),
        ("permissions.allow", "WebFetch(domain:docs.rs)", 3),
        ("permissions.allow", "WebFetch(domain:*.docs.rs)", 3),
        ("permissions.ask", "WebFetch(domain:x.org)", 3),
        ("permissions.ask", "WebFetch(domain:*.x.org)", 3),
    ]
    assert [(entry.key, entry.value, entry.source.line) for entry in entries_of(hooks)] == [
        (
            ("hooks", "PreToolUse"),
            {"matcher": "Bash", "hook": {"type": "command", "command": "x", "timeout": 5}},
            1,
        )
    ]


@requirement("SET-5")
def test_the_older_keys_are_read() -> None:
    loaded = _read(
        '{"model": "m", "apiKey": "k", "customApiUrl": "http://x", "theme": "dark",'
        ' "oversized_results": {"max_chars": 9, "persist_dir": "~/big", "truncation_strategy": "keep_both"}}'
    )

    assert {".".join(entry.key): entry.value for entry in entries_of(loaded)} == {
        "model": "m",
        "apiKey": "k",
        "customApiUrl": "http://x",
        "theme": "dark",
        "oversized_results.max_chars": 9,
        "oversized_results.persist_dir": "~/big",
        "oversized_results.truncation_strategy": "keep_both",
    }


@requirement("SET-2")
@given(data=st.binary(max_size=300), kind=KINDS)
def test_no_bytes_raise(data: bytes, kind: SettingsKind, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.getbasetemp() / "any.json"
    path.write_bytes(data)

    list(entries_of(load(_place(str(path), kind))))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.sampled_from(["Read", "Bash(x", "command", "disable", ""]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                [
                    "permissions",
                    "allow",
                    "deny",
                    "hooks",
                    "PreToolUse",
                    "matcher",
                    "type",
                    "command",
                    "env",
                    "mcpServers",
                    "x",
                ]
            ),
            inner,
            max_size=5,
        )
    ),
    max_leaves=25,
)


@requirement("SET-2")
@given(value=JSON, kind=KINDS)
def test_no_value_raises_and_what_is_left_of_it_stands_in_it(value: object, kind: SettingsKind) -> None:
    text = json.dumps(value)
    loaded = load_text(_place("x", kind), text)

    for entry in entries_of(loaded):
        if entry.key == ("permissions", "allow"):
            assert entry.value in text
        assert entry.source.line == 1


def _read(text: str, kind: SettingsKind = SettingsKind.SETTINGS) -> Loaded:
    return load_text(_place("settings.json", kind), text)


def _place(path: str, kind: SettingsKind = SettingsKind.SETTINGS) -> SettingsPath:
    return SettingsPath(Level.USER, path, kind)
