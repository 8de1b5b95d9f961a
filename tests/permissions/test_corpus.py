"""Cases from the documentation, test suites and issues of other tools, and our own: every one ends as it must."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from ferrule.app.explain_stand_ins import described
from ferrule.app.explaining import explain
from tests.permissions.scene import CWD, HOME
from tests.requirement import requirement

CORPUS = Path(__file__).parent.parent / "corpus"
PASSES = {"allow": {"ALLOW"}, "ask": {"ASK"}, "deny": {"DENY"}, "not_allow": {"ASK", "DENY"}}
OF_THE_ENGINE = {"r-path_race-001": "a link planted after the check; what is opened is what was judged"}


def cases(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (CORPUS / name).read_text(encoding="utf-8").splitlines()]


OWN = cases("rules_own.jsonl")
FAMILIES = sorted({case["family"] for case in OWN})


@requirement("PERM-1", "PERM-3", "PERM-4", "PERM-5", "PERM-6", "PERM-7", "PERM-10", "PERM-13")
@pytest.mark.parametrize("case", cases("rules.jsonl"), ids=lambda case: case["id"])
def test_a_call_is_decided_as_it_must_be(case: dict[str, Any]) -> None:
    if case["id"] in OF_THE_ENGINE:
        pytest.skip(OF_THE_ENGINE[case["id"]])
    decision = _decision(case)

    if not case["contested"]:
        assert decision in PASSES[case["expect"]], case["why"]


@requirement("PERM-1", "PERM-3", "PERM-4", "PERM-5", "PERM-6", "PERM-7", "PERM-10", "PERM-13")
@pytest.mark.parametrize("family", FAMILIES)
def test_our_own_calls_are_decided_as_they_must_be(family: str) -> None:
    wrong = {
        case["id"]: (case["rules"], case["input"], case["expect"], decision)
        for case in OWN
        if case["family"] == family and (decision := _decision(case)) not in PASSES[case["expect"]]
    }

    assert wrong == {}


def test_there_are_calls_of_every_family() -> None:
    assert min(sum(case["family"] == family for case in OWN) for family in FAMILIES) > 10
    assert {case["expect"] for case in OWN} == set(PASSES)
    assert len({case["id"] for case in OWN}) == len(OWN)


def _decision(case: dict[str, Any]) -> str:
    scene = described(
        cwd=case.get("cwd", CWD),
        home=case.get("home", HOME),
        project_root=case.get("project_root"),
        rules=case["rules"],
        mode=case.get("mode", "default"),
        symlinks=case.get("symlinks") or case.get("fs", {}).get("symlinks"),
    )
    server = case.get("mcp", {}).get("server")
    said = asyncio.run(explain(case["tool"], case["input"], scene, server=server, hook=case.get("hook")))
    return said.verdict.behavior.name
