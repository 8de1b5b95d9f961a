"""Cases from the test suites and issues of other tools, as far as they are about text.

The others need a file: they are listed here with the reason. All of them go
through the Edit tool in `tests/tools/test_edit_corpus.py`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ferrule.text.matching import Ambiguous, Edited, NoChange, NotFound, apply, splice_edits
from tests.requirement import requirement

CORPUS = Path(__file__).parent.parent / "corpus" / "edit.jsonl"
CASES: list[dict[str, Any]] = [json.loads(line) for line in CORPUS.read_text(encoding="utf-8").splitlines()]

NEEDS_A_FILE = {
    "e-create-001": "creates a file",
    "e-create-003": "the file is missing",
    "e-create-009": "the path is a directory",
    "e-bom-005": "the mark is kept where bytes become text",
    "e-bom-006": "the mark is kept where bytes become text",
    "e-encoding-007": "the encoding has to be found out",
    "e-encoding-008": "the encoding has to be found out",
    "e-encoding-009": "bytes that are no text",
    "e-encoding-011": "a binary file",
    "e-multi-008": "the file is read-only",
}
OF_TEXT = [case for case in CASES if case["id"] not in NEEDS_A_FILE]


@pytest.mark.parametrize("case", OF_TEXT, ids=lambda case: case["id"])
@requirement("EDIT-1", "EDIT-3", "EDIT-4", "EDIT-5")
def test_an_edit_ends_as_it_must(case: dict[str, Any]) -> None:
    done = outcome(case["file"], case["old"], case["new"], case["replace_all"])

    assert done not in [expected(case, one) for one in case.get("forbidden", ())]
    if case["tolerance"] == "consensus":
        assert done == expected(case, case["expect"])
    else:
        assert done in [expected(case, one) for one in (case["expect"], *case["accept"])]


@pytest.mark.parametrize("case", [case for case in OF_TEXT if case.get("concurrent")], ids=lambda case: case["id"])
def test_edits_made_one_after_the_other_are_both_there(case: dict[str, Any]) -> None:
    text = outcome(case["file"], case["old"], case["new"], False)[1]
    for other in case["concurrent"]:
        text = outcome(text, other["old"], other["new"], False)[1]

        assert text == other["final"]


def test_every_case_is_tested_here_or_has_a_reason_not_to_be() -> None:
    needing = {case["id"] for case in CASES if case.get("file") is None or "mode" in case}

    assert needing == set(NEEDS_A_FILE)


def outcome(text: str, old: str, new: str, replace_all: bool) -> tuple[str, str]:
    match apply(text, old, new, replace_all=replace_all):
        case Edited(edits=edits):
            return "ok", splice_edits(text, edits)
        case NotFound():
            return "not_found", text
        case Ambiguous():
            return "ambiguous", text
        case NoChange():
            return "noop", text


def expected(case: dict[str, Any], end: dict[str, Any]) -> tuple[str, str]:
    return end["result"], end.get("content", case["file"])
