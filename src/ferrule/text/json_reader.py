"""Reads JSON and keeps where each part of the text is.

What walks a text is a `Reader`. One made of `object_at` and `array_at` walks only
the levels that it names; all below is left to the decoder of the standard library,
which makes a large text no slower than loading it would be. `strict_reader` walks
all of it and takes JSON only as the standard defines it: no comments, no trailing
commas, no NaN, and also no number that no program could hold and no half of a
surrogate pair, so that whatever reads the value afterwards meets ordinary text and
finite numbers only. Errors say where, what was found and what to write.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Callable, Mapping
from functools import cache
from json import JSONDecoder
from types import MappingProxyType
from typing import Any, Final, NoReturn, TypeAlias

from ..core.values import plain_value

DEEPEST: Final = 100
"""Levels of nesting for a strict reader. No settings come near this limit, and nothing that walks the value
overflows the stack."""
LARGEST_EXACT: Final = 2**53
"""Up to here a number with a fraction of zero is the same whole number to every reader."""

_AHEAD: Final = 40
_COMMENTS: Final = ("//", "/*", "#")
_WRONG_QUOTES: Final = ("'", "`", "\u201c", "\u201d", "\u2018", "\u2019")
_WORD: Final = re.compile(r"-?[^\W\d]\w{0,30}")
_MISSPELT: Final[Mapping[str, str]] = {"True": "true", "False": "false", "None": "null", "undefined": "null"}
_HALF_A_PAIR: Final = "is half of a surrogate pair and no character."

_DECODER: Final = JSONDecoder()
_SPACE: Final = re.compile(r"[ \t\r\n]*")
_BREAK: Final = re.compile(r"\r\n|\r|\n")
_STRING: Final = re.compile(r'"([^"\\\x00-\x1f\ud800-\udfff]*)"')
_PLAIN: Final = re.compile(r'[^"\\\x00-\x1f\ud800-\udfff]*')
_ESCAPE: Final = re.compile(r'\\(?:(["\\/bfnrt])|u([0-9a-fA-F]{4}))')
_ESCAPED: Final[Mapping[str, str]] = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?")
_LITERAL: Final = re.compile(r"(?:true|false|null)(?!\w)")
_LITERALS: Final[Mapping[str, bool | None]] = {"true": True, "false": False, "null": None}


class NotJson(ValueError):
    """The text is not valid JSON. The message names line and column, what was found and what to do."""


@plain_value
class Value:
    """Something that was decoded, or walked into: then it is an `Array` or an `Object`."""

    start: int
    end: int
    value: Any


@plain_value
class Member:
    key: str
    start: int
    """Where the key begins."""
    value: Value

    @property
    def end(self) -> int:
        return self.value.end


@plain_value
class Array:
    items: tuple[Value, ...]


@plain_value
class Object:
    members: tuple[Member, ...]
    """All of them, in order, also those whose key comes again."""

    def get(self, key: str) -> Member | None:
        """The last of that key, which takes precedence."""
        return next((member for member in reversed(self.members) if member.key == key), None)


Reader: TypeAlias = Callable[[str, int], Value]
"""Gives the value that begins at a place in a text. Raises `NotJson`."""


def read_json(text: str, read: Reader, at: int = 0) -> Value:
    """The one value that the text is, from there on. Raises `NotJson`."""
    value = read(text, past_space(text, at))
    rest = past_space(text, value.end)
    if rest < len(text):
        _fail(text, rest, "the end of the file")
    return value


def value_at(text: str, at: int) -> Value:
    """The value that begins there, as the standard library decodes it. Raises `NotJson`."""
    try:
        value, end = _DECODER.raw_decode(text, at)
    except RecursionError:
        raise NotJson("invalid JSON: it is nested too deeply") from None
    except ValueError as error:
        strict_reader()(text, at)  # it is strict about more, and says what is wrong and where
        raise NotJson(f"invalid JSON: {error}") from None
    return Value(at, end, value)


def array_at(text: str, at: int, read: Reader = value_at) -> Value:
    """An `Array` whose items `read` gives; any other value is decoded."""
    if not text.startswith("[", at):
        return value_at(text, at)
    items = list[Value]()
    place = past_space(text, at + 1)
    while items or not text.startswith("]", place):
        item = read(text, place)
        items.append(item)
        place = past_space(text, item.end)
        if text.startswith("]", place):
            break
        if not text.startswith(",", place):
            _fail(text, place, "`,` or `]`")
        place = past_space(text, place + 1)
    return Value(at, place + 1, Array(tuple(items)))


def object_at(
    text: str, at: int, readers: Mapping[str, Reader] = MappingProxyType({}), other: Reader = value_at
) -> Value:
    """An `Object` whose members the reader of their key gives, or `other`; any other value is decoded."""
    if not text.startswith("{", at):
        return value_at(text, at)
    members = list[Member]()
    place = past_space(text, at + 1)
    while members or not text.startswith("}", place):
        if not text.startswith('"', place):
            _fail(text, place, "a key in double quotes" if members else "a key in double quotes or `}`")
        key = other(text, place)
        colon = past_space(text, key.end)
        if not text.startswith(":", colon):
            _fail(text, colon, "`:` after the key")
        value = readers.get(key.value, other)(text, past_space(text, colon + 1))
        members.append(Member(key.value, place, value))
        place = past_space(text, value.end)
        if text.startswith("}", place):
            break
        if not text.startswith(",", place):
            _fail(text, place, "`,` or `}`")
        place = past_space(text, place + 1)
    return Value(at, place + 1, Object(tuple(members)))


@cache
def strict_reader(depth: int = 0) -> Reader:
    """Walks all of a value that is `depth` levels deep in the text."""

    def read(text: str, at: int) -> Value:
        match text[at : at + 1]:
            case '"':
                return _string_at(text, at)
            case "{" | "[" if depth > DEEPEST:
                _refuse(text, at, f"the value is nested more than {DEEPEST} levels deep. Flatten it.")
            case "{":
                return object_at(text, at, other=strict_reader(depth + 1))
            case "[":
                return array_at(text, at, strict_reader(depth + 1))
            case _:
                return _plain_at(text, at)

    return read


def past_space(text: str, at: int) -> int:
    """The first place from there on that is not whitespace.

    >>> past_space("{  }", 1)
    3
    """
    found = _SPACE.match(text, at)
    return found.end() if found else at


def line_starts(text: str) -> list[int]:
    return [0, *(found.end() for found in _BREAK.finditer(text))]


def _string_at(text: str, at: int) -> Value:
    whole = _STRING.match(text, at)
    if whole:
        return Value(at, whole.end(), whole[1])
    parts: list[str] = []
    place = at + 1
    while not text.startswith('"', place):
        plain = _PLAIN.match(text, place)
        if plain and plain[0]:
            parts.append(plain[0])
            place = plain.end()
        elif text.startswith("\\", place):
            part, place = _escape_at(text, place)
            parts.append(part)
        else:
            _fail_in_string(text, at, place)
    return Value(at, place + 1, "".join(parts))


def _escape_at(text: str, at: int) -> tuple[str, int]:
    """The character, and where the escape ends."""
    escape = _ESCAPE.match(text, at)
    if escape is None:
        found = _show(text[at : at + 2])
        words = f"`{found}` is not a valid escape. Write `\\\\` for a backslash, or `\\uXXXX` for a character."
        _refuse(text, at, words)
    if escape[1]:
        return _ESCAPED.get(escape[1], escape[1]), escape.end()
    code = int(escape[2], 16)
    if not 0xD800 <= code <= 0xDFFF:
        return chr(code), escape.end()
    low = _ESCAPE.match(text, escape.end())
    tail = int(low[2], 16) if low and low[2] else 0
    if low is None or not code < 0xDC00 <= tail <= 0xDFFF:
        _refuse(text, at, f"`{escape[0]}` {_HALF_A_PAIR} Write both halves, or the character.")
    return chr(0x10000 + ((code - 0xD800) << 10) + (tail - 0xDC00)), low.end()


def _plain_at(text: str, at: int) -> Value:
    if literal := _LITERAL.match(text, at):
        return Value(at, literal.end(), _LITERALS[literal[0]])
    number = _NUMBER.match(text, at)
    if number is None:
        _fail(text, at, "a value")
    after = text[number.end() : number.end() + 1]
    if after.isalnum() or after in {".", "_", "+"} - {""}:
        words = f"`{_show(number[0] + after)}` is not a number. Write 30, -1 or 0.5, or put text in quotes."
        _refuse(text, at, words)
    value = float(number[0])
    if not math.isfinite(value):
        _refuse(text, at, f"the number {_show(number[0])} is too large. Write a smaller one, or a string.")
    if not number[1] and not number[2]:
        return Value(at, number.end(), int(number[0]))
    return Value(at, number.end(), int(value) if value.is_integer() and abs(value) <= LARGEST_EXACT else value)


def _fail_in_string(text: str, start: int, at: int) -> NoReturn:
    char = text[at : at + 1]
    if char in ("", "\n", "\r"):
        words = "this string is not closed. Add a double quote at its end; write a line break in it as \\n."
        _refuse(text, start, words)
    if char.isascii():
        _refuse(text, at, f"a string holds {_name_of(char)}. Write it as \\u{ord(char):04x}, or leave it out.")
    _refuse(text, at, f"a string holds {_name_of(char)}, which {_HALF_A_PAIR} Leave it out.")


def _fail(text: str, at: int, expected: str) -> NoReturn:
    advice = _advice_at(text, at, expected)
    _refuse(text, at, f"expected {expected}, found {_describe_at(text, at)}.{advice and ' '}{advice}")


def _refuse(text: str, at: int, words: str) -> NoReturn:
    starts = line_starts(text[:at])
    raise NotJson(f"invalid JSON in line {len(starts)}, column {at - starts[-1] + 1}: {words}")


def _describe_at(text: str, at: int) -> str:
    rest = text[at : at + _AHEAD]
    if not rest:
        return "the end of the file"
    if rest.startswith(_COMMENTS):
        return "a comment"
    word = _WORD.match(rest)
    return f"`{word[0]}`" if word else _name_of(rest[0])


def _advice_at(text: str, at: int, expected: str) -> str:
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


def _name_of(char: str) -> str:
    """
    >>> _name_of("}"), _name_of(chr(0xA0))
    ('`}`', 'U+00A0 (no-break space)')
    """
    if char.isprintable() and not char.isspace():
        return f"`{char}`"
    name = unicodedata.name(char, "").lower()
    return f"U+{ord(char):04X}" + (f" ({name})" if name else "")


def _show(text: str) -> str:
    text = text if len(text) <= 30 else f"{text[:27]}..."
    return text if text.isprintable() else ascii(text)[1:-1]
