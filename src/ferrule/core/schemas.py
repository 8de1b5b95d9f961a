"""JSON Schemas as a model should see them: no titles, no spelled-out nulls."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast


def lean(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Drop generated titles, and write `string` for `string or null` with a null default.

    Omitting an optional field and sending null mean the same, so neither needs words.

    >>> lean({"title": "T", "properties": {"title": {"title": "Title", "type": "string"}}})
    {'properties': {'title': {'type': 'string'}}}
    """
    slim = {key: _slim(key, value) for key, value in schema.items() if key != "title"}
    options = cast(list[Any], slim.get("anyOf", ()))
    kept = [option for option in options if option != {"type": "null"}]
    if len(kept) == 1 and len(options) == 2:
        del slim["anyOf"]
        slim = {**kept[0], **slim}
    if slim.get("default", ...) is None:
        del slim["default"]
    return slim


def _slim(key: str, value: Any) -> Any:
    if key in ("properties", "$defs", "patternProperties"):
        return {name: lean(inner) for name, inner in cast(Mapping[str, Any], value).items()}
    if key in ("default", "const", "enum", "examples"):
        return value
    if isinstance(value, Mapping):
        return lean(cast(Mapping[str, Any], value))
    if isinstance(value, list):
        items = cast(list[Any], value)
        return [lean(cast(Mapping[str, Any], item)) if isinstance(item, Mapping) else item for item in items]
    return value
