"""What a session says of its tools before any is loaded is what they say themselves."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import get_args

import pytest

from ferrule.agents.agent_catalog import Agents
from ferrule.agents.launcher import AgentLauncher
from ferrule.core.on_demand import OnDemand
from ferrule.host.processes.session_shell import Shell
from ferrule.host.search.file_search import Search
from ferrule.host.web.backends import Brave
from ferrule.host.web.searching import WebSearches
from ferrule.mcp.config import Stdio
from ferrule.mcp.server_context import Around
from ferrule.mcp.servers import McpServers
from ferrule.skills.skill_catalog import Skills
from ferrule.tools import CARDS, Need, Services, builtin_tools, render_cards, tools_on_demand
from tests.agents.test_agent_files import pages, put
from tests.mcp.running import config
from tests.tools.answering import Person
from tests.tools.test_plan_mode import ModesOf

TOLD = ("name", "title", "hint", "aliases", "exposure", "feature", "server")
KNOWN = ("result_limit", "keep", "time_limit", "only_reads")


def test_the_cards_are_what_the_tools_say() -> None:
    """Where they are not, they are written anew, so that the next run passes."""
    cards = render_cards()
    written = CARDS.read_text(encoding="utf-8")
    if written != cards:
        CARDS.write_text(cards, encoding="utf-8")

    assert written == cards, "cards.json was out of date and is written anew: commit it"


def _equipped(folder: Path) -> Services:
    put(folder / "project/.claude/skills/greet/SKILL.md", "---\ndescription: Greets.\n---\nHello")
    return Services(
        shell=lambda: Shell(folder),
        spawner=AgentLauncher(Agents(None)),
        skills=Skills(pages(folder)),
        mcp=McpServers([config(Stdio("/nonexistent"))], Around(roots=(), state_folder=folder)),
        modes=ModesOf(),
        questioner=Person(),
        searches=WebSearches(backend=Brave("key")),
    )


def _empty(folder: Path) -> Services:
    return Services(
        search=Search(program=""),
        skills=Skills(pages(folder)),
        mcp=McpServers([], Around(roots=(), state_folder=folder)),
        searches=WebSearches(wrong="there is no key"),
    )


@pytest.mark.parametrize("services_in", [lambda folder: Services(), _empty, _equipped])
def test_a_tool_on_demand_says_what_the_tool_says(tmp_path: Path, services_in: Callable[[Path], Services]) -> None:
    services = services_in(tmp_path)

    for shown, real in zip(tools_on_demand(services), builtin_tools(services), strict=True):
        assert [getattr(shown, name) for name in (*TOLD, *KNOWN)] == [getattr(real, name) for name in (*TOLD, *KNOWN)]
        assert shown.spec == real.spec
        assert shown.unavailable() == real.unavailable()


def test_each_service_switches_on_the_tools_that_need_it(tmp_path: Path) -> None:
    equipped, tools = _equipped(tmp_path), tools_on_demand(_equipped(tmp_path))

    assert [tool.name for tool in tools if tool.unavailable()] == []
    assert {need for need in get_args(Need) if Services().why_missing(need)} >= set(get_args(Need)) - {"search"}
    assert [equipped.why_missing(need) for need in get_args(Need)] == [None] * len(get_args(Need))


def test_a_tool_is_loaded_once_and_by_itself() -> None:
    program = """
import sys
from ferrule.tools import tools_on_demand
todo = next(tool for tool in tools_on_demand() if tool.name == "TodoWrite")
assert todo.tool is todo.tool
print([name for name in sys.modules if name.startswith("ferrule.tools.")])
"""

    done = subprocess.run((sys.executable, "-c", program), capture_output=True, text=True, check=True)

    assert done.stdout == "['ferrule.tools.todo_write']\n"


def test_all_tools_of_a_session_share_one_shell(tmp_path: Path) -> None:
    made: list[Shell] = []

    def make() -> Shell:
        made.append(Shell(tmp_path))
        return made[-1]

    for tool in tools_on_demand(Services(shell=make)):
        assert isinstance(tool, OnDemand)
        assert tool.tool.name == tool.name

    assert len(made) == 1


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
