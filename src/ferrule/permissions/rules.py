"""Permission rules as users write them: `Read`, `Bash(npm run *)`, `Read(./secrets/**)`.

A rule is parsed once and knows where it comes from. An invalid one is reported
with its text: it is never read as something wider.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

from ..core.values import frozen_value
from ..core.verdicts import Behavior
from ..settings.rule_entries import why_no_rule
from .rule_forms import Form, NoForm, WholeTool, forms_of
from .tool_names import why_no_name

_WHOLE: tuple[Form, ...] = (WholeTool(),)


class RuleError(ValueError):
    """A rule that cannot be used. The message names it and says what can be done."""


@frozen_value
class Origin:
    """Where a rule comes from: the file, or the flag.

    >>> str(Origin(".claude/settings.json", line=7))
    '.claude/settings.json:7'
    """

    name: str
    line: int | None = None
    base: str | None = None
    """The folder that `/p` is relative to; `None` for the working directory."""

    def __str__(self) -> str:
        return self.name if self.line is None else f"{self.name}:{self.line}"


@frozen_value
class Rule:
    tool: str
    behavior: Behavior
    text: str
    """As it was written."""
    origin: Origin
    specifier: str | None = None
    forms: tuple[Form, ...] = _WHOLE

    @property
    def is_whole(self) -> bool:
        """Whether it matches every call of its tool."""
        return any(isinstance(form, WholeTool) for form in self.forms)

    def __str__(self) -> str:
        return f"`{self.text}` in {self.origin}"


def parse_rule(text: str, behavior: Behavior, origin: Origin | str) -> Rule:
    """
    >>> parse_rule("Read(*)", Behavior.DENY, "--deny").is_whole
    True
    >>> parse_rule("Bash(npm run *)", Behavior.ALLOW, "--allow").specifier
    'npm run *'
    """
    origin = Origin(origin) if isinstance(origin, str) else origin
    wrong = why_no_rule(text)
    if wrong is not None:
        raise RuleError(f"{origin}: {wrong}")
    name, bracket, inside = text.strip().partition("(")
    name, specifier = name.strip(), inside.removesuffix(")") if bracket else None
    wrong = why_no_name(name, behavior)
    if wrong is not None:
        raise RuleError(f"{origin}: `{text}` {wrong}.")
    try:
        return Rule(name, behavior, text, origin, specifier, forms_of(name, specifier, behavior))
    except NoForm as wrong:
        raise RuleError(f"{origin}: `{text}` {wrong}.") from None


def parse_rules(texts: Iterable[str], behavior: Behavior, origin: Origin | str) -> tuple[Rule, ...]:
    """All of them. Raises `RuleError` for the first that is invalid."""
    return tuple(parse_rule(text, behavior, origin) for text in texts)


def parse_valid_rules(texts: Iterable[str], behavior: Behavior, origin: Origin | str) -> tuple[Rule, ...]:
    """Those that are valid. For rules that allow, or that nobody relies on: what is left out allows nothing."""
    rules: list[Rule] = []
    for text in texts:
        with suppress(RuleError):
            rules.append(parse_rule(text, behavior, origin))
    return tuple(rules)
