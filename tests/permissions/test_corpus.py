"""Cases from the documentation, test suites and issues of other tools: every one ends as it must."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ferrule.core.calls import Refusal
from ferrule.core.verdicts import Behavior, Verdict, strictest
from ferrule.permissions.judge import RuleJudge
from ferrule.permissions.modes import Mode
from ferrule.permissions.rules import Origin
from tests.permissions.scene import places, proposed, rules_of, tool_named
from tests.requirement import requirement

CORPUS = Path(__file__).parent.parent / "corpus" / "rules.jsonl"
CASES: list[dict[str, Any]] = [json.loads(line) for line in CORPUS.read_text(encoding="utf-8").splitlines()]
PASSES = {"allow": {"allow"}, "ask": {"ask"}, "deny": {"deny"}, "not_allow": {"ask", "deny"}}
OF_THE_ENGINE = {"r-path_race-001": "a link planted after the check; what is opened is what was judged"}


@requirement("PERM-1", "PERM-3", "PERM-4", "PERM-5", "PERM-6", "PERM-7", "PERM-10", "PERM-13")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_a_call_is_decided_as_it_must_be(case: dict[str, Any]) -> None:
    if case["id"] in OF_THE_ENGINE:
        pytest.skip(OF_THE_ENGINE[case["id"]])
    decision = _decision(case)

    if not case["contested"]:
        assert decision in PASSES[case["expect"]], case["why"]


def _decision(case: dict[str, Any]) -> str:
    rules = rules_of(case["rules"], Origin("settings.json", base=case["project_root"]))
    tool = tool_named(case["tool"], case.get("mcp", {}).get("server"))
    try:
        proposal = proposed(tool, case["input"], cwd=case["cwd"], links=case.get("fs", {}).get("symlinks"))
    except Refusal:
        return "deny"
    verdict = RuleJudge(rules, Mode.DEFAULT, places(case["cwd"])).judge(proposal)
    return strictest([verdict, _hook(case)]).behavior.name.lower()


def _hook(case: dict[str, Any]) -> Verdict | None:
    """What a hook's judge would say; output that is no JSON says nothing."""
    said = case.get("hook", {}).get("decision")
    behavior = {"allow": Behavior.ALLOW, "ask": Behavior.ASK, "deny": Behavior.DENY}.get(said)
    return None if behavior is None else Verdict(behavior=behavior, source="hook", reason="a hook said so")
