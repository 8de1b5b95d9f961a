"""Matching rules against a call: by the tool's name, by the call's own form, by each thing it touches.

Rules are indexed once: a tool's by its name, commands by their first word,
paths by their names. What cannot match is not checked.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, assert_never

from ..core.effects import (
    ChangesState,
    Opaque,
    ReachesHost,
    ReadsPath,
    ReadsState,
    RunsCommand,
    Touch,
    WritesPath,
    describe_touch,
)
from ..core.ports import Proposal
from ..core.tool import AnyTool, Tool
from ..core.values import plain_value
from ..core.verdicts import Behavior
from .path_patterns import PathIndex, PathPattern, Places
from .patterns import TextPattern
from .programs import name_of, unwrap
from .rule_forms import COMMAND_TOOLS, FOLDING, READING, WRITING, OfArgument, OfCommand, OfHost, OfName, OfPath
from .rules import Rule
from .tool_names import NamePattern, names_of


@plain_value
class RuleMatch:
    """A rule, and what it matches in this call."""

    rule: Rule
    what: str = "it"


@plain_value
class ToolRules:
    """The rules of one kind that name a tool."""

    whole: Rule | None
    by_tool: tuple[Rule, ...]
    """Those whose specifier the tool itself interprets."""
    by_name: tuple[tuple[OfName, Rule], ...]
    by_argument: Mapping[str, Sequence[tuple[TextPattern, Rule]]]
    commands: tuple[CommandIndex, ...]
    paths: PathIndex[Rule]


class CommandIndex:
    """Command rules by the word that every match begins with."""

    def __init__(self, rules: Iterable[Rule], *, folds: bool = False) -> None:
        self._folds = folds
        self._by_word: dict[str, list[tuple[TextPattern, Rule]]] = {}
        self._open: list[tuple[TextPattern, Rule]] = []
        self._spelled: dict[str, Rule] = {}
        for rule in rules:
            if rule.specifier and "\\" in rule.specifier:
                self._spelled.setdefault(rule.specifier.strip(), rule)
            for form in rule.forms:
                if isinstance(form, OfCommand):
                    word = form.pattern.first_word
                    entries = self._open if word is None else self._by_word.setdefault(word, [])
                    entries.append((form.pattern, rule))

    def __bool__(self) -> bool:
        return bool(self._by_word or self._open)

    def __iter__(self) -> Iterator[tuple[TextPattern, Rule]]:
        for entries in (*self._by_word.values(), self._open):
            yield from entries

    def spelling(self, text: str) -> Rule | None:
        """The rule that has this very text, with its backslashes, as paths of Windows have them."""
        return self._spelled.get(text)

    def about(self, text: str) -> Iterator[tuple[TextPattern, Rule]]:
        """The patterns that match the text, with their rules."""
        text = text.casefold() if self._folds else text
        word = text.split(None, 1)[:1]
        for pattern, rule in self._by_word.get(word[0] if word else "", ()):
            if pattern.matches(text):
                yield pattern, rule
        for pattern, rule in self._open:
            if pattern.matches(text):
                yield pattern, rule


class RuleIndex:
    """The rules of one kind."""

    def __init__(self, rules: Iterable[Rule], behavior: Behavior, places: Places) -> None:
        self.behavior = behavior
        self._places = places
        self._rules = tuple(rule for rule in rules if rule.behavior is behavior)
        self._named = tuple((NamePattern(rule.tool), rule) for rule in self._rules)
        self._by_tool: dict[tuple[str, str | None], ToolRules] = {}
        self.reads = self._paths_of(READING)
        self.writes = self._paths_of(WRITING)
        self.commands = {
            tool: CommandIndex((rule for rule in self._rules if rule.tool == tool), folds=tool in FOLDING)
            for tool in COMMAND_TOOLS
        }
        self.hosts = tuple(
            (form.pattern, rule) for rule in self._rules for form in rule.forms if isinstance(form, OfHost)
        )

    def __bool__(self) -> bool:
        return bool(self._rules)

    @property
    def command_patterns(self) -> Iterator[tuple[TextPattern, Rule]]:
        return chain.from_iterable(self.commands.values())

    def naming(self, tool: AnyTool) -> ToolRules:
        """Found once for each tool."""
        key = (tool.name, tool.server)
        known = self._by_tool.get(key)
        if known is None:
            known = self._by_tool[key] = self._naming(tool)
        return known

    def _naming(self, tool: AnyTool) -> ToolRules:
        rules = [rule for name, rule in self._named if name.names(tool, self.behavior)]
        scoped = tuple(rule for rule in rules if not rule.is_whole)
        forms = [(form, rule) for rule in scoped for form in rule.forms]
        arguments: dict[str, list[tuple[TextPattern, Rule]]] = {}
        for form, rule in forms:
            if isinstance(form, OfArgument):
                arguments.setdefault(form.name, []).append((form.pattern, rule))
        own_paths = ((form, rule) for form, rule in forms if isinstance(form, OfPath) and form.tool_only)
        return ToolRules(
            whole=next((rule for rule in rules if rule.is_whole), None),
            by_tool=() if type(tool).matches is Tool[Any, Any].matches else scoped,
            by_name=tuple((form, rule) for form, rule in forms if isinstance(form, OfName)),
            by_argument=arguments,
            commands=tuple(self.commands[name] for name in names_of(tool) if name in COMMAND_TOOLS),
            paths=PathIndex((self._anchor(rule, form), rule) for form, rule in own_paths),
        )

    def host(self, host: str) -> Rule | None:
        return next((rule for pattern, rule in self.hosts if pattern.matches(host)), None)

    def _paths_of(self, tool: str) -> PathIndex[Rule]:
        rules = (rule for rule in self._rules if rule.tool == tool)
        return PathIndex(
            (self._anchor(rule, form), rule) for rule in rules for form in rule.forms if isinstance(form, OfPath)
        )

    def _anchor(self, rule: Rule, form: OfPath) -> PathPattern:
        return PathPattern(form.path, self._places.of(form.path.anchor, rule.origin.base))


def restriction(index: RuleIndex, proposal: Proposal) -> RuleMatch | None:
    """The first rule that denies or asks: for the tool, for the call's own form, for anything it touches."""
    if not index:
        return None
    named = index.naming(proposal.tool)
    if named.whole is not None:
        return RuleMatch(named.whole)
    rule = _of_own_form(named, proposal)
    if rule is not None:
        return RuleMatch(rule)
    for touch in proposal.effects.touches:
        rule = _of_touch(index, named, touch)
        if rule is not None:
            return RuleMatch(rule, f"that it {describe_touch(touch)}")
    return None


