"""Rules that a skill brings: they hold while it is read, and for the rest of the turn in which it was used.

One more judge beside the session's own. What it allows answers what nobody
else has an opinion on; what others deny or ask about stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from typing import Any, Final, TypeAlias

from ..core.ports import Proposal
from ..core.state import SessionState
from ..core.values import plain_value
from ..core.verdicts import Verdict

KEY: Final = "skill_rules"
"""The state key of the rules of one turn: a mapping with `turn`, `allow`, `deny` and `origin`."""


@plain_value
class SkillRules:
    allow: tuple[str, ...]
    deny: tuple[str, ...]
    origin: str
    """The file of the skill."""

    def __bool__(self) -> bool:
        return bool(self.allow or self.deny)

    def saved(self, turn: int, before: Mapping[str, Any] | None) -> Mapping[str, Any]:
        """As a value of the session's state, with what other skills brought in the same turn."""
        same = before if before and before.get("turn") == turn else None
        return {
            "turn": turn,
            "allow": [*(same["allow"] if same else ()), *self.allow],
            "deny": [*(same["deny"] if same else ()), *self.deny],
            "origin": self.origin,
        }


Judging: TypeAlias = Callable[[Proposal], Verdict | None]
MakeJudge: TypeAlias = Callable[[SkillRules], Judging]
"""For rules as users write them; those that cannot be read allow nothing."""


class TurnRules:
    """The judge. `states` holds the state of each agent that is at work, by its name."""

    def __init__(self, states: Mapping[str, SessionState], make_judge: MakeJudge) -> None:
        self._states = states
        self._make_judge = make_judge
        self._during: dict[tuple[str, str], SkillRules] = {}
        """By the agent and the id of the call: some services give the same ids in every conversation."""
        self._made: dict[SkillRules, Judging] = {}

    @contextmanager
    def during(self, agent: str, call_id: str, rules: SkillRules) -> Generator[None]:
        """For calls made inside of this one, by the agent itself and by agents that it starts there."""
        self._during[agent, call_id] = rules
        try:
            yield
        finally:
            del self._during[agent, call_id]

    def of_turn(self, agent: str) -> Mapping[str, Any] | None:
        state = self._states.get(agent)
        return state.values.get(KEY) if state else None

    def judge(self, proposal: Proposal, /) -> Verdict | None:
        facts = proposal.ctx.facts
        held = [
            rules
            for (agent, id), rules in self._during.items()
            if id in facts.chain and f"{facts.agent}/".startswith(f"{agent}/")
        ]
        saved = self.of_turn(facts.agent)
        if saved and saved.get("turn") == facts.turn:
            held.append(SkillRules(tuple(saved["allow"]), tuple(saved["deny"]), str(saved["origin"])))
        opinions = [self._judging(rules)(proposal) for rules in held]
        return max(filter(None, opinions), key=lambda verdict: verdict.behavior, default=None)

    def _judging(self, rules: SkillRules) -> Judging:
        if rules not in self._made:
            self._made[rules] = self._make_judge(rules)
        return self._made[rules]
