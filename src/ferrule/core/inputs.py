"""Inputs as models write them: strict about meaning, lenient about spelling.

Unknown keys are refused by name. `"10"` is a whole number and `"true"` a
boolean where those are declared, and JSON text a list, because models send them; `"1.5"`, `"yes"`
and `1` for `true` are not. `null` for a field that has a default means the
default. This works on pydantic's core schema, so it holds wherever a number is
declared: in a list, in a nested model, beside other types in a union.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Annotated, Any, ClassVar, Final, TypeAlias, cast, get_args

from pydantic import BaseModel, ConfigDict, GetCoreSchemaHandler, ValidationError
from pydantic_core import CoreSchema, core_schema

from .calls import Refusal, Status
from .input_errors import explain
from .schemas import lean
from .text_arguments import listing, number, truth, whole_number

_MEANINGS: Final[Mapping[str, Callable[[Any], Any]]] = {"int": whole_number, "float": number, "bool": truth}


_NESTING: Final = frozenset(
    {"schema", "items_schema", "values_schema", "keys_schema", "choices", "steps", "definitions"}
)


def by_meaning(schema: Any) -> Any:
    """The core schema with every number, boolean and list read by meaning, then checked strictly."""
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


class IsPath:
    """Marks a field that holds a file path; see `PathText`."""


PathText: TypeAlias = Annotated[str, IsPath()]
"""A path as the model wrote it. Before a tool, rule or hook sees it, the engine makes it absolute and normal."""


class ToolInput(BaseModel):
    """The arguments of a call. Every field should carry a description for the model."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    path_fields: ClassVar[tuple[str, ...]] = ()
    """The fields declared as `PathText`, found when the class is made."""

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        super().__pydantic_init_subclass__(**kwargs)
        for name, field in cls.model_fields.items():
            _require_inputs(name, field.annotation)
        cls.path_fields = tuple(
            name
            for name, field in cls.model_fields.items()
            if any(isinstance(mark, IsPath) for mark in field.metadata) or _mentions_path(field.annotation)
        )

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return null_means_the_default(by_meaning(handler(source)))


def _require_inputs(name: str, annotation: Any) -> None:
    """A model inside an input must be one itself, or its unknown keys and odd numbers would not be noticed."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        if not issubclass(annotation, ToolInput):
            raise TypeError(f"`{name}` holds {annotation.__name__}, which must derive from ToolInput.")
        if annotation.path_fields:
            raise TypeError(f"`{name}` holds {annotation.__name__}, whose paths nobody would make absolute.")
    for part in get_args(annotation):
        _require_inputs(name, part)


def _mentions_path(annotation: Any) -> bool:
    return any(isinstance(part, IsPath) or _mentions_path(part) for part in get_args(annotation))


def schema_of(model: Any) -> Mapping[str, Any] | None:
    """The schema of an input model; `None` if it is not one."""
    return json.loads(_schema_json(model)) if isinstance(model, type) and issubclass(model, ToolInput) else None


@lru_cache(maxsize=512)
def _schema_json(model: type[ToolInput]) -> str:
    """Made once for each class, as it takes a millisecond and every session has every tool."""
    return json.dumps(lean(model.model_json_schema()))


def parse_input(tool: str, model: type[ToolInput], arguments: Mapping[str, Any]) -> ToolInput:
    """Raises `Refusal(INVALID)` that names each bad field."""
    try:
        return model.__pydantic_validator__.validate_python(arguments)
    except ValidationError as error:
        raise Refusal(Status.INVALID, explain(tool, error, model)) from None
