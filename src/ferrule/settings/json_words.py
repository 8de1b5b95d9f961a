"""What stands at a place in a text that is no JSON, and what to write instead."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from typing import Final

_AHEAD: Final = 40
_COMMENTS: Final = ("//", "/*", "#")
_WRONG_QUOTES: Final = ("'", "`", "\u201c", "\u201d", "\u2018", "\u2019")
_WORD: Final = re.compile(r"-?[^\W\d]\w{0,30}")
_MISSPELT: Final[Mapping[str, str]] = {"True": "true", "False": "false", "None": "null", "undefined": "null"}


def describe_at(text: str, at: int) -> str:
    rest = text[at : at + _AHEAD]
    if not rest:
        return "the end of the file"
    if rest.startswith(_COMMENTS):
        return "a comment"
    word = _WORD.match(rest)
    return f"`{word[0]}`" if word else name_of(rest[0])


def advice_at(text: str, at: int, expected: str) -> str:
    """What to do about it; nothing where what was expected says enough."""
    rest = text[at : at + _AHEAD]
    if rest.startswith(_COMMENTS):
        return "JSON has no comments; remove it."
    if rest.startswith(("}", "]")) and text[:at].rstrip(" \t\r\n").endswith(","):
        return "Remove the comma before it."
    if rest.startswith(_WRONG_QUOTES):
        return "Use straight double quotes."
    if rest.startswith('"') and expected.startswith("`,`"):
        return "A comma is missing before it."
    if expected == "the end of the file":
        return "Remove what follows the first value."
    word = _WORD.match(rest)
    return _advice_on_word(word[0]) if word else ""


def _advice_on_word(word: str) -> str:
    if word in _MISSPELT:
        return f"Write {_MISSPELT[word]}."
    if word.removeprefix("-").lower() in ("nan", "infinity"):
        return "JSON has no such number."
    return "Put strings and keys in double quotes."


def name_of(char: str) -> str:
    """
    >>> name_of("}"), name_of(chr(0xA0))
    ('`}`', 'U+00A0 (no-break space)')
    """
    if char.isprintable() and not char.isspace():
        return f"`{char}`"
    name = unicodedata.name(char, "").lower()
    return f"U+{ord(char):04X}" + (f" ({name})" if name else "")


def show_text(text: str) -> str:
    text = text if len(text) <= 30 else f"{text[:27]}..."
    return text if text.isprintable() else ascii(text)[1:-1]
