"""What a session says of its tools before any is loaded is what they say themselves."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ferrule.agents.agent_catalog import Agents
from ferrule.agents.launcher import AgentLauncher
from ferrule.core.on_demand import OnDemand
from ferrule.host.processes.session_shell import Shell
from ferrule.tools import CARDS, Services, builtin_tools, render_cards, tools_on_demand

TOLD = ("name", "title", "hint", "aliases", "exposure", "feature", "server")
KNOWN = ("result_limit", "keep", "time_limit", "only_reads")


def test_the_cards_are_what_the_tools_say() -> None:
    """Write them anew with `scripts/cards`."""
    assert CARDS.read_text(encoding="utf-8") == render_cards()


@pytest.mark.parametrize("equipped", [False, True])
def test_a_tool_on_demand_says_what_the_tool_says(tmp_path: Path, equipped: bool) -> None:
    services = Services(shell=lambda: Shell(tmp_path), spawner=AgentLauncher(Agents(None))) if equipped else Services()

    for shown, real in zip(tools_on_demand(services), builtin_tools(services), strict=True):
        assert [getattr(shown, name) for name in (*TOLD, *KNOWN)] == [getattr(real, name) for name in (*TOLD, *KNOWN)]
        assert shown.spec == real.spec
        assert shown.unavailable() == real.unavailable()


def test_tools_are_loaded_once_and_together() -> None:
    tools = tools_on_demand(Services())
    first, second = tools[0], tools[1]
    assert isinstance(first, OnDemand)
    assert isinstance(second, OnDemand)

    assert first.tool is first.tool
    assert type(second.tool).__name__ == second.name


def test_a_session_can_make_its_first_request_without_pydantic(tmp_path: Path) -> None:
    program = """
import sys
from ferrule.app.build import Settings, open_session
session = open_session(Settings(cwd=sys.argv[1]))
assert len(session.registry.pool.specs_for_request()) > 10
print([name for name in ("pydantic", "pydantic_core", "yaml", "mcp", "pathspec", "tree_sitter") if name in sys.modules])
"""

    done = subprocess.run((sys.executable, "-c", program, str(tmp_path)), capture_output=True, text=True, check=True)

    assert done.stdout == "[]\n"
