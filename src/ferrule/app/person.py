"""A person who answers for a session: what they are asked, and what their "always" adds."""

from __future__ import annotations

import asyncio
import logging
import os

from ..core.ports import Proposal
from ..core.state import Granted, SessionState
from ..core.verdicts import Behavior
from ..permissions.approvals import AnswerScope, OneAtATime, Person
from ..permissions.suggesting import suggest_rules
from ..settings.levels import Level, surroundings
from ..settings.settings_writing import NotSaved, save_rule
from ..settings.trust_store import NotStored, TrustStore
from .live_rules import LiveRules

log = logging.getLogger(__name__)


def make_approver(
    person: Person, rules: LiveRules, state: SessionState, cwd: str, store: TrustStore | None = None
) -> OneAtATime:
    """`store` remembers that a saved rule was a person's wish; without one it is saved for the session alone."""

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
