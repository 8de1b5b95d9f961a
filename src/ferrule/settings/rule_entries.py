"""How a permission rule is spelt: `Tool` or `Tool(specifier)`.

Only the spelling is checked here. What a rule means, and whether it can ever
match, is for the layer above.
"""

from __future__ import annotations

import re
from typing import Final

RULE_PATTERN: Final = r"^\s*[^()\s][^()]*(\([\s\S]*\))?\s*$"
"""What a JSON Schema can express; it cannot express balanced parentheses."""

_PARENTHESIS: Final = re.compile(r"\\.|([()])", re.DOTALL)
_LONGEST: Final = 60


def why_no_rule(text: str) -> str | None:
    r"""What is wrong with the spelling and what to write; `None` for a valid rule.

    >>> why_no_rule("Bash(npm run *)"), why_no_rule(r"Bash(echo \()")
    (None, None)
    >>> why_no_rule("Bash(npm run *")
    '`Bash(npm run *` has a parenthesis that is not closed. Write `Bash(npm run *)`.'
    """
    rule = text.strip()
    if not rule:
        return "a rule is empty. Write a tool's name, such as `Read`, or `Bash(npm run *)`."
    name, bracket, inside = rule.partition("(")
    if not name.strip():
        return f"`{_short(rule)}` names no tool. Write it before the parenthesis, as in `Bash{_short(rule)}`."
    if ")" in name:
        return f"`{_short(rule)}` closes a parenthesis that was not opened. Write `Tool` or `Tool(specifier)`."
    if not name.startswith("mcp__") and any(char.isspace() for char in name):
        return _explain_space(name, rule)
    return _why_unbalanced(rule, inside) if bracket else None


def _explain_space(name: str, rule: str) -> str:
    tool, rest = name.split(maxsplit=1) if name.split()[1:] else (name.strip(), "")
    better = f"{tool}({rest})" if rest else rule.replace(name, tool, 1)
    return f"`{_short(rule)}` has a space in the tool's name. Write `{_short(better)}`."


def _why_unbalanced(rule: str, inside: str) -> str | None:
    depth = 1
    for found in _PARENTHESIS.finditer(inside):
        depth += {"(": 1, ")": -1}.get(found[1], 0)
        if depth == 0 and found.end() < len(inside):
            return (
                f"`{_short(rule)}` goes on after its closing parenthesis. Write `Tool(specifier)`, "
                "and `\\)` for one that belongs to the specifier."
            )
    if depth:
        return f"`{_short(rule)}` has a parenthesis that is not closed. Write `{_short(rule + ')' * min(depth, 3))}`."
    return None


def _short(rule: str) -> str:
    return rule if len(rule) <= _LONGEST else f"{rule[: _LONGEST - 3]}..."
