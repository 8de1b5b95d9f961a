"""The table of contents: every built-in tool, one line each.

Their modules are loaded with the first call of one of them. Until then each is
described by a card in `cards.json`, which a test compares with the tools.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ..agents.launcher import AgentLauncher
from ..core.on_demand import Card, OnDemand
from ..core.ports import Extractor, Modes, Questioner
from ..core.tool import AnyTool, Keep, guide_listing, load_guide
from ..core.values import named_value
from ..host.documents.text_pages import REMINDER, TOKENS
from ..host.files.workfiles import Workfiles
from ..host.search.file_search import Search
from ..host.web.search_variables import NO_SEARCH
from ..skills.skill_catalog import Skills
from ..skills.turn_rules import TurnRules

if TYPE_CHECKING:
    from ..host.processes.session_shell import Shell
    from ..host.web.searching import WebSearches
    from ..host.web.web_pages import WebPages
    from ..mcp.servers import McpServers
    from .bash import Analyse

NOBODY_ANSWERS: Final = "nobody is there to answer, so decide yourself and say what you assumed"
NOBODY_APPROVES: Final = "nobody is there to approve a plan, so give it as your answer"
BASH_LIMIT: Final = 30_000
CARDS: Final = Path(__file__).with_name("cards.json")


def _web_pages() -> WebPages:
    from ..host.web.web_pages import WebPages

    return WebPages()


@named_value
class Services:
    """What the built-in tools of one session share. Each has a default of its own."""

    files: Workfiles = field(default_factory=Workfiles)
    search: Search = field(default_factory=Search)
    parts_folder: Path | None = None
    """Where Read puts what no page can hold."""
    shell: Callable[[], Shell] | None = None
    """Makes the place where commands run, when one is to; without it the tools for that are off."""
    analyse: Analyse | None = None
    """Says what a command would do, instead of Ferrule's own analysis."""
    bash_limit: int = BASH_LIMIT
    """Characters that the model gets of a command, and of its output both ends or one."""
    bash_keep: Keep = "both"
    mcp: McpServers | None = None
    """The MCP servers; without any, the tools for them are off."""
    read_tokens: int = TOKENS
    """What one page of Read may cost."""
    reminder: str | None = REMINDER
    """What Read says below the text of a file."""
    reminder_off_for: tuple[str, ...] = ()
    """The models that need no such reminder."""
    pages: Callable[[], WebPages] = _web_pages
    """Makes what WebFetch reads from, when that is loaded."""
    extractor: Extractor | None = None
    """Answers from a page; without one WebFetch gives the page."""
    searches: WebSearches | None = None
    """What WebSearch asks; without one it is off."""
    questioner: Questioner | None = None
    """Answers questions; without one nobody does."""
    approver_answers: bool = False
    """Whether the approver of calls fills in the answers instead, and approves plans."""
    modes: Modes | None = None
    """The permission modes; without them plan mode is off."""
    skills: Skills | None = None
    skill_rules: TurnRules | None = None
    """Applies the rules that skills define."""
    spawner: AgentLauncher | None = None
    """What starts agents."""


def tools_on_demand(services: Services | None = None) -> tuple[AnyTool, ...]:
    """The built-in tools, of which none is loaded before one is called."""
    at = services or Services()

    @cache
    def load() -> Mapping[str, AnyTool]:
        return {tool.name: tool for tool in builtin_tools(at)}

    return tuple(
        OnDemand(card, guide=partial(_guide, card, at), off=partial(_why_off, card.name, at), load=load)
        for card in _cards()
    )


def card_of(tool: AnyTool) -> dict[str, Any]:
    """What `cards.json` says of a tool."""
    return Card.of(tool).to_json()


def render_cards() -> str:
    """What `cards.json` has to say, one line for each tool."""
    return "[\n" + ",\n".join(json.dumps(card_of(tool), ensure_ascii=False) for tool in builtin_tools()) + "\n]\n"


def _cards() -> Iterator[Card]:
    return map(Card.from_json, json.loads(CARDS.read_text(encoding="utf-8")))


def _guide(card: Card, at: Services) -> str:
    guide = load_guide(str(CARDS.with_name(card.file)))
    if card.name == "Agent" and at.spawner:
        return guide_listing(guide, "Kinds of agents", at.spawner.agents.list_for_model())
    if card.name == "Skill" and at.skills:
        return guide_listing(guide, "Skills", at.skills.list_for_model())
    return guide


def _why_off(name: str, at: Services) -> str | None:
    """As the tool itself says it."""
    match name:
        case "Agent":
            return None if at.spawner else "this session cannot start agents"
        case "Bash" | "KillShell" | "TaskOutput":
            return None if at.shell else "no shell is available"
        case "CallMcpTool" | "ListMcpResources" | "ReadMcpResource":
            return None if at.mcp and at.mcp.names else "no MCP server is configured"
        case "AskUserQuestion":
            return None if at.questioner or at.approver_answers else NOBODY_ANSWERS
        case "EnterPlanMode" | "ExitPlanMode":
            if at.modes is None:
                return "this session has no permission modes"
            return None if at.questioner or at.approver_answers else NOBODY_APPROVES
        case "Glob" | "Grep":
            return at.search.unavailable()
        case "Skill":
            return None if at.skills and at.skills.all else "no skills are available"
        case "WebSearch":
            if at.searches is None:
                return NO_SEARCH
            return None if at.searches.backend else at.searches.wrong
        case _:
            return None


def builtin_tools(services: Services | None = None) -> tuple[AnyTool, ...]:
    from .agent import Agent
    from .ask_user_question import AskUserQuestion
    from .bash import Bash
    from .call_mcp_tool import CallMcpTool
    from .edit import Edit
    from .enter_plan_mode import EnterPlanMode
    from .exit_plan_mode import ExitPlanMode
    from .glob import Glob
    from .grep import Grep
    from .kill_shell import KillShell
    from .list_mcp_resources import ListMcpResources
    from .notebook_edit import NotebookEdit
    from .read import Read
    from .read_mcp_resource import ReadMcpResource
    from .skill import Skill
    from .task_output import TaskOutput
    from .todo_write import TodoWrite
    from .tool_search import ToolSearch
    from .web_fetch import WebFetch
    from .web_search import WebSearch
    from .write import Write

    at = services or Services()
    shell = at.shell() if at.shell else None
    background = shell.background if shell else None
    return (
        Agent(at.spawner, background),
        AskUserQuestion(at.questioner, by_approver=at.approver_answers),
        Bash(shell, analyse=at.analyse, limit=at.bash_limit, keep=at.bash_keep),
        CallMcpTool(at.mcp),
        Edit(at.files),
        EnterPlanMode(at.modes, has_approver=at.questioner is not None or at.approver_answers),
        ExitPlanMode(at.modes, at.questioner, by_approver=at.approver_answers),
        Glob(at.search),
        Grep(at.search, at.files.ledgers),
        KillShell(shell),
        ListMcpResources(at.mcp),
        NotebookEdit(at.files),
        Read(
            at.files.ledgers,
            parts_folder=at.parts_folder,
            token_budget=at.read_tokens,
            reminder=at.reminder,
            reminder_off_for=at.reminder_off_for,
        ),
        ReadMcpResource(at.mcp),
        Skill(at.skills, at.skill_rules),
        TaskOutput(shell),
        TodoWrite(),
        ToolSearch(),
        WebFetch(at.pages(), at.extractor),
        WebSearch(at.searches),
        Write(at.files),
    )
