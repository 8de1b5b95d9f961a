"""Skills in the course of a conversation: those for some files only, and those whose text was read."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from ..core.calls import ToolCall, ToolOutcome
from ..core.content import Text
from ..core.model import AssistantTurn, ResultTurn, Turn, UserTurn
from ..core.ports import Amendment, Note, Proposal
from ..core.values import plain_value
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


LOADED: Final = "loaded_skills"
_TEXT = re.compile(r'<skill name="([^"]+)"[^>]*>\n.*?\n</skill>', re.DOTALL)
MOST_TEXT = 15_000
"""Characters of a skill that are repeated after a compaction."""


@plain_value
class LoadedSkills:
    """The texts of the skills that an agent has used, for after a compaction. Satisfies `core.ports.Lasting`."""

    turns_of: Callable[[str], Sequence[Turn]]
    """The conversation of an agent, by its name."""
    tool: str = "Skill"

    def lasting(self, agent: str, /) -> tuple[Note, ...]:
        found = dict[str, str]()
        for text in _texts_of_skills(self.turns_of(agent), self.tool):
            for match in _TEXT.finditer(text):
                found.pop(match[1], None)
                found[match[1]] = match[0] if len(match[0]) <= MOST_TEXT else _name_alone(match[1], self.tool)
        return (Note(LOADED, "\n\n".join(found.values())),) if found else ()


def _name_alone(name: str, tool: str) -> str:
    return f'<skill name="{name}">\nIts text is long. Use it again with the {tool} tool if you need it.\n</skill>'


def _texts_of_skills(turns: Sequence[Turn], tool: str) -> Iterator[str]:
    """What calls of the tool resulted in, and what an earlier compaction has kept of that."""
    calls = set[str]()
    for turn in turns:
        match turn:
            case UserTurn(content):
                texts = (block.text for block in content if isinstance(block, Text))
                yield from (kept for text in texts for kept in re.findall(rf"(?s)<{LOADED}>\n.*?\n</{LOADED}>", text))
            case AssistantTurn(parts):
                calls |= {part.id for part in parts if isinstance(part, ToolCall) and part.name == tool}
            case ResultTurn(results):
                shown = (one for one in results if one.call_id in calls and not one.is_error)
                yield from (block.text for one in shown for block in one.content if isinstance(block, Text))
