"""A settings file as JSON: its value, the place and line of each part, and how places are shown.

One byte order mark at the start is skipped, as editors on Windows write one. A
repeated key is not an error of syntax: the last one applies, and all are reported.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Collection, Mapping
from typing import Any, Final, TypeAlias, cast

from ..core.values import plain_value
from ..text.json_reader import Array, NotJson, Object, Value, line_starts, past_space, read_json, strict_reader

BYTE_ORDER_MARK: Final = "\ufeff"
LONGEST_VALUE: Final = 60
LONGEST_PATH: Final = 100

_SIMPLE_KEY: Final = re.compile(r"[A-Za-z_$][\w$-]*", re.ASCII)


Place: TypeAlias = tuple[str | int, ...]
"""Keys and indexes from the top of the value down."""


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
    ferrule.text.json_reader.NotJson: invalid JSON in line 1, column 7: expected a value, found `]`. Remove the ...
    """
    start = len(BYTE_ORDER_MARK) if text.startswith(BYTE_ORDER_MARK) else 0
    if past_space(text, start) == len(text):
        raise NotJson("the file is empty. Write at least an empty object or list, as its kind of file needs.")
    places = _Places(text)
    value = places.unfold(read_json(text, strict_reader(), start), ())
    return Parsed(value, tuple(places.repeated), places.lines)


class _Places:
    """Collects them while it takes the values out of what was read."""

    def __init__(self, text: str) -> None:
        self._starts = line_starts(text)
        self.lines: dict[Place, int] = {}
        self.repeated: list[Repeated] = []

    def unfold(self, read: Value, place: Place) -> Any:
        match read.value:
            case Object(members):
                found: dict[str, Any] = {}
                first: dict[str, int] = {}
                for member in members:
                    inner, line = (*place, member.key), bisect_right(self._starts, member.start)
                    if member.key in first:
                        self.repeated.append(Repeated(inner, first[member.key], line))
                    first.setdefault(member.key, line)
                    self.lines[inner] = line
                    found[member.key] = self.unfold(member.value, inner)
                return found
            case Array(items):
                return [self._item(item, (*place, at)) for at, item in enumerate(items)]
            case plain:
                return plain

    def _item(self, item: Value, place: Place) -> Any:
        self.lines[place] = bisect_right(self._starts, item.start)
        return self.unfold(item, place)


def write_place(place: Place) -> str:
    """
    >>> write_place(("permissions", "allow", 2)), write_place(("env", "a b"))
    ('permissions.allow[2]', 'env["a b"]')
    """
    path = ""
    for part in place:
        if isinstance(part, int):
            path += f"[{part}]"
        elif _SIMPLE_KEY.fullmatch(part):
            path += f".{part}" if path else part
        else:
            path += f"[{show_value(part)}]"
    return path if len(path) <= LONGEST_PATH else f"{path[: LONGEST_PATH - 3]}..."


def without(value: Any, gone: Collection[Place], place: Place = ()) -> Any:
    """The value without what is at those places."""
    match value:
        case dict():
            members = cast(dict[str, Any], value).items()
            return {key: without(inner, gone, (*place, key)) for key, inner in members if (*place, key) not in gone}
        case list():
            items = enumerate(cast(list[Any], value))
            return [without(inner, gone, (*place, at)) for at, inner in items if (*place, at) not in gone]
        case _:
            return value


def as_in_file(place: Place, gone: Collection[Place]) -> Place:
    """The place in the file of a place in the rest: items before it may have been left out."""
    if not gone:
        return place
    found: Place = ()
    for part in place:
        if isinstance(part, int):
            left, part = part, 0
            while left or (*found, part) in gone:
                left -= (*found, part) not in gone
                part += 1
        found = (*found, part)
    return found


def show_value(value: Any) -> str:
    match value:
        case dict():
            return "an object"
        case list() | tuple():
            return "a list"
        case _:
            text = json.dumps(value, ensure_ascii=not str(value).isprintable())
            end = '..."' if isinstance(value, str) else "..."
            return text if len(text) <= LONGEST_VALUE else text[: LONGEST_VALUE - len(end)] + end
