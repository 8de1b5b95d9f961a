"""Settings as values, and the schemas that say the same."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import fastjsonschema
import pytest

from ferrule.settings.edit_checks import violations_in
from ferrule.settings.hook_entries import CommandHook, FlatHook, HookGroup
from ferrule.settings.json_places import parse
from ferrule.settings.rule_entries import why_no_rule
from ferrule.settings.schemas import schema_file, schema_of, schema_text
from ferrule.settings.settings_files import SettingsKind, kind_of
from ferrule.settings.settings_models import OversizedResults, Permissions, SettingsFile
from ferrule.text.json_reader import NotJson
from tests.settings.cases import CASES, Case

ROOT = Path(__file__).parent.parent.parent
ONLY_IN_CODE = ("parenthesis", "space in the tool's name", "reserved", "occurs twice")
"""What the schemas cannot say."""


def test_a_settings_file_becomes_a_value_whose_missing_keys_are_none() -> None:
    settings = SettingsFile.model_validate(
        {
            "permissions": {"deny": ["Bash(rm *)"], "allowed_tools": []},
            "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "x", "if": "Bash(git *)", "async": True}]}]},
            "cleanupPeriodDays": 7,
            "oversized_results": {"max_chars": 10, "truncation_strategy": "keep_end"},
            "tomorrow": 1,
        }
    )

    hook = CommandHook.model_validate({"type": "command", "command": "x", "if": "Bash(git *)", "async": True})
    assert settings.permissions == Permissions.model_validate({"deny": ("Bash(rm *)",), "allowed_tools": ()})
    assert settings.hooks == {"Stop": (HookGroup.model_validate({"hooks": [hook]}),)}
    assert (hook.condition, hook.background, hook.timeout) == ("Bash(git *)", True, None)
    assert (settings.cleanup_period_days, settings.model, settings.sandbox) == (7, None, None)
    assert isinstance(settings.oversized_results, OversizedResults)
    assert settings.model_fields_set == {"permissions", "hooks", "cleanup_period_days", "oversized_results", "tomorrow"}


def test_hooks_as_a_list_become_flat_hooks() -> None:
    flat = {"event": "PreToolUse", "command": "x", "timeout_sec": 5, "tool_matcher": "Bash"}

    assert SettingsFile.model_validate({"hooks": [flat]}).hooks == (FlatHook.model_validate(flat),)


@pytest.mark.parametrize("kind", SettingsKind)
def test_the_shipped_schema_is_what_the_model_says(kind: SettingsKind) -> None:
    shipped = schema_file(kind).read_text(encoding="utf-8")

    assert shipped == schema_text(kind), "run python -m ferrule.settings.schemas"


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_schema_and_the_check_agree(case: Case) -> None:
    kind = kind_of(f"/project/{case.file}", home="/home/u")
    assert kind is not None
    try:
        value = parse(case.after).value
    except NotJson:
        return

    found = violations_in(kind, case.after)

    if not any(mark in violation.words for violation in found for mark in ONLY_IN_CODE):
        assert _accepted(kind, value) == (not found)


@cache
def _validator(kind: SettingsKind) -> Callable[[Any], Any]:
    return fastjsonschema.compile({**schema_of(kind), "$schema": "http://json-schema.org/draft-07/schema#"})


def _accepted(kind: SettingsKind, value: Any) -> bool:
    try:
        _validator(kind)(value)
    except fastjsonschema.JsonSchemaValueException:
        return False
    return True


def test_the_wheel_brings_the_schemas(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True, timeout=60)
    (wheel,) = tmp_path.glob("*.whl")

    with zipfile.ZipFile(wheel) as archive:
        for kind in SettingsKind:
            assert json.loads(archive.read(f"ferrule/settings/schemas/{kind}.json")) == schema_of(kind)


@pytest.mark.parametrize(
    "rule", ["Read", " Read ", "Bash()", "Bash(*)", "Bash(a (b) c)", r"Bash(\))", "mcp__my server", "*"]
)
def test_a_rule_that_is_spelt_well_is_taken(rule: str) -> None:
    assert why_no_rule(rule) is None


@pytest.mark.parametrize(
    "rule", ["", "(", ")", "()", "(x)", "Bash(", "Bash)", "Bash((x)", "Bash(x))", "Bash(x) ls", "Bash ls", r"Bash(x\)"]
)
def test_a_rule_that_is_spelt_badly_is_refused_with_words(rule: str) -> None:
    assert (why_no_rule(rule) or "").endswith(".")
