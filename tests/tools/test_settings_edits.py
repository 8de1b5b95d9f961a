"""Settings files through the tools that change files: what would break one is not written."""

from __future__ import annotations

from pathlib import Path

import pytest

from ferrule.core.calls import ToolOutcome
from tests.requirement import requirement
from tests.settings.cases import MADE, REFUSED, Case
from tests.tools.working import Workplace, words


@requirement("EDIT-8")
@pytest.mark.parametrize("tool", ["Edit", "Write"])
@pytest.mark.parametrize("case", MADE, ids=lambda case: case.name)
def test_a_change_that_leaves_or_makes_a_settings_file_valid_is_made(case: Case, tool: str, tmp_path: Path) -> None:
    place = Workplace(tmp_path)

    outcome = changed(place, case, tool)

    assert not outcome.is_error, words(outcome, tmp_path)
    assert (tmp_path / case.file).read_bytes().decode() == case.after


@requirement("EDIT-8")
@pytest.mark.parametrize("tool", ["Edit", "Write"])
@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.name)
def test_a_change_that_breaks_a_settings_file_is_refused_with_every_violation(
    case: Case, tool: str, tmp_path: Path
) -> None:
    place = Workplace(tmp_path)

    outcome = changed(place, case, tool)

    path = tmp_path / case.file
    assert outcome.is_error
    assert case.refused is not None
    assert case.refused in words(outcome, tmp_path)
    assert (path.read_bytes().decode() if path.exists() else None) == case.before


@requirement("EDIT-8")
def test_a_settings_file_is_known_through_a_link_and_in_any_folder(tmp_path: Path) -> None:
    place = Workplace(tmp_path)
    place.put("nested/.claude/settings.json", "{}")
    (tmp_path / "notes.txt").symlink_to("nested/.claude/settings.json")

    outcome = place.edit("notes.txt", "{}", "{,}")

    assert outcome.is_error
    assert "notes.txt is a settings file, and this change would make it invalid" in words(outcome, tmp_path)


def changed(place: Workplace, case: Case, tool: str) -> ToolOutcome:
    if case.before is not None:
        place.put(case.file, case.before)
    if tool == "Write":
        return place.write(case.file, case.after)
    return place.edit(case.file, case.before or "", case.after)
