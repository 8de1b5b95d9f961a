"""`ferrule tools`: lists the available tools."""

from __future__ import annotations

import argparse
import json
import os
import sys
import textwrap

from ...agents.agent_catalog import Agents
from ...app.build import open_session
from ...core.tool import AnyTool, Exposure
from ...output.plain import Style, width_of
from ...skills.skill_catalog import Skills
from ..exits import OK
from ..session_flags import settings_from


def run(chosen: argparse.Namespace) -> int:
    settings = settings_from(chosen)
    agents = Agents(settings.pages, settings.agents)
    skills = Skills(settings.pages) if settings.pages else None
    session = open_session(settings, agents=agents, skills=skills, approver_answers=True)  # as if somebody were there
    tools = list(session.registry.pool)
    for warning in (*agents.warnings, *(skills.warnings if skills else ())):
        print(f"ferrule: {warning}", file=sys.stderr)
    if chosen.json:
        print(json.dumps([_describe(tool) for tool in tools], indent=2, ensure_ascii=False))
    else:
        _list(tools)
    return OK


def _describe(tool: AnyTool) -> dict[str, object]:
    spec = tool.spec
    return {
        "name": spec.name,
        "title": spec.title,
        "description": spec.description,
        "input_schema": spec.input_schema,
        "output_schema": tool.output_schema(),
        "aliases": [alias.name for alias in tool.aliases],
        "deferred": spec.exposure is Exposure.DEFERRED,
        "result_limit": tool.result_limit,
    }


def _list(tools: list[AnyTool]) -> None:
    style, width = Style.of(sys.stdout, os.environ), width_of(sys.stdout, os.environ)
    widest = max((len(tool.name) for tool in tools), default=0)
    for tool in tools:
        lines = textwrap.wrap(tool.spec.summary, max(20, width - widest - 2))
        print(f"{style.paint(tool.name.ljust(widest), 'bold')}  {lines[0]}")
        for line in lines[1:]:
            print(f"{' ' * widest}  {line}")
