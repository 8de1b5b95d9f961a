"""Validates inputs and outputs against their types. Pydantic is loaded here when first needed, not at startup."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Final, TypeVar

from pydantic import TypeAdapter, ValidationError
from pydantic.errors import PydanticUserError

from .calls import Refusal, Status
from .input_errors import explain
from .inputs import ToolInput
from .schemas import lean

_ANYTHING: Final[TypeAdapter[Any]] = TypeAdapter(Any)


def schema_of(model: Any) -> Mapping[str, Any] | None:
    """The schema of an input model; `None` if it is not one."""
    return json.loads(_adapter_source(model)) if isinstance(model, type) and issubclass(model, ToolInput) else None


@lru_cache(maxsize=512)
def _adapter_source(model: type[ToolInput]) -> str:
    """Made once for each class, as it takes a millisecond and every session has every tool."""
    return json.dumps(lean(model.model_json_schema()))


def parse_input(tool: str, model: type[ToolInput], arguments: Mapping[str, Any]) -> ToolInput:
    """Raises `Refusal(INVALID)` that names each bad field."""
    try:
        return model.__pydantic_validator__.validate_python(arguments)
    except ValidationError as error:
        raise Refusal(Status.INVALID, explain(tool, error, model)) from None


def check_of(output_model: Any) -> Callable[[Any], Any]:
    """Gives the output back as the type says, or raises."""
    return TypeAdapter[Any](output_model).validator.validate_python


def output_schema_of(output_type: Any) -> dict[str, Any] | None:
    """The schema of what a tool gives; `None` where its type says nothing."""
    if output_type in (None, Any) or isinstance(output_type, TypeVar):
        return None
    try:
        return TypeAdapter[Any](output_type).json_schema(mode="serialization")
    except PydanticUserError:
        return None


def to_json(output: Any) -> str:
    return _ANYTHING.dump_json(output).decode()
