"""Agent keeps the promises of every tool; what agents do is shown with them."""

from __future__ import annotations

from pathlib import Path

import pytest

from ferrule.agents.agent_catalog import Agents
from ferrule.agents.launcher import AgentLauncher
from ferrule.providers.scripted import says
from ferrule.testing import bare_context
from ferrule.testing.tool_contract import ToolContract
from ferrule.tools.agent import Agent
from tests.agents.cast import Cast, opened
from tests.requirement import requirement


class TestAgentContract(ToolContract):
    samples = ({"description": "a task", "prompt": "task"},)

    folder: Path | None = None

    @pytest.fixture(autouse=True)
    def _a_folder(self, tmp_path_factory: pytest.TempPathFactory) -> None:
        self.folder = tmp_path_factory.mktemp("parent")

    def make(self) -> Agent:
        spawner = AgentLauncher(Agents())
        if self.folder is not None:
            session = opened(self.folder)
            session.provider = Cast(task=[says("Done.")])
            spawner.attach(session)
        return Agent(spawner)


@requirement("SCHED-7")
def test_an_agent_call_itself_touches_nothing(tmp_path: Path) -> None:
    tool = Agent()

    effects = tool.effects(tool.parse({"description": "x", "prompt": "y"}), bare_context(tmp_path))

    assert effects.touches == ()


def test_a_rule_names_the_kind_of_agent() -> None:
    tool = Agent()
    input = tool.parse({"description": "x", "prompt": "y", "subagent_type": "Explore"})

    assert (tool.matches("explore", input), tool.matches("Plan", input)) == (True, False)


def test_without_a_spawner_it_is_off_and_with_one_it_lists_the_kinds() -> None:
    assert Agent().unavailable() == "this session cannot start agents"
    assert "- Explore (Glob, Grep, Read): Finds out" in Agent(AgentLauncher(Agents())).spec.description
