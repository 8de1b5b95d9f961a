"""Whether a value is what a vendor's own request types say, with no key that they do not know.

pydantic checks lists declared as `Iterable` lazily, and passes over unknown keys.
"""

from __future__ import annotations

import types
from typing import Annotated, Any, Literal, NotRequired, Required, Union, get_args, get_origin

from typing_extensions import get_type_hints, is_typeddict


def problems(value: Any, expected: Any, place: str = "request") -> list[str]:
    origin = get_origin(expected)
    if origin in (Annotated, Required, NotRequired):
        return problems(value, get_args(expected)[0], place)
    if origin in (Union, types.UnionType):
        return _of_union(value, get_args(expected), place)
    if origin is Literal:
        return [] if value in get_args(expected) else [f"{place}: {value!r} is none of {get_args(expected)}"]
    if is_typeddict(expected):
        return _of_typed_dict(value, expected, place)
    if origin is dict:
        return [] if isinstance(value, dict) else [f"{place}: {value!r} is no object"]
    if origin is not None and get_args(expected):  # list, Iterable and the like
        if not isinstance(value, list):
            return [f"{place}: {value!r} is no list"]
        (item,) = get_args(expected)
        return [one for at, part in enumerate(value) for one in problems(part, item, f"{place}[{at}]")]
    if expected in (Any, object):
        return []
    if expected is None or expected is type(None):
        return [] if value is None else [f"{place}: {value!r} is not null"]
    if isinstance(expected, type) and isinstance(value, expected) and isinstance(value, bool) == (expected is bool):
        return []
    return [f"{place}: {value!r} is no {expected}"]


def _of_union(value: Any, members: tuple[Any, ...], place: str) -> list[str]:
    found = [problems(value, member, place) for member in members]
    return [] if [] in found else min(found, key=len)


def _of_typed_dict(value: Any, expected: Any, place: str) -> list[str]:
    if not isinstance(value, dict):
        return [f"{place}: {value!r} is no object"]
    hints = get_type_hints(expected, include_extras=True)
    extra = getattr(expected, "__pydantic_config__", {}).get("extra") == "allow"
    unknown = [f"{place}.{key} is not known to {expected.__name__}" for key in value if key not in hints and not extra]
    missing = [f"{place}.{key} is missing" for key in expected.__required_keys__ if key not in value]
    wrong = [one for key in value if key in hints for one in problems(value[key], hints[key], f"{place}.{key}")]
    return unknown + missing + wrong
