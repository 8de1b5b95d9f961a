"""The forms in which an author may give a tool's parameters, as one JSON Schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import (
    Annotated,
    Any,
    Final,
    NotRequired,
    Required,
    cast,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

from pydantic import PydanticSchemaGenerationError, TypeAdapter
from pydantic.errors import PydanticInvalidForJsonSchema, PydanticUserError

from ..core.schemas import lean
from ..core.tool import ToolDefinitionError
from ..core.values import plain_value

_EXACT: Final[Mapping[str, frozenset[type]]] = {
    "string": frozenset({str}),
    "number": frozenset({int, float}),
    "integer": frozenset({int}),
    "boolean": frozenset({bool}),
}
_WORDS: Final = frozenset({"title", "description"})


@plain_value
class QuickCheck:
    """Accepts most valid arguments of a plain schema in a fraction of the time; not accepting means nothing."""

    required: frozenset[str]
    types: Mapping[str, frozenset[type]]

    def accepts(self, given: Mapping[str, Any]) -> bool:
        if not self.required <= given.keys():
            return False
        return all(type(value) in self.types[name] for name, value in given.items() if name in self.types)


def quick_check(schema: Mapping[str, Any]) -> QuickCheck | None:
    """`None` for a schema that says more than the plain types of its parameters.

    >>> quick_check(schema_of({"a": float})).accepts({"a": 1})
    True
    >>> quick_check({"type": "object", "properties": {"a": {"enum": [1]}}}) is None
    True
    """
    if schema.get("type") != "object" or not schema.keys() <= {"type", "properties", "required", *_WORDS}:
        return None
    properties = cast(Mapping[str, Mapping[str, Any]], schema.get("properties", {}))
    kinds = {name: _EXACT.get(str(kind.get("type"))) for name, kind in properties.items()}
    plain = all(kind.keys() <= {"type", *_WORDS} for kind in properties.values())
    types = {name: exact for name, exact in kinds.items() if exact is not None}
    return QuickCheck(frozenset(schema.get("required", ())), types) if plain and len(types) == len(kinds) else None


def schema_of(given: Any) -> dict[str, Any]:
    """
    >>> schema_of({"a": float})
    {'type': 'object', 'properties': {'a': {'type': 'number'}}, 'required': ['a']}
    """
    if is_typeddict(given):
        return _of_typed_dict(given)
    if isinstance(given, Mapping):
        fields = cast(Mapping[str, Any], given)
        return dict(fields) if _is_json_schema(fields) else _object(fields, frozenset(fields))
    raise ToolDefinitionError(
        f"{given!r} is not an input schema. Give a dict of names and types, a TypedDict or a JSON Schema."
    )


def _of_typed_dict(given: Any) -> dict[str, Any]:
    """`NotRequired` is read off each annotation: if those are strings, the class itself does not know it."""
    fields = get_type_hints(given, include_extras=True)
    required = set(cast(frozenset[str], given.__required_keys__))
    for name, kind in fields.items():
        if get_origin(kind) in (Required, NotRequired):
            fields[name] = get_args(kind)[0]
            (required.add if get_origin(kind) is Required else required.discard)(name)
    return _object(fields, frozenset(required))


def _is_json_schema(given: Mapping[str, Any]) -> bool:
    """A parameter may be called `type` or `$ref` too; its value is a type then, not a string."""
    return any(isinstance(given.get(key), str) for key in ("type", "$schema", "$ref")) or "properties" in given


def _object(fields: Mapping[str, Any], required: frozenset[str]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {name: _field(kind) for name, kind in fields.items()},
        "required": [name for name in fields if name in required],
    }


def _field(kind: Any) -> dict[str, Any]:
    """Types that JSON does not have are treated as strings."""
    described: dict[str, Any] = {}
    if get_origin(kind) is Annotated:
        words = [mark for mark in get_args(kind)[1:] if isinstance(mark, str)]
        described = {"description": words[0]} if words else {}
    try:
        schema = lean(TypeAdapter(kind).json_schema())
    except (PydanticSchemaGenerationError, PydanticInvalidForJsonSchema, PydanticUserError):
        schema = {"type": "string"}
    return {**(schema or {"type": "string"}), **described}
