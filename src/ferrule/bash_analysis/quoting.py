"""Characters: bytes as text, the escapes of `$'…'`, and invisible characters."""

from __future__ import annotations

import re
import unicodedata

from .tokens import Unreadable

_ODD = re.compile(r"[^\t\n\x20-\x7e]")
_ANSI_ESCAPE = re.compile(r"\\(x[0-9A-Fa-f]{1,2}|[0-7]{1,3}|u[0-9A-Fa-f]{1,4}|U[0-9A-Fa-f]{1,8}|c.|.)", re.DOTALL)
_ANSI_LETTERS = {
    "a": "\a",
    "b": "\b",
    "e": "\x1b",
    "E": "\x1b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "v": "\v",
    "\\": "\\",
    "'": "'",
    '"': '"',
    "?": "?",
}


def as_bytes_text(text: str) -> str:
    """The UTF-8 bytes of a text, each as one character."""
    try:
        return text if text.isascii() else text.encode().decode("latin-1")
    except UnicodeEncodeError:
        raise Unreadable("it holds half a character") from None


def from_bytes_text(text: str) -> str:
    """
    >>> from_bytes_text(as_bytes_text("naïve"))
    'naïve'
    """
    return text if text.isascii() else text.encode("latin-1").decode(errors="replace")


def odd_characters(text: str) -> str:
    """What is wrong with the characters; empty if nothing is."""
    for found in _ODD.finditer(text):
        character = found[0]
        category = unicodedata.category(character)
        if category[0] in "CZ":
            return f"the character U+{ord(character):04X}, which is invisible"
    return ""


def decode_ansi(text: str) -> str | None:
    r"""What bash makes of the inside of `$'…'`; `None` if that is not certain.

    >>> decode_ansi(r"\x72m\n")
    'rm\n'
    """
    decoded: list[str] = []
    at = 0
    for found in _ANSI_ESCAPE.finditer(text):
        decoded.append(text[at : found.start()])
        at = found.end()
        escape = found[1]
        if escape in _ANSI_LETTERS:
            decoded.append(_ANSI_LETTERS[escape])
        elif escape[0] in "xuU" and len(escape) > 1:
            value = int(escape[1:], 16)
            if not 0 < value < 128:
                return None
            decoded.append(chr(value))
        elif escape[0] in "01234567":
            value = int(escape, 8)
            if not 0 < value < 128:
                return None
            decoded.append(chr(value))
        else:
            return None
    decoded.append(text[at:])
    return "".join(decoded)
