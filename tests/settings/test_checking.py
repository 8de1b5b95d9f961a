"""A settings file stays valid, or becomes so."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot

from ferrule.settings.edit_checks import check, violations_in
from ferrule.settings.settings_files import SettingsKind, kind_of
from ferrule.settings.settings_models import MODELS
from tests.requirement import requirement
from tests.settings.cases import CASES, NEWER, Case
from tests.settings.test_json_places import jsonish, values

kinds = st.sampled_from(SettingsKind)
known_keys = st.sampled_from(
    sorted(
        {
            *(str(field.alias) for model in MODELS.values() for field in model.model_fields.values()),
            *(
                "allow",
                "hooks",
                "Stop",
                "PreToolUse",
                "type",
                "command",
                "timeout",
                "matcher",
                "event",
                "a",
                "<list>",
                "[key]",
            ),
        }
    )
)
leaves = st.sampled_from(
    [None, True, 0, -1, 10**300, 1.5, "", "Bash(", "Read", "command", "http", "true", "\0", "\u2028"]
)
likely = st.recursive(
    leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(known_keys, inner, max_size=4), max_leaves=15
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
@requirement("EDIT-8")
def test_a_change_is_made_or_refused_with_words(case: Case) -> None:
    kind = kind_of(f"/project/{case.file}", home="/home/u")
    assert kind is not None

    refused = check(kind, case.before, case.after)

    if case.refused is None:
        assert refused is None
    else:
        assert refused is not None
        assert case.refused in refused.describe(case.file)


@given(kinds, values | likely, st.none() | jsonish | st.builds(json.dumps, likely))
@requirement("EDIT-8")
def test_any_value_is_taken_or_refused_with_words(kind: SettingsKind, value: Any, before: str | None) -> None:
    refused = check(kind, before, json.dumps(value))

    assert refused is None or all(str(violation).endswith((".", "?")) for violation in refused.found)


@given(kinds, jsonish | st.text(), jsonish | st.text())
@requirement("EDIT-8")
def test_any_text_is_taken_or_refused_with_words(kind: SettingsKind, before: str, after: str) -> None:
    refused = check(kind, before, after)

    assert refused is None or refused.describe("f").count("\n") == len(refused.found) + 1


@given(kinds, likely, likely)
@requirement("EDIT-8")
def test_what_may_be_written_leaves_no_violation_but_keys_unknown_before(
    kind: SettingsKind, before: Any, after: Any
) -> None:
    text = json.dumps(after)

    if check(kind, json.dumps(before), text) is None:
        assert all(violation.unknown for violation in violations_in(kind, text))
        assert check(kind, text, text) is None


@requirement("EDIT-8")
def test_unknown_keys_of_a_newer_version_are_let_be_wherever_their_entry_moves() -> None:
    group = '{"hooks": [{"type": "command", "command": "x", "colour": 1}]}'
    before = f'{{"hooks": {{"Stop": [{group}]}}}}'
    after = f'{{"hooks": {{"Stop": [{{"hooks": []}}, {group}]}}}}'

    assert check(SettingsKind.SETTINGS, before, after) is None
    assert check(SettingsKind.SETTINGS, None, after) is not None
    assert check(SettingsKind.SETTINGS, NEWER, after) is not None


@requirement("EDIT-8")
def test_a_refusal_lists_each_violation_and_says_what_to_do() -> None:
    after: dict[str, Any] = {
        "permissions": {"allow": ["Bash x", "Bash(a)b", "a)", 5], "defaultMode": "yolo", "zork": 1},
        "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "x", "timeout": -1, "foo": 1}, 3]}]},
        "theme": "pink",
        "skillListingBudgetFraction": 2,
        "cleanupPeriodDays": "30",
        "statusLine": {"type": "text", "command": []},
        "agent": "",
    }

    assert _refusal("{}", json.dumps(after)) == snapshot("""\
.claude/settings.json is a settings file, and this change would make it invalid:
- `permissions.allow[0]`: `Bash x` has a space in the tool's name. Write `Bash(x)`.
- `permissions.allow[1]`: `Bash(a)b` goes on after its closing parenthesis. Write `Tool(specifier)`, and `\\)` for one that belongs to the specifier.
- `permissions.allow[2]`: `a)` closes a parenthesis that was not opened. Write `Tool` or `Tool(specifier)`.
- `permissions.allow[3]`: expected a string, found 5.
- `permissions.defaultMode`: expected one of "default", "manual", "acceptEdits", "plan", "auto", "dontAsk", "bypassPermissions", found "yolo".
- `permissions.zork`: this key is unknown. Known here: allow, ask, deny, defaultMode, additionalDirectories, disableBypassPermissionsMode, disableAutoMode, allowed_tools, disabled_tools, pre_approval, protectedPaths, unprotectedPaths, secretPaths, notSecretPaths.
- `hooks.Stop[0].hooks[0].timeout`: expected more than 0, found -1.
- `hooks.Stop[0].hooks[0].foo`: this key is unknown. Known here: if, timeout, statusMessage, once, failClosed, type, command, args, async, asyncRewake, shell.
- `hooks.Stop[0].hooks[1]`: expected an object, found 3.
- `agent`: expected text, found "".
- `skillListingBudgetFraction`: expected at most 1, found 2.
- `cleanupPeriodDays`: expected a whole number, found "30". Write 30, without quotes.
- `theme`: expected one of "light", "dark", "system", "auto", "light-daltonized", "dark-daltonized", "light-ansi", "dark-ansi", found "pink".
- `statusLine.type`: expected "command", found "text".
- `statusLine.command`: expected a string, found a list.
Nothing was written. Correct the change and make it again.\
""")  # noqa: E501


@requirement("EDIT-8")
def test_a_file_that_was_broken_is_told_so() -> None:
    assert _refusal('{"model": "a",}', '{"model": "b" "theme": 5}') == snapshot("""\
.claude/settings.json is already an invalid settings file, so a change must make it valid. Remaining errors:
- invalid JSON in line 1, column 15: expected `,` or `}`, found `"`. A comma is missing before it.
Nothing was written. Repair all of it in one change; Write can replace the whole file.\
""")


@requirement("EDIT-8")
def test_the_list_is_bounded_and_says_how_many_more_there_are() -> None:
    many = _refusal("{}", json.dumps({"availableModels": list(range(5000))}))

    assert many.count("\n- `availableModels[") == 20
    assert "\n- and 4,980 more.\n" in many


def test_odd_keys_and_long_values_are_shown_in_short() -> None:
    odd = {"env": {"a\nb": 1, "x" * 500: 2, "\u202e": 3, "": 4}, "model": ["m" * 500], "theme": "t" * 500}

    assert _refusal("{}", json.dumps(odd)) == snapshot("""\
.claude/settings.json is a settings file, and this change would make it invalid:
- `env["a\\nb"]`: expected a string, found 1.
- `env.xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx...`: expected a string, found 2.
- `env["\\u202e"]`: expected a string, found 3.
- `env[""]`: expected a string, found 4.
- `model`: expected a string, found a list.
- `theme`: expected one of "light", "dark", "system", "auto", "light-daltonized", "dark-daltonized", "light-ansi", "dark-ansi", found "ttttttttttttttttttttttttttttttttttttttttttttttttttttttt...".
Nothing was written. Correct the change and make it again.\
""")  # noqa: E501


def _refusal(before: str, after: str) -> str:
    refused = check(SettingsKind.SETTINGS, before, after)
    assert refused is not None
    return refused.describe(".claude/settings.json")
