"""Numbers and booleans read by meaning, then checked strictly.

Works on pydantic's core schema, so it holds wherever a number is declared:
in a list, in a nested model, beside other types in a union.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, cast

from pydantic_core import CoreSchema, core_schema


def _whole_number(value: Any) -> Any:
    if isinstance(value, str):
        text = value.strip()
        digits = text.removeprefix("-")
        return int(text) if digits.isascii() and digits.isdecimal() and len(digits) < 100 else value
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def _number(value: Any) -> Any:
    if isinstance(value, str):
        try:
            return float(value)
        except ValueError:
            return value
    return value


def _truth(value: Any) -> Any:
    return {"true": True, "false": False}.get(value.strip().lower(), value) if isinstance(value, str) else value


_MEANINGS: Final[Mapping[str, Callable[[Any], Any]]] = {"int": _whole_number, "float": _number, "bool": _truth}


_NESTING: Final = frozenset(
    {"schema", "items_schema", "values_schema", "keys_schema", "choices", "steps", "definitions"}
)


def by_meaning(schema: Any) -> Any:
    """The core schema with every number and boolean read by meaning, then checked strictly."""
    if isinstance(schema, list):
        return [by_meaning(item) for item in cast(list[Any], schema)]
    if not isinstance(schema, dict):
        return schema
    node = cast(dict[str, Any], schema)
    if node.get("type") in _MEANINGS and "mode" not in node:
        strict = cast(CoreSchema, {**node, "strict": True})
        return core_schema.no_info_before_validator_function(_MEANINGS[node["type"]], strict)
    return {
        key: by_meaning(value) if key in _NESTING else _each(value) if key == "fields" else value
        for key, value in node.items()
    }


def _each(fields: Any) -> Any:
    return {name: by_meaning(value) for name, value in cast(dict[str, Any], fields).items()}
