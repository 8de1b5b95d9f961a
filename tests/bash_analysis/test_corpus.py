"""Commands from the test suites and advisories of other tools, and our own attempts to get past the analysis."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ferrule.bash_analysis.analysis import Analysis, analyse
from tests.requirement import requirement

CORPUS = Path(__file__).parent.parent / "corpus"


def cases(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (CORPUS / name).read_text(encoding="utf-8").splitlines()]


OF_COMMANDS = [case for case in cases("bash.jsonl") if case["layer"] == "command" and not case["contested"]]
OWN = cases("bash_own.jsonl")


def analysed(case: dict[str, Any]) -> Analysis:
    return analyse(case["command"], cwd="/srv/repo", home="/home/u")


@pytest.mark.parametrize("case", [case for case in OF_COMMANDS if case["expect"] != "read_only"], ids=lambda c: c["id"])
@requirement("SHELL-2")
def test_what_must_ask_never_counts_as_reading(case: dict[str, Any]) -> None:
    assert not analysed(case).effects.read_only


@requirement("SHELL-3")
def test_ordinary_reading_commands_count_as_reading() -> None:
    ordinary = [case for case in OF_COMMANDS if case["expect"] == "read_only"]

    asking = [case["command"] for case in ordinary if not analysed(case).effects.read_only]

    assert len(asking) <= 0.03 * len(ordinary), asking


@requirement("PERM-9")
def test_every_catastrophe_is_named_as_a_risk() -> None:
    catastrophic = [case for case in OF_COMMANDS if case["expect"] == "deny_or_ask"]

    assert [case["command"] for case in catastrophic if not analysed(case).risks] == []


@requirement("SHELL-2", "SHELL-3")
def test_our_own_attempts_end_as_they_must() -> None:
    wrong = {
        case["command"]: case["expect"]
        for case in OWN
        if analysed(case).effects.read_only != (case["expect"] == "read_only")
    }

    assert wrong == {}


@requirement("PERM-9")
def test_what_no_rule_may_approve_is_seen_however_it_is_dressed() -> None:
    passing = [
        case["command"]
        for case in OWN
        if case["denied"] and not any(risk.severity == "critical" for risk in analysed(case).risks)
    ]

    assert passing == []


def test_there_are_attempts_of_every_kind() -> None:
    assert sum(case["expect"] == "ask" for case in OWN) > 1000
    assert sum(case["expect"] == "read_only" for case in OWN) > 300
    assert len({case["id"] for case in OWN}) == len({case["command"] for case in OWN}) == len(OWN)
