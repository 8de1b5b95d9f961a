"""Places in a settings file, and how they are shown."""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from typing import Any, Final, cast

from .strict_json import Place

LONGEST_VALUE: Final = 60
LONGEST_PATH: Final = 100

_SIMPLE_KEY: Final = re.compile(r"[A-Za-z_$][\w$-]*", re.ASCII)


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
