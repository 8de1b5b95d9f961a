"""Cases from the test suites and issues of other tools, through the Edit tool on real files."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest

from ferrule.core.calls import ToolOutcome
from ferrule.core.content import plain_text
from ferrule.host.files.open_files import FileIdentity
from ferrule.host.files.text_files import NotText
from tests.requirement import requirement
from tests.text.test_edit_corpus import CASES
from tests.tools.working import Workplace

SAID = {
    "error_missing": ["does not exist"],
    "error_directory": ["it is a directory"],
    "error_binary": ["cannot be changed as text"],
    "error_encoding": ["has no way to write", "cannot be changed as text"],
    "error_readonly": ["write-protected"],
    "not_found": ["is not in"],
    "ambiguous": ["occurs"],
    "noop": ["would not change"],
}
"""What a refusal must say, one of these, to count as this one."""


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
@requirement("EDIT-1", "EDIT-3", "EDIT-4", "EDIT-5", "EDIT-7", "FILE-6")
def test_an_edit_of_a_file_ends_as_it_must(case: dict[str, Any], tmp_path: Path) -> None:
    place = Workplace(tmp_path)
    path = _arranged(place, case)
    before = path.read_bytes() if path.is_file() else None

    outcome = place.edit("file.txt", case["old"], case["new"], replace_all=case["replace_all"])

    after = path.read_bytes() if path.is_file() else None
    ends = [case["expect"], *case.get("accept", ())]
    assert any(_is(end, outcome, before, after) for end in ends), (plain_text(outcome.content), after)
    assert not any(_is(end, outcome, before, after) for end in case.get("forbidden", ()))
    if case["tolerance"] == "consensus" and not case.get("accept"):
        assert _is(case["expect"], outcome, before, after)


def _arranged(place: Workplace, case: dict[str, Any]) -> Path:
    path = place.folder / "file.txt"
    content = _content(case, "file")
    if case.get("path_is_dir"):
        path.mkdir()
    elif content is not None:
        place.put("file.txt", content, seen=False)
        try:
            place.see(path)
        except NotText:  # as Read knows a picture
            identity = FileIdentity.of(str(path), path.stat(), content)
            place.files.ledgers.of("main").saw_whole(identity, None)
        if "mode" in case:
            path.chmod(int(case["mode"], 8))
    return path


def _is(end: dict[str, Any], outcome: ToolOutcome, before: bytes | None, after: bytes | None) -> bool:
    if end["result"] in ("ok", "created"):
        wanted = _content(end, "content")
        return not outcome.is_error and (wanted is None or after == wanted)
    return (
        outcome.is_error
        and after == before
        and any(part in plain_text(outcome.content) for part in SAID[end["result"]])
    )


def _content(value: dict[str, Any], key: str) -> bytes | None:
    if (text := value.get(key)) is not None:
        return text.encode()
    if (encoded := value.get(f"{key}_b64")) is not None:
        return base64.b64decode(encoded)
    return None
