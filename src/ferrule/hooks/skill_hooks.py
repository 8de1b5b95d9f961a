"""Hooks of skills in a session: loaded when a skill is used, and run as long as its rules hold."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final

from ..engine.session import Session
from ..skills.turn_rules import NotActivated, SkillHooks, TurnRules
from .hook import Hook

MOST_LOADED: Final = 64


@lru_cache(MOST_LOADED)
def load_hooks(hooks: SkillHooks, workspace: str) -> tuple[Hook, ...]:
    """Raises `NotActivated`."""
    from .head_hooks import Brought, hooks_from_head

    brought = Brought(
        path=hooks.path,
        given=json.loads(hooks.given),
        is_trusted=hooks.is_trusted,
        without=f"the skill {hooks.skill} is not used",
        by_agent=hooks.by_agent,
        once_counts=True,
    )
    try:
        return hooks_from_head(brought, workspace).all
    except ValueError as error:
        raise NotActivated(str(error)) from None


class HooksOfSkills:
    """Those that hold for an agent, by its name."""

    def __init__(self, rules: TurnRules, sessions: Mapping[str, Session], workspace: str) -> None:
        """`sessions` are those of all agents at work."""
        self._rules = rules
        self._sessions = sessions
        self._workspace = workspace

    def __call__(self, agent: str, chain: Sequence[str] | None) -> tuple[Hook, ...]:
        """Inside of these calls; those of the agent itself where it is not about a call."""
        if chain is None:
            agent, chain = self._at_work(agent)
        held = self._rules.hooks_for(agent, chain)
        return tuple(hook for hooks in held for hook in load_hooks(hooks, self._workspace))

    def _at_work(self, id: str) -> tuple[str, Sequence[str]]:
        """Events of an agent name it by the last part of its name, which is unique."""
        for name, session in self._sessions.items():
            if name.rpartition("/")[2] == id:
                return name, session.chain
        return id, ()
