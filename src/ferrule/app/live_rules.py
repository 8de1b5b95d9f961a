"""Rules and mode that may change while a session lasts, as one judge."""

from __future__ import annotations

from collections.abc import Callable

from ..core.ports import Proposal
from ..core.values import plain_value
from ..core.verdicts import Behavior, Verdict
from ..permissions.judge import RuleJudge
from ..permissions.modes import Mode
from ..permissions.rules import Rule


@plain_value
class Policy:
    """What decides. The same object means that nothing has changed."""

    rules: tuple[Rule, ...]
    mode: Mode
    lost: str | None = None
    """Why nothing may be allowed without a question, if so: a rule that could forbid it is not known."""


class PolicyLost(Exception):
    """The policy cannot be known at present. The message says why and what to do."""


class LiveRules:
    """Asks for the policy before each decision. While there is none to be had, nothing is allowed."""

    def __init__(self, policy: Callable[[], Policy], roots: tuple[str, ...]) -> None:
        self._policy = policy
        self._roots = roots
        self._known: Policy | None = None
        self._judge = RuleJudge((), Mode.DEFAULT, roots)

    def judge(self, proposal: Proposal, /) -> Verdict | None:
        try:
            policy = self._policy()
        except PolicyLost as lost:
            return Verdict(behavior=Behavior.DENY, source="rule", reason=str(lost))
        if policy is not self._known:
            self._known, self._judge = policy, RuleJudge(policy.rules, policy.mode, self._roots)
        verdict = self._judge.judge(proposal)
        if policy.lost is None or (verdict and verdict.behavior is Behavior.DENY):
            return verdict
        return Verdict(behavior=Behavior.ASK, source="rule", reason=policy.lost)
