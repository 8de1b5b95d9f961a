"""Numbers, booleans and lists read by meaning, then checked strictly.

Works on pydantic's core schema, so it holds wherever a number is declared:
in a list, in a nested model, beside other types in a union.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, cast

from pydantic_core import CoreSchema, core_schema

from .text_arguments import listing, number, truth, whole_number

_MEANINGS: Final[Mapping[str, Callable[[Any], Any]]] = {"int": whole_number, "float": number, "bool": truth}


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
        return _read_as(_MEANINGS[node["type"]], node)
    if node.get("type") == "list":
        return core_schema.no_info_before_validator_function(listing, cast(CoreSchema, _inside(node)))
    if node.get("type") == "union" and any(_is_text(choice) for choice in node["choices"]):
        return {**node, "choices": [_beside_text(choice) for choice in node["choices"]]}
    return _inside(node)


def _inside(node: dict[str, Any]) -> dict[str, Any]:
    return {
        key: by_meaning(value) if key in _NESTING else _each(value) if key == "fields" else value
        for key, value in node.items()
    }


def _read_as(meaning: Callable[[Any], Any], node: dict[str, Any]) -> Any:
    strict = cast(CoreSchema, {**node, "strict": True})
    return core_schema.no_info_before_validator_function(meaning, strict)


def _is_text(choice: Any) -> bool:
    return isinstance(choice, dict) and cast(dict[str, Any], choice).get("type") == "str"


def _beside_text(choice: Any) -> Any:
    """Where a string is welcome as such, `"007"` stays one."""
    node = cast(dict[str, Any], choice) if isinstance(choice, dict) else {}
    meaning = _MEANINGS.get(node.get("type", ""))
    if meaning is None:
        return _inside(node) if node.get("type") == "list" else by_meaning(choice)
    return _read_as(lambda value: value if isinstance(value, str) else meaning(value), node)


def _each(fields: Any) -> Any:
    return {name: by_meaning(value) for name, value in cast(dict[str, Any], fields).items()}


def null_means_the_default(schema: CoreSchema) -> CoreSchema:
    """The core schema of a model in which null, for a field whose default is something else, is as if left out."""
    droppable = frozenset(_fields_with_default(schema))
    if not droppable:
        return schema

    def without_nulls(data: Any) -> Any:
        if not isinstance(data, Mapping):
            return data
        given = cast(Mapping[str, Any], data)
        if None not in given.values():
            return given
        return {key: value for key, value in given.items() if value is not None or key not in droppable}

    return core_schema.no_info_before_validator_function(without_nulls, schema)


def _fields_with_default(schema: Any) -> Iterator[str]:
    """The names, and aliases, of the fields whose default is something other than null."""
    node = cast(dict[str, Any], schema)
    while node.get("type") != "model-fields":
        if "schema" not in node:
            return
        node = node["schema"]
    for name, field in node["fields"].items():
        default = field["schema"]
        if default.get("type") == "default" and (default.get("default", ...) is not None):
            yield name
            if isinstance(field.get("validation_alias"), str):
                yield field["validation_alias"]
