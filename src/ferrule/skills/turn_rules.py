"""Rules and hooks that a skill defines: they apply while it is read, and for the rest of the turn in which it was used.

An additional judge. It can allow what no other judge has an opinion on;
what others deny or ask about stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any, Final, TypeAlias

from ..core.ports import Proposal
from ..core.state import SessionState
from ..core.values import plain_value
from ..core.verdicts import Behavior, Verdict
from ..permissions.judge import RuleJudge
from ..permissions.modes import Mode
from ..permissions.path_patterns import Places
from ..permissions.rules import parse_rules, parse_valid_rules
from .definition import SkillDefinition

KEY: Final = "skill_rules"
"""The state key of the rules of one turn: a mapping with `turn`, `allow`, `deny`, `origin` and `hooks`."""
MAIN: Final = "main"


@plain_value
class SkillHooks:
    """As written in the head of a skill, with what it takes to run them."""

    skill: str
    path: str
    given: str
    """JSON."""
    is_trusted: bool
    by_agent: bool
    """Whether it is an agent that stops when the skill is done."""


@plain_value
class SkillRules:
    allow: tuple[str, ...]
    deny: tuple[str, ...]
    origin: str
    """The file of the skill."""
    hooks: tuple[SkillHooks, ...] = ()

    @classmethod
    def of(cls, skill: SkillDefinition, agent: str = MAIN) -> SkillRules:
        """Those of a skill that this agent uses."""
        by_agent = skill.forks or agent != MAIN
        hooks = SkillHooks(skill.name, skill.path, skill.hooks, skill.may_run, by_agent)
        return cls(skill.allowed, skill.disallowed, skill.path, (hooks,) if skill.hooks else ())

    def __bool__(self) -> bool:
        return bool(self.allow or self.deny or self.hooks)

    def as_state(self, turn: int, before: Mapping[str, Any] | None) -> Mapping[str, Any]:
        """As a value of the session's state, with what other skills defined in the same turn."""
        same = before if before and before.get("turn") == turn else None
        return {
            "turn": turn,
            "allow": [*(same["allow"] if same else ()), *self.allow],
            "deny": [*(same["deny"] if same else ()), *self.deny],
            "origin": self.origin,
            "hooks": [*(same.get("hooks", ()) if same else ()), *map(asdict, self.hooks)],
        }


Judging: TypeAlias = Callable[[Proposal], Verdict | None]
MakeJudge: TypeAlias = Callable[[SkillRules], Judging]
"""For rules as users write them; those that cannot be read allow nothing."""
CheckHooks: TypeAlias = Callable[[SkillHooks], object]
"""Raises `NotActivated` for hooks that cannot be run."""


def judging_for(places: Places) -> MakeJudge:
    """Rules of skills, matched as those of settings are.

    One that allows and is invalid allows nothing. One that denies raises, and a judge that raises denies.
    """

    def make(rules: SkillRules) -> Judging:
        allow = parse_valid_rules(rules.allow, Behavior.ALLOW, rules.origin)
        deny = parse_rules(rules.deny, Behavior.DENY, rules.origin)
        return RuleJudge((*allow, *deny), Mode.DEFAULT, places).judge

    return make


class NotActivated(ValueError):
    """A skill is not used, because its hooks would not run. The message says why."""


def no_hooks(hooks: SkillHooks) -> object:
    """For sessions that do not run hooks."""
    raise NotActivated(f"{hooks.path} defines hooks, which cannot run here, so {hooks.skill} is not used.")


class TurnRules:
    """The judge. `states` holds the state of each agent that is at work, by its name."""

    def __init__(
        self,
        states: Mapping[str, SessionState],
        make_judge: MakeJudge,
        *,
        turn_of: Callable[[str], int],
        check: CheckHooks = no_hooks,
    ) -> None:
        """`turn_of` gives the turn that an agent is in, by its name."""
        self._states = states
        self._make_judge = make_judge
        self._turn_of = turn_of
        self._check = check
        self._during: dict[tuple[str, str], SkillRules] = {}
        """By the agent and the id of the call: some services give the same ids in every conversation."""
        self._made: dict[SkillRules, Judging] = {}

    @contextmanager
    def during(self, agent: str, call_id: str, rules: SkillRules) -> Generator[None]:
        """For calls made inside of this one, by the agent itself and by agents that it starts there.

        Raises `NotActivated` where hooks of it cannot be run.
        """
        for hooks in rules.hooks:
            self._check(hooks)
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
        held = [*self._rules_of_calls(facts.agent, facts.chain)]
        saved = self.of_turn(facts.agent)
        if saved and saved.get("turn") == facts.turn:
            held.append(SkillRules(tuple(saved["allow"]), tuple(saved["deny"]), str(saved["origin"])))
        opinions = [self._judging(rules)(proposal) for rules in held]
        return max(filter(None, opinions), key=lambda verdict: verdict.behavior, default=None)

    def hooks_for(self, agent: str, chain: Collection[str]) -> tuple[SkillHooks, ...]:
        """Those that apply to an agent inside of these calls; those of the agents that it works for apply to it too."""
        found = [hooks for rules in self._rules_of_calls(agent, chain) for hooks in rules.hooks]
        for name, state in self._states.items():
            saved = state.values.get(KEY)
            if saved and _is_inside(agent, name) and saved.get("turn") == self._turn_of(name):
                found += (SkillHooks(**one) for one in saved.get("hooks", ()))
        return tuple(dict.fromkeys(found))

    def _rules_of_calls(self, agent: str, chain: Collection[str]) -> Iterator[SkillRules]:
        for (name, id), rules in self._during.items():
            if id in chain and _is_inside(agent, name):
                yield rules

    def _judging(self, rules: SkillRules) -> Judging:
        if rules not in self._made:
            self._made[rules] = self._make_judge(rules)
        return self._made[rules]


def _is_inside(agent: str, other: str) -> bool:
    return f"{agent}/".startswith(f"{other}/")
