"""The narrowest rules that would allow a call: for a person's "always", and to explain what would change a decision."""

from __future__ import annotations

import asyncio
import logging
import os
import re
from collections.abc import Callable
from typing import Final

from ..core.effects import ReachesHost, ReadsPath, RunsCommand, WritesPath
from ..core.ports import Proposal
from ..core.state import Granted, SessionState
from ..core.verdicts import Behavior
from ..settings.levels import Level, surroundings
from ..settings.settings_writing import NotSaved, save_rule
from ..settings.trust_store import NotStored, TrustStore
from .approvals import AnswerScope, OneAtATime, Person
from .live_rules import LiveRules, PolicyLost
from .path_patterns import is_below
from .rule_forms import COMMAND_TOOLS
from .rule_matching import command_of
from .tool_names import MCP

log = logging.getLogger(__name__)

MOST: Final = 5
"""More rules than a person reads are not offered."""
_IN_COMMANDS: Final = re.compile(r"[\\*?()]")
_IN_PATHS: Final = re.compile(r"[\\*?\[\]()!#]")


def suggest_rules(proposal: Proposal, cwd: str, allows: Callable[[tuple[str, ...]], bool]) -> tuple[str, ...]:
    """No wider than the call; empty if no such rule helps.

    `allows` tells whether the call would be allowed with these rules added to
    the existing ones: what stays forbidden is not offered.
    """
    for rules in (_parts(proposal), _whole(proposal), _touches(proposal, cwd)):
        if rules and len(rules) <= MOST and allows(rules):
            return tuple(rule for rule in rules if not allows(tuple(other for other in rules if other != rule)))
    return ()


def suggest_for_call(proposal: Proposal, rules: LiveRules, cwd: str) -> tuple[str, ...]:
    """The narrowest rules that would allow the call; empty if no rule helps."""
    try:
        return suggest_rules(proposal, cwd, lambda texts: rules.would_allow(proposal, texts))
    except PolicyLost:
        return ()


def make_approver(
    person: Person, rules: LiveRules, state: SessionState, cwd: str, store: TrustStore | None = None
) -> OneAtATime:
    """`store` records that a person wanted a saved rule; without it the rule is for the session only."""

    def suggest(proposal: Proposal) -> tuple[str, ...]:
        return suggest_for_call(proposal, rules, cwd)

    async def keep(texts: tuple[str, ...], reach: AnswerScope) -> None:
        for text in texts:
            state.apply(Granted(text))
            if reach is AnswerScope.SAVED and store is not None:
                await asyncio.to_thread(_save, store, cwd, text)

    return OneAtATime(person, judge=rules.judge, suggest=suggest, keep=keep)


def _save(store: TrustStore, cwd: str, rule: str) -> None:
    try:
        save_rule(surroundings(cwd, os.environ), store, Level.LOCAL, Behavior.ALLOW, rule)
    except (NotSaved, NotStored) as error:  # it holds for this session all the same
        log.warning("the rule %s was not saved: %s", rule, error)


def _parts(proposal: Proposal) -> tuple[str, ...]:
    """One rule for each command, so that each also matches in other combinations."""
    if proposal.tool.name not in COMMAND_TOOLS or proposal.tool.server is not None:
        return ()
    sources = (
        " ".join(touch.argv)
        for touch in proposal.effects.touches
        if isinstance(touch, RunsCommand) and not touch.within and touch.argv
    )
    return tuple(dict.fromkeys(_of_command(proposal.tool.name, source) for source in sources if source.strip()))


def _whole(proposal: Proposal) -> tuple[str, ...]:
    """The call as written."""
    if proposal.tool.server is not None or proposal.tool.name.startswith(MCP):
        return (proposal.tool.name,)
    command = command_of(proposal) if proposal.tool.name in COMMAND_TOOLS else None
    return (_of_command(proposal.tool.name, command),) if command and command.strip() else ()


def _touches(proposal: Proposal, cwd: str) -> tuple[str, ...]:
    rules: list[str] = []
    for touch in proposal.effects.touches:
        match touch:
            case WritesPath(path):
                rules.append(f"Edit({_of_path(path, cwd)})")
            case ReadsPath(path):
                rules.append(f"Read({_of_path(path, cwd)})")
            case ReachesHost(host, False):
                rules.append(f"WebFetch(domain:{host})")
            case _:
                pass
    return tuple(dict.fromkeys(rules))


def _of_command(tool: str, command: str) -> str:
    return f"{tool}({_IN_COMMANDS.sub(_escape, command)})"


def _of_path(path: str, cwd: str) -> str:
    """Relative to the working directory if below it, so that it applies for everyone who shares the settings."""
    inside = is_below(path, cwd) and path != cwd
    written = f"./{path[len(cwd.rstrip('/')) + 1 :]}" if inside else f"/{path}"
    return _IN_PATHS.sub(_escape, written)


def _escape(found: re.Match[str]) -> str:
    return f"\\{found[0]}"
