# ruff: noqa: E501 (the files are compared whole)
from __future__ import annotations

import json
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferrule.core.verdicts import Behavior
from ferrule.settings.levels import Level
from ferrule.settings.settings_edits import NotEdited, adding_rule
from ferrule.settings.settings_writing import NotSaved, add_rule, save_rule
from ferrule.text.matching import TextEdit
from tests.requirement import requirement
from tests.settings.folders import Folders, allow, git, hook, put, rules

ALLOW = Behavior.ALLOW
HANG = 60


@requirement("PERM-8")
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", '{\n  "permissions": {\n    "allow": [\n      "New"\n    ]\n  }\n}\n'),
        ("{}", '{\n  "permissions": {\n    "allow": [\n      "New"\n    ]\n  }\n}'),
        ('{"a":1}', '{"a":1, "permissions":{"allow":["New"]}}'),
        ('{"permissions": {"allow": ["A"]}}', '{"permissions": {"allow": ["A", "New"]}}'),
        ('{"permissions":{}}', '{"permissions":{"allow":["New"]}}'),
        (
            '{\r\n\t"permissions" : {\r\n\t\t"deny": []\r\n\t},\r\n\t"b": [1,2]\r\n}\r\n',
            '{\r\n\t"permissions" : {\r\n\t\t"deny": [],\r\n\t\t"allow": [\r\n\t\t\t"New"\r\n\t\t]\r\n\t},\r\n\t"b": [1,2]\r\n}\r\n',
        ),
        (
            '{\n    "permissions": {\n        "allow": [\n            "A",\n            "B"\n        ]\n    }\n}\n',
            '{\n    "permissions": {\n        "allow": [\n            "A",\n            "B",\n            "New"\n        ]\n    }\n}\n',
        ),
        (
            '{\n  "permissions": {\n    "allow": ["A", "B"]\n  }\n}',
            '{\n  "permissions": {\n    "allow": ["A", "B", "New"]\n  }\n}',
        ),
    ],
)
def test_a_rule_is_added_as_the_file_would_have_it(before: str, after: str) -> None:
    assert _applied(before, adding_rule(before, ALLOW, "New")) == after


@requirement("PERM-8")
def test_a_rule_that_stands_there_is_not_added_again() -> None:
    assert adding_rule('{"permissions": {"allow": ["A", "New"]}}', ALLOW, "New") == ()


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
SETTINGS = st.dictionaries(st.text(max_size=5), VALUES, max_size=4).flatmap(
    lambda others: st.fixed_dictionaries(
        {},
        optional={
            "permissions": st.dictionaries(
                st.sampled_from(["allow", "ask", "deny"]), st.lists(st.text(max_size=5), max_size=4), max_size=3
            )
        },
    ).map(lambda permissions: {**others, **permissions})
)


@requirement("PERM-8")
@given(SETTINGS, st.sampled_from([None, 1, 2, 4, "\t"]), st.booleans(), st.sampled_from(Behavior), st.text(max_size=8))
def test_adding_changes_the_value_by_that_rule_alone(
    settings: dict[str, Any], indent: int | str | None, ascii_only: bool, behavior: Behavior, rule: str
) -> None:
    text = json.dumps(settings, indent=indent, ensure_ascii=ascii_only)
    key = {Behavior.ALLOW: "allow", Behavior.ASK: "ask", Behavior.DENY: "deny"}[behavior]
    here = settings.get("permissions", {}).get(key, [])

    added = _applied(text, adding_rule(text, behavior, rule))

    expected = {
        **settings,
        "permissions": {**settings.get("permissions", {}), key: here if rule in here else [*here, rule]},
    }
    assert json.loads(added) == expected


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"a": 1,}', "line 1, column 9"),
        ("[]", "it holds no object"),
        ('{"permissions": []}', "`permissions` is not an object"),
        ('{"permissions": {"allow": "A"}}', "`permissions.allow` is not a list"),
    ],
)
def test_a_file_that_is_broken_is_left_as_it_is(text: str, words: str, tmp_path: Path) -> None:
    path = put(tmp_path / "settings.json", text)

    with pytest.raises(NotEdited, match=words.replace("[", "\\[")):
        adding_rule(text, ALLOW, "New")
    with pytest.raises(NotSaved, match="was not changed, because"):
        add_rule(str(path), ALLOW, "New")

    assert path.read_text() == text


