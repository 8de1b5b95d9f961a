"""What hooks add to an agent: those of the session are told of it, and those of its own file run while it works."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import partial

from ..agents.agent_kinds import AgentKind
from ..agents.launcher import AgentParts
from ..hooks.agents import AgentLifecycle
from ..hooks.hook import NO_HOOKS, HookBook
from ..hooks.lifecycle import Lifecycle
from ..hooks.payloads import SessionFacts
from ..permissions.approvers import NobodyToAsk
from ..skills.definition import SkillDefinition
from ..skills.skill_catalog import Skills
from .session_hooks import HookParts, MakeParts, tell_of_agents_compactions


def agent_hooks(
    session: HookParts | None, make: MakeParts, scene: SessionFacts, skills: Skills | None
) -> Callable[[AgentKind, str], AgentParts]:
    """For each agent its own; raises `ValueError` for one whose hooks cannot be run."""

    def parts(kind: AgentKind, agent: str) -> AgentParts:
        book = _book(kind, skills.all if skills and kind.skills else {}, scene.project)
        own = make(book, NobodyToAsk()) if book else None
        told: list[Lifecycle] = [one.lifecycle for one in (session, own) if one]
        if not told:
            return AgentParts()
        turns = AgentLifecycle(told, agent=agent.rpartition("/")[2], kind=kind.name, transcript=scene.transcript)
        attach = partial(tell_of_agents_compactions, lifecycle=turns)
        if own is None:
            return AgentParts(turns=turns, attach=attach)
        return AgentParts(
            turns=turns,
            attach=attach,
            judges=(own.judge,),
            after=own.after,
            approver=own.approver.before,
            closing=(own.runner.close,),
        )

    return parts


def _book(kind: AgentKind, skills: Mapping[str, SkillDefinition], workspace: str) -> HookBook:
    """Its own, and those of the skills whose text it begins with."""
    without = f"{kind.name} is not started"
    files = [(kind.path, kind.hooks, kind.counts)] if kind.hooks else []
    files += (
        (skill.path, json.loads(skill.hooks), skill.may_run)
        for skill in map(skills.get, kind.skills)
        if skill and skill.hooks
    )
    if not files:
        return NO_HOOKS
    from ..hooks.head_hooks import Brought, hooks_from_head

    book = NO_HOOKS
    for path, given, is_trusted in files:
        brought = Brought(path=path, given=given, is_trusted=is_trusted, without=without, by_agent=True)
        book = book.join(hooks_from_head(brought, workspace).all)
    return book
