"""Servers' JSON Schemas in the form that model services accept: an object at the root, with its properties."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

_CHOICES: Final = ("anyOf", "oneOf", "allOf")
_DEEPEST: Final = 16
"""References from the root to the root that are followed."""


def flatten_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema with the choices at its root written as one object. All below the root stays as it is.

    What was required by every choice is required still; what arguments
    must really be is checked against the schema as the server gave it.

    >>> flatten_schema({"oneOf": [{"properties": {"a": {}}, "required": ["a"]}, {"properties": {"b": {}}}]})
    {'type': 'object', 'properties': {'a': {}, 'b': {}}}
    """
    root = _merge(schema, schema, 0)
    root.pop("$ref", None)
    return {"type": "object", "properties": root.get("properties", {})} | {**root, "type": "object"}


def _merge(schema: Mapping[str, Any], root: Mapping[str, Any], depth: int) -> dict[str, Any]:
    if depth > _DEEPEST:
        return {}
    merged = {key: value for key, value in schema.items() if key not in _CHOICES}
    target = _follow_reference(schema.get("$ref"), root)
    if target is not None:
        merged = {**_merge(target, root, depth + 1), **{k: v for k, v in merged.items() if k != "$ref"}}
    for key in _CHOICES:
        options = [_merge(one, root, depth + 1) for one in _objects(schema.get(key))]
        if options:
            _join(merged, options, all_hold=key == "allOf")
    return merged


def _join(merged: dict[str, Any], options: Sequence[Mapping[str, Any]], *, all_hold: bool) -> None:
    properties: dict[str, Any] = {}
    for option in options:
        for name, inner in cast(Mapping[str, Any], option.get("properties", {})).items():
            properties.setdefault(name, inner)
    merged["properties"] = {**properties, **merged.get("properties", {})}
    lists = [_names(option.get("required")) for option in options]
    shared = [name for name in dict.fromkeys(name for one in lists for name in one)
              if all_hold or all(name in one for one in lists)]  # fmt: skip
    required = list(dict.fromkeys((*_names(merged.get("required")), *shared)))
    if required:
        merged["required"] = required


def _follow_reference(reference: Any, root: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """What a reference within the same document leads to."""
    if not isinstance(reference, str) or not reference.startswith("#"):
        return None
    found: Any = root
    for step in reference[1:].split("/")[1:]:
        if not isinstance(found, Mapping):
            return None
        found = cast(Mapping[str, Any], found).get(step.replace("~1", "/").replace("~0", "~"))
    return cast(Mapping[str, Any], found) if isinstance(found, Mapping) else None


def _objects(value: Any) -> list[Mapping[str, Any]]:
    return [one for one in cast(list[Any], value) if isinstance(one, Mapping)] if isinstance(value, list) else []


def _names(value: Any) -> list[str]:
    return [one for one in cast(list[Any], value) if isinstance(one, str)] if isinstance(value, list) else []
