"""A scene for rules: a workspace, a home folder and links that are only pretended, and calls made ready for a judge."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import urlsplit

from ferrule.bash_analysis.analysis import analyse
from ferrule.core.calls import Refusal, ToolCall
from ferrule.core.context import ToolContext
from ferrule.core.effects import Effects, ReachesHost
from ferrule.core.inputs import ToolInput
from ferrule.core.ports import Proposal
from ferrule.core.tool import Alias, AnyTool, Tool
from ferrule.core.verdicts import Behavior, Verdict
from ferrule.engine.preparing import prepare_call
from ferrule.permissions.described_machine import PathsAsWritten
from ferrule.permissions.judge import RuleJudge
from ferrule.permissions.modes import Mode
from ferrule.permissions.path_patterns import Places
from ferrule.permissions.rules import Origin, Rule, parse_valid_rules
from ferrule.testing import bare_context
from ferrule.tools import builtin_tools

CWD, HOME = "/srv/repo", "/home/u"
KINDS = {"allow": Behavior.ALLOW, "ask": Behavior.ASK, "deny": Behavior.DENY}
FILLED_IN = {
    "Edit": {"old_string": "a", "new_string": "b"},
    "Write": {"content": "x"},
    "NotebookEdit": {"new_source": "x", "cell_id": "1"},
    "Grep": {"pattern": "x"},
    "Glob": {"pattern": "*"},
}
"""What a call needs beside the parameter that a rule is about."""


class CommandInput(ToolInput):
    command: str
    run_in_background: bool = False


class Bash(Tool[CommandInput, str]):
    """Run a command. Stands in for the tool, which states what the analysis finds."""

    name = "Bash"
    input_model = CommandInput

    def effects(self, input: CommandInput, ctx: ToolContext) -> Effects:
        return analyse(input.command, cwd=ctx.cwd, home=HOME).effects

    async def call(self, input: CommandInput, ctx: ToolContext) -> str:
        return ""


class AddressInput(ToolInput):
    url: str
    prompt: str = ""


class WebFetch(Tool[AddressInput, str]):
    """Fetch a page. Stands in for the tool, which reaches the host of a plain web address, and else cannot say."""

    name = "WebFetch"
    input_model = AddressInput

    def effects(self, input: AddressInput, ctx: ToolContext) -> Effects:
        parts = urlsplit(input.url)
        plain = parts.scheme in ("http", "https") and "\\" not in input.url and parts.username is None
        return Effects.of(ReachesHost(parts.hostname, sends=False)) if plain and parts.hostname else Effects()

    async def call(self, input: AddressInput, ctx: ToolContext) -> str:
        return ""


class AnyInput(ToolInput):
    subagent_type: str = ""
    model: str = ""
    skill: str = ""
    args: str = ""
    value: Any = None


class Named(Tool[AnyInput, str]):
    """Do something that nobody knows of."""

    input_model = AnyInput

    def __init__(self, name: str, server: str | None = None, aliases: tuple[Alias, ...] = ()) -> None:
        self.name = name
        self.server = server
        self.aliases = aliases

    async def call(self, input: AnyInput, ctx: ToolContext) -> str:
        return ""


def tool_named(name: str, server: str | None = None) -> AnyTool:
    known: dict[str, AnyTool] = {tool.name: tool for tool in (*builtin_tools(), Bash(), WebFetch())}
    if name in ("Agent", "Task"):
        return Named("Agent", aliases=(Alias("Task"),))
    return known.get(name) or Named(name, server)


def rules_of(
    given: Mapping[str, Iterable[str]],
    origin: Origin = Origin("settings.json"),  # noqa: B008 - immutable
) -> tuple[Rule, ...]:
    """The rules there are; what is none is skipped."""
    return tuple(
        rule for kind, behavior in KINDS.items() for rule in parse_valid_rules(given.get(kind, ()), behavior, origin)
    )


def places(cwd: str = CWD, *roots: str) -> Places:
    return Places(cwd=(cwd,), home=(HOME,), roots=(cwd, *roots))


def proposed(
    tool: AnyTool, arguments: Mapping[str, Any], *, cwd: str = CWD, links: Mapping[str, str] | None = None
) -> Proposal:
    """As the engine would put the call before a judge. Raises `Refusal` for what it would refuse before."""
    call = ToolCall("1", tool.name, arguments)
    filled = {**FILLED_IN.get(tool.name, {}), **arguments}
    return prepare_call(call, tool, filled, bare_context(cwd), PathsAsWritten(HOME, links or {})).proposal


def judged(
    rules: Mapping[str, Iterable[str]],
    tool: AnyTool | str,
    arguments: Mapping[str, Any],
    *,
    mode: Mode = Mode.DEFAULT,
    links: Mapping[str, str] | None = None,
    **more: Any,
) -> Verdict | None:
    tool = tool_named(tool) if isinstance(tool, str) else tool
    return RuleJudge(rules_of(rules), mode, places(), **more).judge(proposed(tool, arguments, links=links))


def decided(rules: Mapping[str, Iterable[str]], tool: AnyTool | str, arguments: Mapping[str, Any], **more: Any) -> str:
    """allow, ask or deny; silence asks, and so does nobody for a call that never gets so far."""
    try:
        verdict = judged(rules, tool, arguments, **more)
    except Refusal:
        return "deny"
    return "ask" if verdict is None else verdict.behavior.name.lower()


def command(rules: Mapping[str, Iterable[str]], text: str, **more: Any) -> str:
    return decided(rules, "Bash", {"command": text}, **more)
