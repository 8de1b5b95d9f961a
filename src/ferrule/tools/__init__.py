"""The built-in tools: every module of this folder is one, with its guide beside it.

A tool is loaded with its first call. Until then its card in `cards.json` describes it, which the test of the
cards writes. A tool without a card is loaded at once.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field, replace
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, Self, TypeAlias, TypeGuard

from ..agents.launcher import AgentLauncher
from ..core.on_demand import Card, OnDemand
from ..core.ports import Extractor, Modes, Questioner
from ..core.tool import AnyTool, InT, Keep, OutT, Tool, ToolDefinitionError, guide_listing, load_guide
from ..core.values import named_value
from ..host.documents.text_pages import REMINDER, TOKENS
from ..host.files.workfiles import Workfiles
from ..host.search.file_search import Search
from ..host.web.search_variables import NO_SEARCH
from ..skills.skill_catalog import Skills
from ..skills.turn_rules import TurnRules

if TYPE_CHECKING:
    from ..bash_analysis.analysis import Analyse
    from ..host.processes.command_limits import CommandLimits
    from ..host.processes.session_shell import Shell
    from ..host.web.searching import WebSearches
    from ..host.web.web_pages import WebPages
    from ..mcp.servers import McpServers

CARDS: Final = Path(__file__).with_name("cards.json")

NO_AGENTS: Final = "this session cannot start agents"
NO_MODES: Final = "this session has no permission modes"
NO_SERVERS: Final = "no MCP server is configured"
NO_SHELL: Final = "no shell is available"
NO_SKILLS: Final = "no skills are available"
NOBODY_ANSWERS: Final = "nobody is there to answer, so decide yourself and say what you assumed"
NOBODY_APPROVES: Final = "nobody is there to approve a plan, so give it as your answer"
BASH_LIMIT: Final = 10_000

Need: TypeAlias = Literal["answers", "mcp", "planning", "search", "searches", "shell", "skills", "spawner"]
"""Something that a session may lack."""


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
    command_limits: CommandLimits | None = None
    """For Bash, where they are not the usual ones."""
    concise: bool = True
    """Whether the model reads relative paths and no diffs of its own changes; people and programs see them."""
    bash_limit: int = BASH_LIMIT
    """Characters that the model gets of a command, and of its output both ends or one."""
    bash_keep: Keep | None = None
    """`None` for both ends, and the end of a command that failed."""
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

    @property
    def has_person(self) -> bool:
        """Whether somebody can answer a question or approve a plan."""
        return self.questioner is not None or self.approver_answers

    def get_shell(self) -> Shell | None:
        return self.shell() if self.shell else None

    def why_missing(self, need: Need) -> str | None:
        """Why this session lacks a service; `None` if it has it."""
        match need:
            case "answers":
                return None if self.has_person else NOBODY_ANSWERS
            case "mcp":
                return None if self.mcp and self.mcp.names else NO_SERVERS
            case "planning":
                if self.modes is None:
                    return NO_MODES
                return None if self.has_person else NOBODY_APPROVES
            case "search":
                return self.search.unavailable()
            case "searches":
                if self.searches is None:
                    return NO_SEARCH
                return None if self.searches.backend else self.searches.wrong
            case "shell":
                return None if self.shell else NO_SHELL
            case "skills":
                return None if self.skills and self.skills.all else NO_SKILLS
            case "spawner":
                return None if self.spawner else NO_AGENTS

    def list_choices(self, need: Need | None) -> str:
        """What a service offers by name, for the guide of a tool that needs it."""
        match need:
            case "spawner" if self.spawner:
                return self.spawner.agents.list_for_model()
            case "skills" if self.skills:
                return self.skills.list_for_model()
            case "shell" if self.command_limits:
                return str(self.command_limits)
            case _:
                return ""


class BuiltinTool(Tool[InT, OutT]):
    """What a tool of this folder says besides the contract of all tools."""

    needs: ClassVar[Need | None] = None
    """The service without which it is off, as `unavailable` of the tool says too."""
    choices: ClassVar[str] = ""
    """The heading under which its guide lists what that service offers; empty for most tools."""

    @classmethod
    def from_services(cls, services: Services) -> Self:
        """With the services that it uses; most tools override it."""
        return cls()


def tools_on_demand(services: Services | None = None) -> tuple[AnyTool, ...]:
    """The built-in tools by name, each loaded when it is first called."""
    at, cards = _sharing(services), _cards()
    tools = (_on_demand(cards[one], one, at) if one in cards else _load(one, at) for one in _modules())
    return tuple(sorted(tools, key=lambda tool: tool.name))


def builtin_tools(services: Services | None = None) -> tuple[BuiltinTool[Any, Any], ...]:
    """All of them, loaded."""
    at = _sharing(services)
    return tuple(sorted((_load(module, at) for module in _modules()), key=lambda tool: tool.name))


def render_cards() -> str:
    """What `cards.json` has to say, one line for each tool that can be described before it is loaded."""
    cards = (_card(tool) for tool in builtin_tools() if _can_wait(tool))
    return "[\n" + ",\n".join(json.dumps(card.to_json(), ensure_ascii=False) for card in cards) + "\n]\n"


def _sharing(services: Services | None) -> Services:
    """With one shell for all tools."""
    at = services or Services()
    return replace(at, shell=cache(at.shell)) if at.shell else at


def _modules() -> Iterator[str]:
    for name in sorted(os.listdir(CARDS.parent)):
        module, dot, suffix = name.partition(".")
        if (dot, suffix) == (".", "py") and not module.startswith("_"):
            yield module


def _load(module: str, at: Services) -> BuiltinTool[Any, Any]:
    loaded = import_module(f".{module}", __name__)
    own = [one for one in vars(loaded).values() if _is_tool(one) and one.__module__ == loaded.__name__]
    if len(own) != 1:
        raise ToolDefinitionError(f"{loaded.__file__} must define one class that derives from BuiltinTool.")
    return own[0].from_services(at)


def _is_tool(value: object) -> TypeGuard[type[BuiltinTool[Any, Any]]]:
    return isinstance(value, type) and issubclass(value, BuiltinTool)


def _on_demand(card: Card, module: str, at: Services) -> OnDemand:
    need: Any = card.needs  # written by `_card`

    def guide() -> str:
        own = load_guide(str(CARDS.with_name(f"{module}.py")))
        if card.name == "Bash" and at.command_limits:
            own = f"{own}\n\n{at.command_limits.describe()}"
        return guide_listing(own, card.choices, at.list_choices(need)) if card.choices else own

    return OnDemand(
        card, guide=guide, off=lambda: at.why_missing(need) if need else None, load=partial(_load, module, at)
    )


@cache
def _cards() -> Mapping[str, Card]:
    """By module."""
    return {card.module: card for card in map(Card.from_json, json.loads(CARDS.read_text(encoding="utf-8")))}


def _can_wait(tool: BuiltinTool[Any, Any]) -> bool:
    """Whether nothing has to be asked of the tool itself before it is called."""
    kind = type(tool)
    knows_if_off = tool.needs is not None or kind.unavailable is Tool[Any, Any].unavailable
    return knows_if_off and (bool(tool.choices) or kind.guide is Tool[Any, Any].guide)


def _card(tool: BuiltinTool[Any, Any]) -> Card:
    module = type(tool).__module__.rpartition(".")[2]
    return Card.of(tool, module=module, needs=tool.needs or "", choices=tool.choices)
