"""What a call would do, without doing it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from ..core.calls import Refusal, ToolCall, ToolOutcome
from ..core.content import View
from ..core.context import Facts, ToolContext
from ..core.effects import Effects, describe_touch
from ..core.tool import AnyTool, ToolError
from ..core.verdicts import Verdict
from ..engine.pool import ToolPool, assemble, select
from ..engine.preparing import looked_up, prepared
from ..shell.account import Risk
from ..shell.analysis import analyse
from ..shell.explain import explained as command_lines
from ..tools import builtin_tools


class CannotExplain(Exception):
    """The call itself is wrong. The message is what the model would be told."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """All that is known of a call before it runs."""

    effects: Effects
    risks: tuple[Risk, ...] = ()
    reasons: tuple[str, ...] = ()
    """Why the effects are not all known; empty if they are."""
    lines: tuple[str, ...] = ()
    """The same for people."""

    def as_data(self) -> dict[str, Any]:
        return {
            "read_only": self.effects.read_only,
            "effects": {
                "reads": [touch.path for touch in self.effects.reads],
                "writes": [touch.path for touch in self.effects.writes],
                "hosts": [touch.host for touch in self.effects.hosts],
                "commands": [list(touch.argv) for touch in self.effects.commands],
                "unknown": self.effects.unknown,
            },
            "risks": [{"kind": risk.kind, "severity": risk.severity, "message": risk.message} for risk in self.risks],
            "reasons": list(self.reasons),
        }


def explain(name: str, arguments: Mapping[str, Any], *, cwd: str, home: str) -> Explanation:
    """Raises `CannotExplain`. Paths are taken as written: no link is followed for this."""
    try:
        tool, input = _parsed(name, arguments, cwd, home)
    except (Refusal, ToolError) as refusal:
        raise CannotExplain(str(refusal)) from None
    if tool.name == "Bash":
        analysis = analyse(input.command, cwd=cwd, home=home)
        return Explanation(analysis.effects, analysis.risks, analysis.reasons, tuple(command_lines(analysis)))
    effects = tool.effects(input, _context(cwd))
    reasons = ("The tool cannot say what it would do.",) if effects.unknown else ()
    return Explanation(effects, (), reasons, tuple(_lines(effects)))


def _lines(effects: Effects) -> list[str]:
    first = "What this does is not known." if effects.unknown else "This only looks." if effects.read_only else ""
    return [first or "This changes something.", *(f"  {describe_touch(touch)}" for touch in effects.touches)]


def _parsed(name: str, arguments: Mapping[str, Any], cwd: str, home: str) -> tuple[AnyTool, Any]:
    call = ToolCall("explain", name, arguments)
    tool, adapted = looked_up(call, _pool())
    ready = prepared(call, tool, adapted, _context(cwd), _PathsAsWritten(home))
    return tool, ready.proposal.input


@lru_cache(maxsize=1)
def _pool() -> ToolPool:
    return assemble(select(builtin_tools()))


def _context(cwd: str) -> ToolContext:
    return ToolContext("explain", cwd, Facts(workspace=cwd), _Nobody())


@dataclass(frozen=True, slots=True)
class _PathsAsWritten:
    """Answers `core.ports.Paths` without a look at the disk."""

    home: str

    def anchor(self, path: str, cwd: str, /) -> str:
        if path == "~" or path.startswith("~/"):
            path = self.home + path[1:]
        return os.path.normpath(os.path.join(cwd, path))

    def resolve(self, path: str, /) -> tuple[str, tuple[str, ...]]:
        return path, ()


class _Nobody:
    """The engine's end of a call that is never made."""

    kept: Any = None
    cancelled = False
    effects: Effects | None = None
    verdict: Verdict | None = None

    def report(self, view: View, /) -> None:
        """Nobody watches."""

    async def invoke(self, name: str, arguments: Mapping[str, Any], /) -> ToolOutcome:
        raise CannotExplain("A call that is only explained makes no other calls.")