def command_of(proposal: Proposal) -> str | None:
    """The command text of a call."""
    command = proposal.arguments.get("command")
    return command.strip() if isinstance(command, str) else None


def own_words(tool: AnyTool, rule: Rule, input: Any) -> bool | None:
    """Whether the tool matches its own specifier; if it fails, the safer answer."""
    if rule.specifier is None:
        return None
    try:
        return tool.matches(rule.specifier, input)
    except Exception:  # foreign code: a rule that restricts then applies, one that allows does not
        return rule.behavior is not Behavior.ALLOW


def rule_by_words(named: ToolRules, proposal: Proposal) -> Rule | None:
    """The rule that names the agent, the skill or an argument of this call."""
    for form, rule in named.by_name:
        if form.names([proposal.arguments.get(name) for name in form.parameters], rule.behavior):
            return rule
    for name in named.by_argument.keys() & proposal.call.arguments.keys() if named.by_argument else ():
        value = _scalar(proposal.call.arguments[name])
        for pattern, rule in named.by_argument[name] if value is not None else ():
            if pattern.matches(value or ""):
                return rule
    return None


def _scalar(value: object) -> str | None:
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return value
        case int() | float():
            return str(value)
        case _:
            return None


def _of_own_form(named: ToolRules, proposal: Proposal) -> Rule | None:
    for rule in named.by_tool:
        if own_words(proposal.tool, rule, proposal.input):
            return rule
    rule = rule_by_words(named, proposal)
    if rule is not None or not named.commands:
        return rule
    command = command_of(proposal)
    for commands in named.commands if command is not None else ():
        for _, rule in commands.about(command or ""):
            return rule
        if (spelled := commands.spelling(command or "")) is not None:
            return spelled
    return None


def _of_touch(index: RuleIndex, named: ToolRules, touch: Touch) -> Rule | None:
    match touch:
        case ReadsPath():
            return _of_path(touch, index.reads, named.paths)
        case WritesPath():
            return _of_path(touch, index.writes, index.reads, named.paths)
        case RunsCommand(argv):
            return _of_command(index, argv)
        case ReachesHost(host):
            return index.host(host)
        case ReadsState() | ChangesState() | Opaque():
            return None
        case _:
            assert_never(touch)


def _of_path(touch: ReadsPath | WritesPath, *indexes: PathIndex[Rule]) -> Rule | None:
    """As written, as resolved, or through a link on the way: any match is enough to restrict."""
    plain = touch.real in ("", touch.path) and not touch.links
    paths = (touch.path,) if plain else (touch.path, touch.real or touch.path, *touch.links)
    for index in indexes:
        if index:
            for path in paths if all(map(str.isascii, paths)) else _spellings_of(paths):
                rule = index.find(path)
                if rule is not None:
                    return rule
    return None


def _spellings_of(paths: Sequence[str]) -> Iterator[str]:
    """As they are, and in composed Unicode form, which restricting rules match too."""
    for path in paths:
        yield path
        yield unicodedata.normalize("NFC", path)


def _of_command(index: RuleIndex, argv: Sequence[str]) -> Rule | None:
    """Every shell's rules apply to every command, ignoring wrappers and the folder of the program."""
    shells = [commands for commands in index.commands.values() if commands]
    for form in unwrap(argv) if shells else ():
        spelled = " ".join(form)
        name = name_of(form)
        for text in (spelled,) if name == form[0] else (spelled, " ".join((name, *form[1:]))):
            for commands in shells:
                for _, rule in commands.about(text):
                    return rule
    return None
