"""What a person reads before they allow a call."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Iterator

from ..core.effects import describe_touch
from ..core.ports import Proposal
from ..core.state import Granted, SessionState
from ..core.verdicts import Behavior
from ..output.plain import clean, lines
from ..permissions.approvals import AnswerScope, ApprovalQuestion, OneAtATime, Person
from ..permissions.live_rules import LiveRules
from ..permissions.suggesting import suggest_rules
from ..settings.levels import Level, surroundings
from ..settings.settings_writing import NotSaved, save_rule
from ..settings.trust_store import NotStored, TrustStore

log = logging.getLogger(__name__)


def make_approver(
    person: Person, rules: LiveRules, state: SessionState, cwd: str, store: TrustStore | None = None
) -> OneAtATime:
    """`store` records that a person wanted a saved rule; without it the rule is for the session only."""

    def suggest(proposal: Proposal) -> tuple[str, ...]:
        return suggest_rules(proposal, cwd, lambda texts: rules.would_allow(proposal, texts))

    async def keep(texts: tuple[str, ...], reach: AnswerScope) -> None:
        for text in texts:
            state.apply(Granted(text))
            if reach is AnswerScope.SAVED and store is not None:
                await asyncio.to_thread(_save, store, cwd, text)

    return OneAtATime(person, judge=rules.judge, suggest=suggest, keep=keep)


def _save(store: TrustStore, cwd: str, rule: str) -> None:
    try:
        save_rule(surroundings(cwd, os.environ), store, Level.LOCAL, Behavior.ALLOW, rule)
    except (NotSaved, NotStored) as error:  # it holds for this session all the same
        log.warning("the rule %s was not saved: %s", rule, error)


MOST_LINES = 60
"""Lines of a diff or a command that are shown."""


def question_lines(question: ApprovalQuestion) -> Iterator[str]:
    proposal, verdict = question.proposal, question.verdict
    agent = proposal.ctx.facts.agent
    yield clean(proposal.tool.describe(proposal.input)) + (f"  (agent {clean(agent)})" if agent != "main" else "")
    shown = lines(question.view)
    yield from (f"  {line}" for line in shown[:MOST_LINES])
    if len(shown) > MOST_LINES:
        yield f"  ... and {len(shown) - MOST_LINES:,} more lines"
    yield from (f"  {clean(describe_touch(touch))}" for touch in proposal.effects.touches)
    yield from (f"Risk ({risk.severity}): {clean(risk.message)}" for risk in verdict.risks)
    yield f"It is asked because {clean(verdict.reason)}."
    if question.rules:
        yield "Always would add: " + ", ".join(f"`{clean(rule)}`" for rule in question.rules)
