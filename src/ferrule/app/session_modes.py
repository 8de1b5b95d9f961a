"""The permission modes of a session, and the rules of its skills, for those who use them."""

from __future__ import annotations

from collections.abc import Iterator

from ..core.ports import Note
from ..core.state import SessionState
from ..core.verdicts import Behavior
from ..permissions.judge import RuleJudge
from ..permissions.modes import Mode
from ..permissions.path_patterns import Places
from ..permissions.rules import Origin, Rule, RuleError, parse_rule
from ..skills.turn_rules import Judging, MakeJudge, SkillRules
from .live_rules import LiveRules

PLANNING = (
    "Plan mode is on: look around and ask, but change nothing. When you know how the work is to be done, "
    "call ExitPlanMode with the plan (find it with ToolSearch if you cannot see it)."
)
WORKING = "Plan mode is off: from now on you may change things, as far as the permissions go."


class SessionModes:
    """Satisfies `core.ports.Modes`, and `core.ports.NoteSource`: the model is told when planning begins and ends."""

    def __init__(self, rules: LiveRules, state: SessionState) -> None:
        self._rules = rules
        self._state = state
        self._told = False

    def current(self) -> str:
        return str(self._rules.mode)

    def before(self) -> str:
        """What was left for planning; what is safest for a session that began with it."""
        before = self._state.mode_before
        return before if before and before != Mode.PLAN else self._at_start()

    def _at_start(self) -> str:
        mode = self._rules.configured_mode
        return str(Mode.DEFAULT if mode is Mode.PLAN else mode)

    async def notes(self, agent: str) -> tuple[Note, ...]:
        if agent != "main":
            return ()
        planning = self._rules.mode is Mode.PLAN
        told, self._told = self._told, planning
        if planning == told:
            return ()
        return (Note("plan_mode", PLANNING if planning else WORKING),)


def judging_for(places: Places) -> MakeJudge:
    """Rules of skills, matched as those of settings are."""

    def make(rules: SkillRules) -> Judging:
        return RuleJudge(tuple(_parse_rules(rules)), Mode.DEFAULT, places).judge

    return make


def _parse_rules(rules: SkillRules) -> Iterator[Rule]:
    """One that allows and cannot be read allows nothing. One that denies raises, and a judge that raises denies."""
    origin = Origin(rules.origin)
    for text in rules.allow:
        try:
            yield parse_rule(text, Behavior.ALLOW, origin)
        except RuleError:
            continue
    for text in rules.deny:
        yield parse_rule(text, Behavior.DENY, origin)
