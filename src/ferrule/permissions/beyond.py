"""Denies that a call's own account cannot rule out.

A program whose effects are not known may open any file and reach any host;
one that reads a folder reads what a rule denies in it. Such a call never runs
freely: it is asked about, unless a sandbox enforces the rules in question.
"""

from __future__ import annotations

from functools import cached_property
from typing import Final

from ..core.effects import ReadsPath, RunsCommand
from ..core.ports import Proposal
from ..core.values import plain_value
from ..core.verdicts import Confinement
from .matching import RuleIndex
from .paths import PathPattern, is_below
from .programs import reads_below, shows_content
from .rules import Rule

_KNOWN_TO_HIDE: Final = frozenset({"Grep", "Glob", "LSP", "Read", "Edit", "Write", "NotebookEdit"})
"""Tools that leave out what is denied, or that read one file."""
_ANYWHERE: Final = frozenset({"/", "/proc"})
"""What a word may name that is not known, and where every file has another name, below the root of a process."""


@plain_value
class OutOfReach:
    """The first rule that cannot be ruled out, and what a sandbox would have to enforce."""

    rule: Rule
    confinement: Confinement
    why: str


class Horizon:
    """Where the sight of deny rules ends."""

    def __init__(self, denies: RuleIndex) -> None:
        self._denies = denies

    def out_of_reach(self, proposal: Proposal) -> OutOfReach | None:
        if not self._denies:
            return None
        if proposal.effects.unknown:
            return self._of_unknown
        if not self._denies.reads or (proposal.tool.server is None and proposal.tool.name in _KNOWN_TO_HIDE):
            return None
        return _of_folders(self._denies, proposal)

    @cached_property
    def _of_unknown(self) -> OutOfReach | None:
        return _of_unknown(self._denies)


def _of_unknown(denies: RuleIndex) -> OutOfReach | None:
    rules = [rule for _, rule in (*denies.reads.patterns, *denies.writes.patterns, *denies.hosts)]
    if not rules:
        return None
    unreadable = _spelled(denies.reads.patterns)
    confinement = Confinement(
        unreadable=unreadable,
        unwritable=(*unreadable, *_spelled(denies.writes.patterns)),
        unreachable=tuple(pattern.text for pattern, _ in denies.hosts),
    )
    return OutOfReach(rules[0], confinement, "what it does is not known, so it may do what the rule denies")


def _of_folders(denies: RuleIndex, proposal: Proposal) -> OutOfReach | None:
    """Folders that are read whole, with something denied in them, and files whose names are not known."""
    command: RunsCommand | None = None
    shows = any(shows_content(one.argv) for one in proposal.effects.commands)
    for touch in proposal.effects.touches:
        if isinstance(touch, RunsCommand):
            command = touch
        elif isinstance(touch, ReadsPath):
            for path in dict.fromkeys((touch.path, touch.real or touch.path)):
                if shows and path in _ANYWHERE:
                    met = [*denies.reads.patterns]
                elif command is None or reads_below(command.argv):
                    met = [one for one in denies.reads.patterns if _meets(one[0], path, certain=command is None)]
                else:
                    continue
                if met:
                    confinement = Confinement(unreadable=_spelled(met))
                    return OutOfReach(met[0][1], confinement, f"{path} may hold what the rule denies")
    return None


def _meets(pattern: PathPattern, path: str, *, certain: bool) -> bool:
    """Whether the pattern may match below the path; `certain` takes only a path that holds its base, so is a folder."""
    if certain:
        return any(is_below(base, path) for base in pattern.bases if base)
    return pattern.may_match_below(path)


def _spelled(patterns: tuple[tuple[PathPattern, Rule], ...] | list[tuple[PathPattern, Rule]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(path for pattern, _ in patterns for path in pattern.spelled()))
