"""An answer in the shape that a caller asked for: a tool that the model must call, with the caller's schema."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, cast

from ..core.calls import Refusal, Status
from ..core.context import ToolContext
from ..core.effects import Effects
from ..core.tool import Tool

if TYPE_CHECKING:
    from jsonschema.protocols import Validator

NAME = "StructuredOutput"
MOST_TRIES = 5
"""Invalid or missing answers before the run is aborted."""
_MOST_NAMED = 5
_DATA = frozenset({"const", "enum", "default", "examples"})
"""Keys of a schema whose values are not schemas."""


class SchemaError(ValueError):
    """A schema that answers cannot be validated against. The message says why."""


class StructuredOutput(Tool[Mapping[str, Any], str]):
    """Keeps the last answer that fits."""

    name = NAME
    title = "Answer"
    description = (
        "Give your final answer to the request, in the shape that this tool's schema requires.\n\n"
        "Do all other work first. Then call this once, as the last thing; whoever asked reads only what you give here. "
        "If the call is refused, correct the fields it names and call again."
    )
    hint = "give the final answer"

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._schema = schema
        self._validator = _validator(schema)
        self.answer: Any = None
        self.given = False
        self.refused = 0

    def begin(self) -> None:
        """Forget the answer to the prompt before."""
        self.answer, self.given, self.refused = None, False, 0

    def input_schema(self) -> Mapping[str, Any]:
        return self._schema

    def parse(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        faults = sorted(self._validator.iter_errors(arguments), key=lambda fault: list(map(str, fault.absolute_path)))
        if not faults:
            return arguments
        self.refused += 1
        words = "; ".join(f"{_place(fault.absolute_path)}: {fault.message}" for fault in faults[:_MOST_NAMED])
        raise Refusal(Status.INVALID, f"The answer does not fit its schema: {words}. Correct it and call {NAME} again.")

    def effects(self, input: Mapping[str, Any], ctx: ToolContext) -> Effects:
        return Effects.of()

    async def call(self, input: Mapping[str, Any], ctx: ToolContext) -> str:
        self.answer, self.given = input, True
        return "The answer was accepted."


def read_schema(text: str) -> Mapping[str, Any]:
    """Raises `SchemaError`. The text is JSON; tools take objects, so the schema must be one of an object."""
    try:
        schema = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise SchemaError(f"it is not valid JSON: {error or type(error).__name__}") from None
    if not isinstance(schema, dict):
        raise SchemaError('it must be a JSON object, such as {"type": "object", "properties": {}}')
    if schema.get("type", "object") != "object":  # pyright: ignore[reportUnknownMemberType]
        raise SchemaError('its `type` must be "object"; put any other value into a property')
    return {"type": "object", **schema}


def _validator(schema: Mapping[str, Any]) -> Validator:
    from jsonschema.exceptions import SchemaError as BadSchema
    from jsonschema.validators import validator_for
    from referencing import Registry

    plain = dict(schema)
    kind = validator_for(plain)
    try:
        kind.check_schema(plain)
    except BadSchema as error:
        raise SchemaError(f"{_place(error.absolute_path)}: {error.message}") from None
    if reference := _leads_nowhere(plain):
        raise SchemaError(f"its `$ref` {reference} cannot be resolved. Put what it names into the schema")
    return kind(plain, registry=Registry())  # an empty registry: a reference elsewhere is an error, never a request


def _leads_nowhere(schema: dict[str, Any]) -> str | None:
    """The first reference that does not resolve inside the schema, so answers could not be validated."""
    from referencing import Registry, Resource
    from referencing.exceptions import Unresolvable
    from referencing.jsonschema import DRAFT202012

    resource = Resource[Any].from_contents(schema, default_specification=DRAFT202012)
    base = resource.id() or ""
    resolver = Registry[Any]().with_resource(base, resource).resolver(base)
    for reference in _references(schema):
        try:
            resolver.lookup(reference)
        except Unresolvable:
            return reference
    return None


def _references(part: Any) -> Iterator[str]:
    """Those with the base of the whole schema; a part with its own `$id` has another."""
    match part:
        case list():
            for one in cast(list[Any], part):
                yield from _references(one)
        case dict():
            for key, value in cast(dict[str, Any], part).items():
                if key == "$ref" and isinstance(value, str):
                    yield value
                elif key not in _DATA and not (isinstance(value, dict) and "$id" in value):
                    yield from _references(value)
        case _:
            pass


def _place(path: Any) -> str:
    return ".".join(map(str, path)) or "the whole"
