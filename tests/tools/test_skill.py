"""Skill keeps the promises of every tool; what skills do is shown with them."""

from __future__ import annotations

from pathlib import Path

import pytest

from ferrule.core.effects import ChangesState
from ferrule.skills.skill_catalog import Skills
from ferrule.testing import bare_context
from ferrule.testing.tool_contract import ToolContract
from ferrule.tools.skill import Skill
from tests.agents.test_agent_files import pages, put


class TestSkillContract(ToolContract):
    samples = ({"skill": "greet"}, {"skill": "/greet", "args": "all of you"})

    root: Path | None = None

    @pytest.fixture(autouse=True)
    def _a_skill(self, tmp_path_factory: pytest.TempPathFactory) -> None:
        self.root = tmp_path_factory.mktemp("skills")
        put(self.root / "project/.claude/skills/greet/SKILL.md", "---\ndescription: Greets.\n---\nHello $ARGUMENTS")

    def make(self) -> Skill:
        return Skill(Skills(pages(self.root)) if self.root else None)


def test_only_a_skill_with_rules_changes_anything(tmp_path: Path) -> None:
    head = "---\ndescription: d\nallowed-tools: Read\n"
    put(tmp_path / "project/.claude/skills/plain/SKILL.md", "---\ndescription: d\n---\nx")
    put(tmp_path / "project/.claude/skills/rules/SKILL.md", f"{head}---\nx")
    put(tmp_path / "project/.claude/skills/forks/SKILL.md", f"{head}context: fork\n---\nx")
    tool = Skill(Skills(pages(tmp_path, trusted=True)))

    touches = [
        tool.effects(tool.parse({"skill": name}), bare_context(tmp_path)).touches
        for name in ("plain", "rules", "forks")
    ]

    assert touches == [(), (ChangesState("skill_rules"),), ()]


def test_its_guide_lists_the_skills(tmp_path: Path) -> None:
    put(tmp_path / "project/.claude/skills/greet/SKILL.md", "---\ndescription: Greets.\nargument-hint: '[who]'\n---\nx")

    assert Skill(Skills(pages(tmp_path))).spec.description.endswith("Skills:\n- greet [who]: Greets.")
