"""Permission rules as users write them: `Read`, `Bash(npm run *)`.

This version knows bare tool names. A rule with a specifier is refused with its
text, never taken for something wider or quietly dropped.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from ..core.verdicts import Behavior

_BARE = re.compile(r"(?P<tool>[A-Za-z_][A-Za-z0-9_.-]*)(?:\(\*?\))?")


class RuleError(ValueError):
    """A rule that cannot be used. The message names it and says what can be done."""


@dataclass(frozen=True, slots=True)
class Rule:
    tool: str
    behavior: Behavior
    text: str
    origin: str


def parse_rule(text: str, behavior: Behavior, origin: str) -> Rule:
    """
    >>> parse_rule("Read(*)", Behavior.DENY, "--deny").tool
    'Read'
    """
    bare = _BARE.fullmatch(text.strip())
    if bare:
        return Rule(bare["tool"], behavior, text, origin)
    if "(" in text:
        raise RuleError(f"{origin}: `{text}` has a specifier, which this version cannot match yet. Use a tool name.")
    raise RuleError(f"{origin}: `{text}` is no rule. Write a tool name, such as Read.")


def parse_rules(texts: Iterable[str], behavior: Behavior, origin: str) -> tuple[Rule, ...]:
    return tuple(parse_rule(text, behavior, origin) for text in texts)
