"""Skills that are for some files only: made known when the first of those files is read."""

from __future__ import annotations

import os

from ..core.calls import ToolOutcome
from ..core.ports import Amendment, Note, Proposal
from .skill_catalog import Skills

MOST_FILES = 50
"""The most files of one call that are considered; a call that reads more scans a tree and is about none of them."""


class ActivatedSkills:
    """Satisfies `core.ports.AfterCall`. Each agent is notified once of each skill."""

    def __init__(self, skills: Skills, workspace: str) -> None:
        self._skills = skills
        self._workspace = os.path.realpath(workspace)
        self._told: dict[str, dict[str, str]] = {}
        """For each agent, the calls after which each skill was named."""

    def after(self, proposal: Proposal, outcome: ToolOutcome, /) -> Amendment | None:
        reads = proposal.effects.reads
        if outcome.is_error or not reads or len(reads) > MOST_FILES:
            return None
        told = self._told.setdefault(proposal.ctx.facts.agent, {})
        lines: list[str] = []
        for path in dict.fromkeys(touch.real or touch.path for touch in reads):
            for skill in self._skills.find_for_file(path, self._workspace):
                if skill.name not in told and os.path.isfile(path):
                    told[skill.name] = proposal.call.id
                    lines.append(f"- {skill.name}: {skill.description}")
        if not lines:
            return None
        words = "\n".join(("These skills are for files like this one. Use them with the Skill tool:", *lines))
        return Amendment(messages=(str(Note("skills", words)),))

    def keep_only(self, agent: str, call_ids: frozenset[str]) -> None:
        """Notes after other calls can no longer be read, and are repeated when they matter."""
        told = self._told.get(agent, {})
        self._told[agent] = {name: call for name, call in told.items() if call in call_ids}