def test_what_is_no_rule_is_not_saved(tmp_path: Path) -> None:
    with pytest.raises(NotSaved, match="not closed"):
        add_rule(str(tmp_path / "settings.json"), ALLOW, "Bash(x")

    assert list(tmp_path.iterdir()) == []


def test_a_file_is_made_where_there_is_none_and_kept_as_it_is_otherwise(tmp_path: Path) -> None:
    new, marked = tmp_path / "new" / "settings.json", tmp_path / "marked.json"
    marked.write_bytes(b'\xef\xbb\xbf{"a": "\xc3\xa9"}')
    marked.chmod(0o640)

    assert add_rule(str(new), ALLOW, "Read")
    assert add_rule(str(marked), Behavior.DENY, "Réad")
    assert not add_rule(str(marked), Behavior.DENY, "Réad")

    assert json.loads(new.read_text()) == {"permissions": {"allow": ["Read"]}}
    assert marked.read_bytes() == '\ufeff{"a": "é", "permissions": {"deny": ["Réad"]}}'.encode()
    assert stat.S_IMODE(marked.stat().st_mode) == 0o640


WRITER = """
import sys
from ferrule.core.verdicts import Behavior
from ferrule.settings.settings_writing import add_rule
path, name = sys.argv[1:]
print("ready", flush=True)
sys.stdin.readline()
for number in range(25):
    add_rule(path, Behavior.ALLOW, f"Tool{name}{number}")
"""


@requirement("PERM-8")
def test_processes_that_save_rules_in_one_file_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / ".ferrule" / "settings.local.json"
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, str(path), name], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for name in "ABC"
    ]
    for writer in writers:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write("go\n")
        writer.stdin.flush()
    for writer in writers:
        writer.communicate(timeout=HANG)

    saved = json.loads(path.read_text())["permissions"]["allow"]

    assert [writer.returncode for writer in writers] == [0, 0, 0]
    assert sorted(saved) == sorted(f"Tool{name}{number}" for name in "ABC" for number in range(25))


@requirement("PERM-8", "SET-4")
def test_a_saved_rule_counts_as_a_person_asked_for_it_and_nothing_beside_it_does(tmp_path: Path) -> None:
    folders = Folders.made(tmp_path)
    git(folders.project, "init")
    put(folders.project / ".claude" / "settings.json", {**allow("Bash"), **hook("./x")})

    path = save_rule(folders.around(), folders.store, Level.LOCAL, ALLOW, "Bash(npm test)")

    now = folders.live().current()
    assert path == str(folders.project / ".ferrule" / "settings.local.json")
    assert (rules(now, ALLOW), now.hooks) == (["Bash(npm test)"], ())


@requirement("PERM-8")
def test_a_rule_for_all_folders_is_saved_in_the_users_own_file(tmp_path: Path) -> None:
    folders = Folders.made(tmp_path)

    save_rule(folders.around(), folders.store, Level.USER, Behavior.DENY, "WebFetch")

    assert rules(folders.live().current(), Behavior.DENY) == ["WebFetch"]
    assert json.loads((folders.home / ".ferrule" / "settings.json").read_text()) == {
        "permissions": {"deny": ["WebFetch"]}
    }


@requirement("PERM-8", "SEC-2")
def test_a_link_in_the_folder_does_not_turn_its_rule_into_one_for_all(tmp_path: Path) -> None:
    folders = Folders.made(tmp_path)
    mine = put(folders.home / ".claude" / "settings.json", {})
    (folders.project / ".ferrule").mkdir()
    (folders.project / ".ferrule" / "settings.local.json").symlink_to(mine)

    with pytest.raises(NotSaved, match="is a link out of the folder"):
        save_rule(folders.around(), folders.store, Level.LOCAL, ALLOW, "Bash")

    assert mine.read_text() == "{}"


def _applied(text: str, edits: tuple[TextEdit, ...]) -> str:
    for edit in reversed(edits):
        text = text[: edit.start] + edit.new + text[edit.end :]
    return text
