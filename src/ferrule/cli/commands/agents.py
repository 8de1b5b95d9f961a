"""`ferrule agents`: lists the kinds of agents."""

from __future__ import annotations

import argparse
import json
import os
import sys

from ...agents.agent_catalog import Agents
from ...agents.agent_kinds import AgentKind
from ...output.plain import Style, clean, fit, width_of
from ..exits import OK
from ..session_flags import settings_from


def run(chosen: argparse.Namespace) -> int:
    settings = settings_from(chosen)
    agents = Agents(settings.pages, settings.agents)
    kinds = list(agents.all.values())
    for warning in agents.warnings:
        print(f"ferrule: {warning}", file=sys.stderr)
    if chosen.json:
        print(json.dumps([_describe(kind) for kind in kinds], indent=2, ensure_ascii=False))
    else:
        _list(kinds)
    return OK


def _describe(kind: AgentKind) -> dict[str, object]:
    return {
        "name": kind.name,
        "description": kind.description,
        "tools": None if kind.tools is None else list(kind.tools),
        "model": kind.model or None,
        "path": str(kind.path) if kind.path else None,
    }


def _list(kinds: list[AgentKind]) -> None:
    style, width = Style.of(sys.stdout, os.environ), width_of(sys.stdout, os.environ)
    widest = max((len(kind.name) for kind in kinds), default=0)
    for kind in kinds:
        words = fit(clean(kind.description), max(10, width - widest - 2), ellipsis=style.ellipsis).rstrip()
        print(f"{style.paint(clean(kind.name).ljust(widest), 'bold')}  {words}")
