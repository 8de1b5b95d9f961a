"""Which hooks an event is for.

A matcher of letters, digits, `_`, `-`, spaces, commas and bars is a list of
whole names. With any other character it is a regular expression that may match
anywhere: `Edit.*` is for NotebookEdit too, and `mcp__memory` for no tool at all.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, TypeAlias

from .event_names import MOMENTS

Matches: TypeAlias = Callable[[str], bool]

_NAMES: Final = re.compile(r"[A-Za-z0-9_\- ,|]+")
_NAMED_GROUP: Final = re.compile(r"\(\?<(?![=!])")
LONGEST: Final = 1_000
"""Characters of a name that a regular expression is applied to: a slow one must not block the others."""


class BadMatcher(ValueError):
    """A matcher that is not a valid regular expression. The message says why."""


def everything(_: str) -> bool:
    return True


def matcher(text: str, event: str) -> Matches:
    """Raises `BadMatcher`.

    >>> only = matcher("Edit|Write", "PreToolUse")
    >>> only("Write"), only("NotebookEdit"), matcher("Edit.*", "PreToolUse")("NotebookEdit")
    (True, False, True)
    """
    if text in ("", "*") or not MOMENTS[event].matched_on:
        return everything
    if _NAMES.fullmatch(text):
        return frozenset(name.strip() for name in re.split(r"[|,]", text)).__contains__
    try:
        pattern = re.compile(_NAMED_GROUP.sub("(?P<", text))
    except (re.error, OverflowError, RecursionError) as error:
        raise BadMatcher(f"`{text}` is not a valid regular expression: {error}") from None
    return lambda name: pattern.search(name[:LONGEST]) is not None
