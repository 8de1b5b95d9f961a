"""Outputs as their types say. Pydantic is loaded here when first needed, not at startup."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

from pydantic import TypeAdapter
from pydantic.errors import PydanticUserError

_ANYTHING: Final[TypeAdapter[Any]] = TypeAdapter(Any)


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
