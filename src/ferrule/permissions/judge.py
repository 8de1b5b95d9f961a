"""Rules and mode as one judge: deny before ask before allow, then the mode, then silence."""

from __future__ import annotations

from collections.abc import Iterable

from ..core.ports import Proposal
from ..core.tool import AnyTool
from ..core.verdicts import Behavior, Verdict
from .modes import Mode, mode_verdict
from .rules import Rule


class RuleJudge:
    """Answers at once. A verdict is found by the tool's name, so rules for other tools cost nothing."""

    def __init__(self, rules: Iterable[Rule], mode: Mode, roots: Iterable[str]) -> None:
        self._mode = mode
        self._roots = tuple(roots)
        self._by_tool: dict[str, Verdict] = {}
        for rule in rules:
            known = self._by_tool.get(rule.tool)
            if known is None or rule.behavior > known.behavior:
                self._by_tool[rule.tool] = _ruled(rule)

    def judge(self, proposal: Proposal, /) -> Verdict | None:
        return self._ruled(proposal.tool) or mode_verdict(self._mode, proposal.effects, self._roots)

    def _ruled(self, tool: AnyTool) -> Verdict | None:
        """A rule may name a tool by an old name too; the strictest counts."""
        strict = self._by_tool.get(tool.name)
        for alias in tool.aliases:
            verdict = self._by_tool.get(alias.name)
            if verdict is not None and (strict is None or verdict.behavior > strict.behavior):
                strict = verdict
        return strict


def _ruled(rule: Rule) -> Verdict:
    verb = {Behavior.ALLOW: "allows", Behavior.ASK: "asks about", Behavior.DENY: "denies"}[rule.behavior]
    reason = f"rule `{rule.text}` in {rule.origin} {verb} it"
    return Verdict(behavior=rule.behavior, source="rule", reason=reason, rule=rule.text, origin=rule.origin)
