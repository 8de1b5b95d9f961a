"""Deny rules that a call's declared effects cannot rule out.

A program with unknown effects may open any file and reach any host; one that
reads a folder reads what a rule denies in it. Such a call never runs freely: it
is asked about, unless a sandbox enforces the rules in question.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property
from typing import Final

from ..core.effects import Effects, Opaque, ReadsPath, RunsCommand, WritesPath
from ..core.ports import Proposal
from ..core.values import plain_value
from ..core.verdicts import Confinement
from .path_patterns import PathPattern, is_below
from .programs import SHELLS, name_of, names_put_into, reads_below, shows_content, writes_below
from .rule_matching import RuleIndex, command_of
from .rules import Rule

_KNOWN_TO_HIDE: Final = frozenset({"Grep", "Glob", "LSP", "Read", "Edit", "Write", "NotebookEdit"})
"""Tools that leave out what is denied, or that read one file."""
_QUOTING: Final = re.compile(r"[\"'\\]")
_NOTHING: Final = re.compile(r"[\"'`]|\\\n?|\$[@*]|\$\{[^}]*\}|\$\(\s*\)")
"""What may be inside a word and expand to nothing. It may also contain the rest of the word."""
_GIT_FILES: Final = re.compile(r"(^|/)([^/]*\.git|objects)(/|$)")
"""Where a repository may have its own files, judging by names."""
_ANYWHERE: Final = frozenset({"/", "/proc"})
"""The path of an unknown word, and the folder where every file has a second name, below a process's root."""


_NOT_KNOWN: Final = "its effects are unknown, so it may do what the rule denies"


@plain_value
class OutOfReach:
    """The first rule that cannot be ruled out, and what a sandbox would have to enforce."""

    rule: Rule
    confinement: Confinement
    why: str


class Horizon:
    """What deny rules cannot see."""

    def __init__(self, denies: RuleIndex) -> None:
        self._denies = denies

    def out_of_reach(self, proposal: Proposal) -> OutOfReach | None:
        if not self._denies:
            return None
        if proposal.effects.unknown:
            return self._of_unknown
        if proposal.tool.server is None and proposal.tool.name in _KNOWN_TO_HIDE:
            return None
        return _of_folders(self._denies, proposal) if self._denies.reads or self._denies.writes else None

    @cached_property
    def of_paths(self) -> Confinement | None:
        """Every path that rules deny, to be enforced whatever a call declares; `None` if they deny none."""
        unreadable = _spell_out(self._denies.reads.patterns)
        unwritable = (*unreadable, *_spell_out(self._denies.writes.patterns))
        return Confinement(unreadable=unreadable, unwritable=unwritable) if unwritable else None

    @cached_property
    def of_hosts(self) -> OutOfReach | None:
        """The hosts that rules deny, for a call with unknown effects; `None` if they deny none."""
        if not self._denies.hosts:
            return None
        confinement = Confinement(unreachable=tuple(pattern.text for pattern, _ in self._denies.hosts))
        return OutOfReach(self._denies.hosts[0][1], confinement, _NOT_KNOWN)

    @cached_property
    def _of_unknown(self) -> OutOfReach | None:
        return _of_unknown(self._denies)


def _of_unknown(denies: RuleIndex) -> OutOfReach | None:
    rules = [rule for _, rule in (*denies.reads.patterns, *denies.writes.patterns, *denies.hosts)]
    if not rules:
        return None
    unreadable = _spell_out(denies.reads.patterns)
    confinement = Confinement(
        unreadable=unreadable,
        unwritable=(*unreadable, *_spell_out(denies.writes.patterns)),
        unreachable=tuple(pattern.text for pattern, _ in denies.hosts),
    )
    return OutOfReach(rules[0], confinement, _NOT_KNOWN)


def _of_folders(denies: RuleIndex, proposal: Proposal) -> OutOfReach | None:
    """Folders that are read or changed as a whole and contain something denied, and files with unknown names."""
    kept = _of_repositories(denies, proposal.effects) if denies.reads else None
    if kept is not None:
        return kept
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
                    confinement = Confinement(unreadable=_spell_out(met))
                    return OutOfReach(met[0][1], confinement, f"{path} may hold what the rule denies")
        elif isinstance(touch, WritesPath) and command is not None:
            kept = _denies_below(denies, touch, command.argv)
            if kept:
                confinement = Confinement(unwritable=_spell_out(kept))
                return OutOfReach(kept[0][1], confinement, f"{touch.path} may hold what the rule denies")
    return None


def _of_repositories(denies: RuleIndex, effects: Effects) -> OutOfReach | None:
    """git can show its version of every path, from anywhere in the repository. So can its own files when opened."""
    argv: tuple[str, ...] = ()
    for touch in effects.touches:
        if isinstance(touch, RunsCommand):
            argv = touch.argv
            shows = name_of(argv) == "git" and reads_below(argv)
            what = "what git keeps"
        elif isinstance(touch, ReadsPath | WritesPath) and name_of(argv) != "git":
            shows = _GIT_FILES.search(touch.path) is not None or _GIT_FILES.search(touch.real) is not None
            shows = shows and (isinstance(touch, WritesPath) or not argv or shows_content(argv))
            what = touch.path
        else:
            continue
        if shows:
            unreadable = _spell_out(denies.reads.patterns)
            unwritable = (*unreadable, *_spell_out(denies.writes.patterns)) if effects.writes else ()
            confinement = Confinement(unreadable=unreadable, unwritable=unwritable)
            return OutOfReach(denies.reads.patterns[0][1], confinement, f"{what} may hold what the rule denies")
    return None


def _denies_below(denies: RuleIndex, touch: WritesPath, argv: Sequence[str]) -> list[tuple[PathPattern, Rule]]:
    """What may be changed along with the path: everything below it, or what is put there, if it is a folder."""
    patterns = (*denies.writes.patterns, *denies.reads.patterns)
    paths = tuple(dict.fromkeys((touch.path, touch.real or touch.path)))
    if writes_below(argv):
        return [one for one in patterns if any(one[0].may_match_below(path) for path in paths)]
    put = [f"{path}/{name}" for name in names_put_into(argv) for path in paths]
    return [one for one in patterns if any(one[0].matches(path) for path in put)]


def unread(indexes: tuple[RuleIndex, ...], proposal: Proposal) -> Rule | None:
    """The rule for a command whose words occur in a text that could not be parsed, and that may run it."""
    text = command_of(proposal)
    if text is None or not _holds_unread(proposal.effects):
        return None
    readings = (_QUOTING.sub("", text), _NOTHING.sub("", text))
    patterns = (each for index in indexes for each in index.command_patterns)
    return next((rule for pattern, rule in patterns if any(map(pattern.words_stand_in, readings))), None)


def _holds_unread(effects: Effects) -> bool:
    """Whether a part could not be parsed, or is text that another shell runs."""
    return any(
        isinstance(touch, Opaque) or (isinstance(touch, RunsCommand) and name_of(touch.argv) in SHELLS)
        for touch in effects.touches
    )


def _meets(pattern: PathPattern, path: str, *, certain: bool) -> bool:
    """Whether the pattern may match below the path; `certain` accepts only a path that contains its base."""
    if certain:
        return any(is_below(base, path) for base in pattern.bases if base)
    return pattern.may_match_below(path)


def _spell_out(patterns: tuple[tuple[PathPattern, Rule], ...] | list[tuple[PathPattern, Rule]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(path for pattern, _ in patterns for path in pattern.spell_out()))
