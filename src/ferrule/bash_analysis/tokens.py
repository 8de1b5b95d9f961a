"""What the scanner finds: words with their parts, and operators."""

from __future__ import annotations

from enum import IntEnum

from ..core.values import plain_value


class PartKind(IntEnum):
    """What a part of a word is."""

    TEXT = 0
    """Literal text. Unquoted text may contain the characters of globs, braces and tildes."""
    VARIABLE = 1
    """`$name`, or `${name}` and nothing more."""
    EXPANSION = 2
    """`${…}` with an operator; the text is what is between the braces."""
    OUTPUT = 3
    """A command substitution: what it prints is unknown."""
    FILE = 4
    """A process substitution: the name of a pipe."""
    NUMBER = 5
    """An arithmetic expansion; the text is the expression."""


@plain_value
class WordPart:
    kind: PartKind
    text: str
    quoted: bool


@plain_value
class Token:
    """A word, or an operator, from `start` to `end` in bytes."""

    start: int
    end: int
    operator: str
    """Empty for a word; `fd` for the number or name before a redirection."""
    parts: tuple[WordPart, ...]
    run: int
    """Tokens between two separators share a run: a simple command is one, except for keywords before it."""


@plain_value
class Here:
    """A here-document's body, from `start` to `end`, and its closing line's end."""

    start: int
    end: int
    quoted: bool


@plain_value
class Scan:
    """All the tokens of a text, those inside substitutions too."""

    tokens: tuple[Token, ...]
    heres: tuple[Here, ...]
    doubts: tuple[str, ...]
    """Why the text may be misunderstood."""
    substitutions: int
    """How many command and process substitutions there are."""


class Unreadable(Exception):
    """The text cannot be parsed as a command: it is not balanced, or too large."""
