"""Texts read as the number, boolean, list or object that is meant: models write `"10"` where 10 is asked for."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from typing import Any, Final, cast


def whole_number(value: Any) -> Any:
    if isinstance(value, str):
        text = value.strip()
        digits = text.removeprefix("-")
        return int(text) if digits.isascii() and digits.isdecimal() and len(digits) < 100 else value
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def number(value: Any) -> Any:
    if isinstance(value, str):
        try:
            read = float(value)
        except ValueError:
            return value
        return read if math.isfinite(read) and "_" not in value else value
    return value


def truth(value: Any) -> Any:
    return {"true": True, "false": False}.get(value.strip().lower(), value) if isinstance(value, str) else value


def listing(value: Any) -> Any:
    return _from_json(value, list)


def _from_json(value: Any, kind: type) -> Any:
    """The list or object that a text is the JSON of; anything else as it is."""
    if not isinstance(value, str) or value.lstrip()[:1] not in ("[", "{"):
        return value
    try:
        read = json.loads(value)
    except (ValueError, RecursionError):
        return value
    return read if isinstance(read, kind) else value


_JSON_MEANINGS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "integer": whole_number,
    "number": lambda value: number(whole_number(value)),
    "boolean": truth,
    "array": listing,
    "object": lambda value: _from_json(value, dict),
}


def read_by_schema(arguments: Mapping[str, Any], schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """The arguments, with texts read by the meaning that a JSON schema wants where it wants no text.

    >>> read_by_schema({"a": "1", "b": "1"}, {"properties": {"a": {"type": "integer"}, "b": {"type": "string"}}})
    {'a': 1, 'b': '1'}
    """
    properties = schema.get("properties")
    if not isinstance(properties, Mapping) or not any(isinstance(value, str) for value in arguments.values()):
        return arguments
    wanted = cast(Mapping[str, Any], properties)
    return {name: _read_as_wanted(value, wanted.get(name)) for name, value in arguments.items()}


def _read_as_wanted(value: Any, schema: Any) -> Any:
    kinds: Any = cast(Mapping[str, Any], schema).get("type") if isinstance(schema, Mapping) else None
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if not isinstance(value, str) or not isinstance(kinds, list) or "string" in kinds:
        return value
    meanings = (_JSON_MEANINGS.get(str(kind)) for kind in cast(list[Any], kinds))
    read = (meaning(value) for meaning in meanings if meaning is not None)
    return next((one for one in read if not isinstance(one, str)), value)
