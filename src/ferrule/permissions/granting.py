"""What allow rules grant. A call is allowed if everything it touches is allowed, by a rule or by the mode.

A rule for a command covers that command and what it does. Unknown effects of a
call are granted only by a rule for the tool, or by one that spells the call out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeAlias, assert_never

from ..core.effects import ChangesState, Opaque, ReachesHost, ReadsPath, ReadsState, RunsCommand, Touch, WritesPath
from ..core.ports import Proposal
from ..core.values import plain_value
from .path_patterns import PathIndex
from .patterns import TextPattern
from .programs import name_of, needs_an_exact_rule, unwrap
from .rule_matching import CommandIndex, RuleIndex, command_of, own_words, rule_by_words
from .rules import Rule

_QUOTES: Final = re.compile("[\"']")

_VARIABLE: Final = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=((?:[^\s\"']|\"[^\"]*\"|'[^']*')*)(?:\s+|$)")
_EXPORT: Final = re.compile(r"export\s+")
_PLAIN: Final = re.compile(r"[^;|&<>$`()\n\\]*")
"""Nothing in it makes a shell do more than start one program."""

Free: TypeAlias = Callable[[Touch, str | None], bool]
"""Whether the mode allows a touch without a rule, by the tool itself or by the program of that name."""


@plain_value
class Grant:
    """The reason why a call is allowed: these rules, or only the mode if there are none."""

    rules: tuple[Rule, ...] = ()
    approves: bool = False
    """Whether rules cover the call itself, and not only some of what it touches."""


def grant(index: RuleIndex, proposal: Proposal, free: Free) -> Grant | None:
    """What allows the call; `None` if anything about it is not allowed."""
    own = of_own_form(index, proposal)
    if own is not None:
        return Grant((own,), approves=True)
    commands = index.naming(proposal.tool).commands
    granting = _Granting(index, commands, free, _text_as_written(proposal) if commands else None)
    if all(granting.grants(touch) for touch in proposal.effects.touches):
        return Grant(tuple(granting.rules), approves=proposal.effects.unknown or granting.speaks_for_all)
    return None


def of_own_form(index: RuleIndex, proposal: Proposal) -> Rule | None:
    """A rule for the whole tool, or one that names exactly this call."""
    named = index.naming(proposal.tool)
    if named.whole is not None:
        return named.whole
    denied: list[Rule] = []
    for rule in named.by_tool:
        said = own_words(proposal.tool, rule, proposal.input)
        if said:
            return rule
        if said is not None:
            denied.append(rule)
    rule = rule_by_words(named, proposal)
    if rule is not None and rule not in denied:
        return rule
    command = command_of(proposal) if named.commands else None
    for commands in named.commands if command is not None else ():
        for pattern, rule in commands.about(command or ""):
            if pattern.exact is not None or _spells_variables(pattern, command or "", proposal):
                return rule
        if (spelled := commands.spelling(command or "")) is not None:
            return spelled
    return None


def _spells_variables(pattern: TextPattern, command: str, proposal: Proposal) -> bool:
    """Whether the pattern has the variables of one plain command, each with a value that fits, and its program."""
    given = Assigned.of(command)
    if not given.variables or not _PLAIN.fullmatch(command):
        return False
    said = Assigned.of(pattern.text)
    if (said.exports, [name for name, _ in said.variables]) != (given.exports, [name for name, _ in given.variables]):
        return False
    if not all(
        TextPattern(value).matches(there)
        for (_, value), (_, there) in zip(said.variables, given.variables, strict=True)
    ):
        return False
    rest = TextPattern(said.rest)
    if (rest.first_word or "") != given.rest.partition(" ")[0] or not rest.matches(given.rest):
        return False
    ran = proposal.effects.commands
    if not ran:
        return not given.rest
    return len(ran) == 1 and not needs_an_exact_rule(ran[0].argv)


def _exports_more(pattern: TextPattern, form: Sequence[str]) -> bool:
    """Whether a rule for certain variables meets a command that exports others besides."""
    said = Assigned.of(pattern.text)
    names = [name for name, _ in said.variables]
    return form[0] == "export" and bool(names) and names != [word.partition("=")[0] for word in form[1:]]


@plain_value
class Assigned:
    """A command, or a pattern for one, that begins with variables."""

    exports: bool
    variables: tuple[tuple[str, str], ...]
    rest: str

    @classmethod
    def of(cls, text: str) -> Assigned:
        """
        >>> Assigned.of("TESTPATH=* uv run *")
        Assigned(exports=False, variables=(('TESTPATH', '*'),), rest='uv run *')
        """
        export = _EXPORT.match(text)
        rest = text[export.end() :] if export else text
        variables: list[tuple[str, str]] = []
        while found := _VARIABLE.match(rest):
            variables.append((found[1], found[2]))
            rest = rest[found.end() :]
        if variables and not rest and variables[-1][1].endswith(":*"):  # "any arguments", of which there are none
            variables[-1] = (variables[-1][0], variables[-1][1].removesuffix(":*"))
        return cls(export is not None, tuple(variables), rest)


def _text_as_written(proposal: Proposal) -> str | None:
    """The text of a call that is only one command, with its quotes, which rules may have too."""
    text = command_of(proposal)
    if text is None or len(proposal.effects.commands) != 1:
        return None
    bare = _QUOTES.sub("", text)
    return text if bare != text and bare == " ".join(proposal.effects.commands[0].argv) else None


class _Granting:
    """The check of one call, touch by touch."""

    def __init__(
        self, index: RuleIndex, commands: Sequence[CommandIndex], free: Free, written: str | None = None
    ) -> None:
        self.rules: list[Rule] = []
        self._written = written
        self._index = index
        self._commands = commands
        self._free = free
        self._program: str | None = None
        self._granted = False
        """Whether a rule covers the program whose touches follow."""
        self._sources: set[str] = set()
        """The granted commands: what they run is granted with them."""
        self._unruled = False
        """Whether something is done that no command rule covers."""

    @property
    def speaks_for_all(self) -> bool:
        """Whether command rules grant every part, and the shell itself changes nothing else.

        A part with unknown effects cannot be granted any other way, so it is not checked here.
        """
        return not self._unruled and bool(self._sources)

    def grants(self, touch: Touch) -> bool:
        match touch:
            case RunsCommand():
                return self._command(touch)
            case ReadsPath():
                return self._granted or self._free(touch, self._program) or self._path(touch)
            case WritesPath():
                self._unruled = self._unruled or not self._granted
                return self._granted or self._free(touch, self._program) or self._path(touch)
            case ReachesHost(host, sends):
                self._unruled = self._unruled or not self._granted
                return self._granted or self._free(touch, self._program) or (not sends and self._host(host))
            case ReadsState() | ChangesState() | Opaque():
                return self._free(touch, self._program)
            case _:
                assert_never(touch)

    def _command(self, touch: RunsCommand) -> bool:
        self._program = name_of(touch.argv)
        self._granted = touch.within in self._sources or self._is_granted_by_rule(touch.argv)
        if self._granted:
            self._sources.add(touch.source or " ".join(touch.argv))
        else:
            self._unruled = True
        return self._granted or self._free(touch, None)

    def _is_granted_by_rule(self, argv: tuple[str, ...]) -> bool:
        for form in unwrap(argv):
            for pattern, rule in self._about(form):
                if pattern.exact is not None or not (needs_an_exact_rule(form) or _exports_more(pattern, form)):
                    self.rules.append(rule)
                    return True
        if self._written is None or needs_an_exact_rule(argv):
            return False
        for rule in (rule for commands in self._commands for _, rule in commands.about(self._written)):
            self.rules.append(rule)
            return True
        return False

    def _about(self, form: tuple[str, ...]) -> Iterator[tuple[TextPattern, Rule]]:
        if any(blank in form[0] for blank in " \t\n"):
            return  # a program whose name looks like a program with arguments
        for commands in self._commands:
            yield from commands.about(" ".join(form))

    def _path(self, touch: ReadsPath | WritesPath) -> bool:
        """As written and as resolved. A rule that allows an edit allows reading too."""
        reads = isinstance(touch, ReadsPath)
        indexes = (self._index.writes, self._index.reads) if reads else (self._index.writes,)
        for path in (touch.path,) if touch.real in ("", touch.path) else (touch.path, touch.real):
            rule = _find_rule(indexes, path, reads=reads)
            if rule is None:
                return False
            self.rules.append(rule)
        return True

    def _host(self, host: str) -> bool:
        rule = self._index.host(host)
        if rule is not None:
            self.rules.append(rule)
        return rule is not None


def _find_rule(indexes: Sequence[PathIndex[Rule]], path: str, *, reads: bool) -> Rule | None:
    for index in indexes:
        rule = index.find(path)
        if rule is None and reads:
            rule = next((rule for pattern, rule in index.patterns if pattern.covers_folder(path)), None)
        if rule is not None:
            return rule
    return None
