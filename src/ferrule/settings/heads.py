"""The values in the head of a skill or an agent, by what they mean. Values of the wrong type are treated as missing."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, cast

NAME: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,62}[A-Za-z0-9_])?")
"""The valid names of a skill, or of a plugin with skills."""
_TOOL: Final = re.compile(r"[^\s,(]+(?:\([^)]*\))?")


def text_of(head: Mapping[str, Any], key: str) -> str:
    value = head.get(key)
    return " ".join(value.split()) if isinstance(value, str) else ""


def truth_of(head: Mapping[str, Any], key: str, *, default: bool) -> bool:
    """
    >>> truth_of({"background": "Yes"}, "background", default=False)
    True
    """
    said = text_of(head, key).lower()
    return {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}.get(said, default)


def names_of(head: Mapping[str, Any], key: str) -> tuple[str, ...] | None:
    """Names or rules in a list, or in one comma- or space-separated string; `None` if there are none.

    >>> names_of({"tools": "Read, Bash(git log:*) Grep"}, "tools")
    ('Read', 'Bash(git log:*)', 'Grep')
    """
    value = head.get(key)
    match value:
        case str():
            return tuple(_TOOL.findall(value))
        case list():
            return tuple(" ".join(item.split()) for item in cast(list[Any], value) if isinstance(item, str))
        case _:
            return None


def number_of(head: Mapping[str, Any], key: str) -> int | None:
    """A whole number above zero."""
    said = text_of(head, key)
    if not (said.isascii() and said.isdecimal() and len(said) < 10):
        return None
    return int(said) or None
