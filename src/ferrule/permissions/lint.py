"""What a person should know about their rules: which never match, are redundant or are too wide."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from enum import StrEnum
from typing import Final

from ..core.values import plain_value
from ..core.verdicts import Behavior
from .path_patterns import Anchor
from .patterns import TextPattern
from .rule_forms import READING, WRITING, OfCommand, OfHost, OfPath, OwnWords
from .rules import Rule
from .tool_names import CANONICAL, MCP, NamePattern

_INTERPRETERS: Final = frozenset(
    {"bash", "sh", "zsh", "dash", "ksh", "eval", "exec", "sudo", "doas", "env", "xargs", "ssh", "python", "python3"}
    | {"node", "deno", "bun", "ruby", "perl", "php", "npx", "uvx", "docker", "podman", "make", "find", "awk"}
)
_NEVER_BY_WILDCARD: Final = frozenset({"watch", "setsid", "ionice", "flock"})
_OPERATOR: Final = re.compile(r"&&|\|\||[;|&\n]")
_QUOTED: Final = re.compile(r"\\.|\"(?:\\.|[^\"\\])*\"|'[^']*'", re.DOTALL)
"""Where an operator is text."""
_VARIABLE_ALONE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=\S*?(?::\*| \*)")


class Flaw(StrEnum):
    NEVER = "never matches"
    SHADOWED = "shadowed"
    WIDE = "wider than it looks"
    NARROW = "narrower than it looks"


@plain_value
class Remark:
    """A remark on one rule, in a sentence that says what to do."""

    rule: Rule
    flaw: Flaw
    words: str

    def __str__(self) -> str:
        return f"{self.rule.origin}: `{self.rule.text}` {self.words}"


def lint(rules: Iterable[Rule], tools: Collection[str] = ()) -> tuple[Remark, ...]:
    """Remarks on each rule, in order. Given the names of all tools, rules for unknown tools are found too."""
    rules = tuple(rules)
    return tuple(remark for at, rule in enumerate(rules) for remark in _remarks(rule, rules, at, tools))


def _remarks(rule: Rule, rules: Sequence[Rule], at: int, tools: Collection[str]) -> Iterator[Remark]:
    yield from _of_name(rule, tools)
    for form in rule.forms:
        match form:
            case OfCommand(pattern):
                yield from _of_command(rule, pattern)
            case OfPath():
                yield from _of_path(rule, form)
            case OwnWords() if len(rule.forms) == 1 and not rule.tool.startswith(MCP):
                words = f"matches only if {rule.tool} interprets its own specifiers; no other form is known for it."
                yield Remark(rule, Flaw.NEVER, words)
            case _:
                pass
    if rule.is_whole and rule.behavior is Behavior.DENY and rule.tool in (READING, WRITING):
        words = f"removes tools, but commands can still do the same: write `{rule.tool}(//**)` to restrict them too."
        yield Remark(rule, Flaw.NARROW, words)
    yield from _shadow(rule, rules, at)


def _of_name(rule: Rule, tools: Collection[str]) -> Iterator[Remark]:
    name = CANONICAL.get(rule.tool, rule.tool)
    if not tools or rule.tool.startswith(MCP) or set("*?") & set(rule.tool) or name in tools:
        return
    near = [tool for tool in tools if tool.casefold() == name.casefold()]
    guess = f" Write `{near[0]}`." if near else " Write the name of one."
    yield Remark(rule, Flaw.NEVER, f"names an unknown tool.{guess}")


def _of_command(rule: Rule, pattern: TextPattern) -> Iterator[Remark]:
    first = pattern.first_word
    if rule.behavior is Behavior.ALLOW and pattern.exact is None:
        if not pattern.literal.strip():
            yield Remark(rule, Flaw.WIDE, f"allows every command. Write `{rule.tool}` if that is intended.")
        elif first is None and "*" in rule.text and not pattern.head:
            yield Remark(rule, Flaw.WIDE, "begins with `*`, so it allows every program with that ending.")
        elif first in _NEVER_BY_WILDCARD:
            yield Remark(rule, Flaw.NEVER, f"cannot allow {first} by a wildcard. Spell the command out.")
        elif first in _INTERPRETERS and pattern.head.strip() == first:
            yield Remark(rule, Flaw.WIDE, f"allows whatever {first} is asked to run. Name what it may run.")
    if rule.text.find(":*") not in (-1, len(rule.text) - 3):
        yield Remark(rule, Flaw.NEVER, "has `:*` inside, where it is plain text. Write ` *` there.")
    if (
        pattern.exact is None
        and not pattern.ends_in_wildcard
        and pattern.text.endswith("*")
        and pattern.literal[-1:].isalnum()
    ):
        words = "has no space before its last `*`, so it matches longer names too. Write ` *` for arguments only."
        yield Remark(rule, Flaw.WIDE, words)
    if rule.behavior is Behavior.ALLOW and pattern.exact is None and _VARIABLE_ALONE.fullmatch(pattern.text):
        yield Remark(
            rule, Flaw.NARROW, "names no program, so it allows the variable alone. Write the command behind it."
        )
    if pattern.exact is None and _OPERATOR.search(_QUOTED.sub("", pattern.text)):
        words = "spans an operator, but the parts of a command are matched one by one. Write a rule for each."
        yield Remark(rule, Flaw.NEVER, words)


def _of_path(rule: Rule, form: OfPath) -> Iterator[Remark]:
    specifier = rule.specifier or ""
    single = specifier.startswith("/") and not specifier.startswith("//")
    if single and specifier.split("/")[1] in ("etc", "home", "usr", "var", "tmp", "opt", "root", "Users"):
        words = f"is relative to its source, not to the root. Write `{rule.tool}(/{specifier})` for the absolute path."
        yield Remark(rule, Flaw.NEVER, words)
    everywhere = form.path.pattern in ("**", "/**") and form.path.anchor in (Anchor.ROOT, Anchor.HOME)
    if rule.behavior is Behavior.ALLOW and rule.tool == WRITING and everywhere:
        yield Remark(rule, Flaw.WIDE, "allows changes everywhere below. Name the folder that is meant.")


def _shadow(rule: Rule, rules: Sequence[Rule], at: int) -> Iterator[Remark]:
    for index, other in enumerate(rules):
        stronger = other.behavior > rule.behavior or (other.behavior is rule.behavior and index < at)
        if stronger and other is not rule and _covers(other, rule):
            verb = {Behavior.ALLOW: "allowed", Behavior.ASK: "asked about", Behavior.DENY: "denied"}[other.behavior]
            words = f"has no effect: what it matches is already {verb} by {other}. Remove one of them."
            yield Remark(rule, Flaw.SHADOWED, words)
            return


def _covers(wide: Rule, narrow: Rule) -> bool:
    """Whether every call that the narrow rule matches is matched by the wide rule; only obvious cases."""
    if not _names_as_much(wide.tool, narrow.tool):
        return False
    if wide.is_whole:
        # A path rule applies to other tools too, which a rule for only this tool does not cover.
        return narrow.is_whole or not any(isinstance(form, OfPath | OfHost) for form in narrow.forms)
    if wide.forms == narrow.forms and wide.origin.base == narrow.origin.base:
        return True
    return all(any(_form_covers(one, other) for one in wide.forms) for other in narrow.forms)


def _names_as_much(wide: str, narrow: str) -> bool:
    if CANONICAL.get(wide, wide) == CANONICAL.get(narrow, narrow):
        return True
    if wide.startswith(MCP) and narrow.startswith(f"{wide.removesuffix('__*')}__"):
        return NamePattern(wide).exact is None
    return "*" in wide and TextPattern(wide).matches(narrow)


def _form_covers(wide: object, narrow: object) -> bool:
    if isinstance(wide, OfCommand) and isinstance(narrow, OfCommand):
        if narrow.pattern.exact is not None:
            return wide.pattern.matches(narrow.pattern.exact)
        plain = narrow.pattern.head == narrow.pattern.literal
        return (
            narrow.pattern.ends_in_wildcard
            and wide.pattern.ends_in_wildcard
            and plain
            and wide.pattern.matches(narrow.pattern.head)
        )
    if isinstance(wide, OfHost) and isinstance(narrow, OfHost):
        return narrow.pattern.names_one and wide.pattern.matches(narrow.pattern.text)
    return False
