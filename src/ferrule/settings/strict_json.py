"""JSON as the standard defines it, with errors that say where, what was found and what to write.

No comments, no trailing commas, no NaN. A number that no program could hold
and half of a surrogate pair are refused here too, so that whatever reads the
value afterwards meets ordinary text and finite numbers only. One byte order
mark at the start is skipped, as editors on Windows write one. A repeated key
is not an error of syntax: the last one applies, and all are reported.
"""

from __future__ import annotations

import math
import re
import unicodedata
from bisect import bisect_right
from collections.abc import Mapping
from typing import Any, Final, NoReturn

from ..core.values import plain_value

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
    """What to do about it; empty if the expectation says enough."""
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


DEEPEST: Final = 100
"""Levels of nesting. No settings come near this limit, and nothing that walks the value overflows the stack."""

LARGEST_EXACT: Final = 2**53
"""Up to here a number with a fraction of zero is the same whole number to every reader."""

BYTE_ORDER_MARK: Final = "\ufeff"
HALF_A_PAIR: Final = "is half of a surrogate pair and no character."

_BLANK: Final = re.compile(r"[ \t\n\r]*")
_BREAK: Final = re.compile(r"\r\n|\r|\n")
_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?")
_PLAIN: Final = re.compile(r'[^"\\\x00-\x1f\ud800-\udfff]*')
_ESCAPE: Final = re.compile(r'\\(?:(["\\/bfnrt])|u([0-9a-fA-F]{4}))')
_ESCAPED: Final[Mapping[str, str]] = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_LITERAL: Final = re.compile(r"(?:true|false|null)(?!\w)")
_LITERALS: Final[Mapping[str, bool | None]] = {"true": True, "false": False, "null": None}

Place = tuple[str | int, ...]
"""Keys and indexes from the top of the value down."""


class NotJson(ValueError):
    """The text is not valid JSON. The message names line and column, what was found and what to do."""


@plain_value
class Repeated:
    """A key that occurs more than once in one object."""

    place: Place
    first_line: int
    line: int


@plain_value
class Parsed:
    value: Any
    repeated: tuple[Repeated, ...]
    lines: Mapping[Place, int]
    """The line on which each value begins, or its key if it has one."""


