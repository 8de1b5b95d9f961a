"""Where the parts of a JSON text are.

Only the levels that a caller asks for are walked; all below is left to the
decoder of the standard library, which makes a large text no slower than
loading it would be.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from json import JSONDecodeError, JSONDecoder
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from ..core.values import plain_value

_SPACE: Final = re.compile(r"[ \t\r\n]*")
_DECODER: Final = JSONDecoder()


class BadJson(Exception):
    """The text is not valid JSON. The message says what is wrong and where."""


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


def value_at(text: str, at: int) -> Value:
    """The value that begins there, decoded. Raises `BadJson`."""
    try:
        value, end = _DECODER.raw_decode(text, at)
    except JSONDecodeError as error:
        raise BadJson(f"{error.msg} in line {error.lineno:,}, column {error.colno:,}") from None
    except RecursionError:
        raise BadJson("it is nested too deeply") from None
    except ValueError as error:  # a number of more digits than Python converts
        raise BadJson(str(error)) from None
    return Value(at, end, value)


def array_at(text: str, at: int, read: Reader = value_at) -> Value:
    """An `Array` whose items `read` gives; any other value is decoded."""
    if not text.startswith("[", at):
        return value_at(text, at)
    items = list[Value]()
    place = past_space(text, at + 1)
    while not (text.startswith("]", place) and not items):
        items.append(read(text, place))
        place = past_space(text, items[-1].end)
        if text.startswith("]", place):
            break
        place = past_space(text, _past(text, place, ","))
    return Value(at, place + 1, Array(tuple(items)))


def object_at(text: str, at: int, readers: Mapping[str, Reader] = MappingProxyType({})) -> Value:
    """An `Object` whose members the reader of their key gives, where there is one; any other value is decoded."""
    if not text.startswith("{", at):
        return value_at(text, at)
    members = list[Member]()
    place = past_space(text, at + 1)
    while not (text.startswith("}", place) and not members):
        members.append(_member(text, place, readers))
        place = past_space(text, members[-1].end)
        if text.startswith("}", place):
            break
        place = past_space(text, _past(text, place, ","))
    return Value(at, place + 1, Object(tuple(members)))


def whole(text: str, read: Reader) -> Value:
    """The one value that the text is."""
    value = read(text, past_space(text, 0))
    rest = past_space(text, value.end)
    if rest < len(text):
        raise _wrong(text, rest, "Extra text after the end")
    return value


def past_space(text: str, at: int) -> int:
    """The first place from there on that is not whitespace.

    >>> past_space("{  }", 1)
    3
    """
    found = _SPACE.match(text, at)
    return found.end() if found else at


def _member(text: str, at: int, readers: Mapping[str, Reader]) -> Member:
    if not text.startswith('"', at):
        raise _wrong(text, at, "A key in double quotes is missing")
    key = value_at(text, at)
    place = past_space(text, _past(text, past_space(text, key.end), ":"))
    return Member(key.value, at, readers.get(key.value, value_at)(text, place))


def _past(text: str, at: int, sign: str) -> int:
    if not text.startswith(sign, at):
        raise _wrong(text, at, f"`{sign}` is missing")
    return at + 1


def _wrong(text: str, at: int, what: str) -> BadJson:
    error = JSONDecodeError(what, text, at)
    return BadJson(f"{what} in line {error.lineno:,}, column {error.colno:,}")
