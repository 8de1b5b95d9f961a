"""How an agent is restricted compared with its session. It never may do more."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Final

from ..core.ports import Proposal
from ..core.tool import AnyTool
from ..core.verdicts import Behavior, Verdict
from ..engine.pool import Layer, Selection
from .agent_kinds import AgentKind

NOT_FOR_AGENTS: Final = ("AskUserQuestion", "EnterPlanMode", "ExitPlanMode")
"""Tools that are only for the conversation with the person."""
AGENT: Final = "Agent"
_NOT_IN_A_NAME: Final = re.compile(r"[^A-Za-z0-9_-]")


def tools_of(kind: AgentKind, *, deepest: bool) -> Layer:
    """The tools that an agent of this kind has; `deepest` ones start no further agents."""
    servers = [f"mcp__{_NOT_IN_A_NAME.sub('_', name)}" for name in kind.servers]

    def why(tool: AnyTool) -> str | None:
        if _is_named(tool, NOT_FOR_AGENTS):
            return "only the conversation with the person has it"
        if deepest and tool.name == AGENT:
            return "agents cannot be nested deeper"
        if _is_named(tool, kind.without) or (kind.tools is not None and not _is_named(tool, (*kind.tools, *servers))):
            return f"an agent of the kind {kind.name} does not have it"
        return None

    def narrow(selection: Selection) -> Selection:
        return selection.dropping(why)

    return narrow


def _is_named(tool: AnyTool, names: Sequence[str]) -> bool:
    """`mcp__server` means all tools of a server, and `*` any characters."""
    own = (tool.name, *(alias.name for alias in tool.aliases))
    return any(fnmatchcase(one, name) or one.startswith(f"{name}__") for one in own for name in names)


class OnlyLooks:
    """The judge of an agent whose kind has the mode `plan`."""

    def __init__(self, name: str) -> None:
        self._denied = Verdict(
            behavior=Behavior.DENY, source="mode", reason=f"an agent of the kind {name} changes nothing"
        )

    def judge(self, proposal: Proposal, /) -> Verdict | None:
        effects = proposal.effects
        if effects.unknown or effects.writes or any(host.sends for host in effects.hosts):
            return self._denied
        return None


class AsksNobody:
    """The approver of an agent whose kind has the mode `dontAsk`."""

    async def approve(self, proposal: Proposal, verdict: Verdict, /) -> Verdict:
        reason = f"{verdict.reason}, and this agent may not ask"
        return Verdict(behavior=Behavior.DENY, source="mode", reason=reason, rule=verdict.rule, origin=verdict.origin)