def parse(text: str) -> Parsed:
    """Raises only `NotJson`, for any text.

    >>> parse('{"a": [1.0, null]}').value
    {'a': [1, None]}
    >>> parse('[1, 2,]')  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ferrule.settings.strict_json.NotJson: invalid JSON in line 1, column 7: expected a value, found `]`. Remove the ...
    """
    reader = _Reader(text)
    return Parsed(reader.whole(), tuple(reader.repeated), reader.lines())


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = len(BYTE_ORDER_MARK) if text.startswith(BYTE_ORDER_MARK) else 0
        self._line_starts: list[int] = []
        self._begins: dict[Place, int] = {}
        self.repeated: list[Repeated] = []

    def whole(self) -> Any:
        self._skip_blank()
        if self._at == len(self._text):
            raise NotJson("the file is empty. Write at least an empty object or list, as its kind of file needs.")
        value = self._value((), "a value")
        self._skip_blank()
        if self._at < len(self._text):
            self._fail("the end of the file")
        return value

    def lines(self) -> Mapping[Place, int]:
        return {place: self._line(at) for place, at in self._begins.items()}

    def _value(self, place: Place, expected: str) -> Any:
        if len(place) > DEEPEST:
            self._refuse(f"the value is nested more than {DEEPEST} levels deep. Flatten it.")
        char = self._next_char()
        if char == "{":
            return self._object(place)
        if char == "[":
            return self._array(place)
        if char == '"':
            return self._string()
        if number := _NUMBER.match(self._text, self._at):
            return self._number(number)
        if literal := _LITERAL.match(self._text, self._at):
            self._at = literal.end()
            return _LITERALS[literal[0]]
        return self._fail(expected)

    def _object(self, place: Place) -> dict[str, Any]:
        self._at += 1
        found: dict[str, Any] = {}
        starts: dict[str, int] = {}
        self._skip_blank()
        if self._took("}"):
            return found
        while True:
            self._skip_blank()
            start = self._at
            if self._next_char() != '"':
                self._fail("a key in double quotes" if found else "a key in double quotes or `}`")
            key = self._string()
            if key in starts:
                self.repeated.append(Repeated((*place, key), self._line(starts[key]), self._line(start)))
            starts.setdefault(key, start)
            self._begins[*place, key] = start
            self._skip_blank()
            if not self._took(":"):
                self._fail("`:` after the key")
            self._skip_blank()
            found[key] = self._value((*place, key), "a value")
            self._skip_blank()
            if self._took("}"):
                return found
            if not self._took(","):
                self._fail("`,` or `}`")

    def _array(self, place: Place) -> list[Any]:
        self._at += 1
        found: list[Any] = []
        self._skip_blank()
        if self._took("]"):
            return found
        while True:
            self._skip_blank()
            self._begins[*place, len(found)] = self._at
            found.append(self._value((*place, len(found)), "a value" if found else "a value or `]`"))
            self._skip_blank()
            if self._took("]"):
                return found
            if not self._took(","):
                self._fail("`,` or `]`")

    def _string(self) -> str:
        start = self._at
        self._at += 1
        parts: list[str] = []
        while True:
            plain = _PLAIN.match(self._text, self._at)
            parts.append(plain[0] if plain else "")
            self._at += len(parts[-1])
            char = self._next_char()
            if char == '"':
                self._at += 1
                return "".join(parts)
            if char != "\\":
                self._fail_in_string(char, start)
            parts.append(self._read_escape())

    def _read_escape(self) -> str:
        escape = self._escape()
        start, self._at = self._at, escape.end()
        if escape[1]:
            return _ESCAPED.get(escape[1], escape[1])
        code = int(escape[2], 16)
        if not 0xD800 <= code <= 0xDFFF:
            return chr(code)
        low = _ESCAPE.match(self._text, self._at)
        tail = int(low[2], 16) if low and low[2] else 0
        if low and code < 0xDC00 <= tail <= 0xDFFF:
            self._at = low.end()
            return chr(0x10000 + ((code - 0xD800) << 10) + (tail - 0xDC00))
        self._at = start
        return self._refuse(f"`{escape[0]}` {HALF_A_PAIR} Write both halves, or the character.")

    def _escape(self) -> re.Match[str]:
        escape = _ESCAPE.match(self._text, self._at)
        if escape is None:
            found = show_text(self._text[self._at : self._at + 2])
            self._refuse(
                f"`{found}` is not a valid escape. Write `\\\\` for a backslash, or `\\uXXXX` for a character."
            )
        return escape

    def _number(self, number: re.Match[str]) -> int | float:
        after = self._text[number.end() : number.end() + 1]
        if after.isalnum() or after in {".", "_", "+"} - {""}:
            self._refuse(
                f"`{show_text(number[0] + after)}` is not a number. Write 30, -1 or 0.5, or put text in quotes."
            )
        value = float(number[0])
        if not math.isfinite(value):
            self._refuse(f"the number {show_text(number[0])} is too large. Write a smaller one, or a string.")
        self._at = number.end()
        if not number[1] and not number[2]:
            return int(number[0])
        return int(value) if value.is_integer() and abs(value) <= LARGEST_EXACT else value

    def _next_char(self) -> str:
        return self._text[self._at : self._at + 1]

    def _took(self, char: str) -> bool:
        taken = self._next_char() == char
        self._at += taken
        return taken

    def _skip_blank(self) -> None:
        blank = _BLANK.match(self._text, self._at)
        self._at = blank.end() if blank else self._at

    def _fail_in_string(self, char: str, start: int) -> NoReturn:
        if char in ("", "\n", "\r"):
            self._at = start
            self._refuse("this string is not closed. Add a double quote at its end; write a line break in it as \\n.")
        if char.isascii():
            self._refuse(f"a string holds {name_of(char)}. Write it as \\u{ord(char):04x}, or leave it out.")
        self._refuse(f"a string holds {name_of(char)}, which {HALF_A_PAIR} Leave it out.")

    def _fail(self, expected: str) -> NoReturn:
        advice = advice_at(self._text, self._at, expected)
        self._refuse(f"expected {expected}, found {describe_at(self._text, self._at)}.{advice and ' '}{advice}")

    def _refuse(self, words: str) -> NoReturn:
        line = self._line(self._at)
        raise NotJson(f"invalid JSON in line {line}, column {self._at - self._starts()[line - 1] + 1}: {words}")

    def _line(self, at: int) -> int:
        return bisect_right(self._starts(), at)

    def _starts(self) -> list[int]:
        if not self._line_starts:
            self._line_starts = [0, *(found.end() for found in _BREAK.finditer(self._text))]
        return self._line_starts
