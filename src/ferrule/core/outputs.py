"""Outputs as their types say. Pydantic is loaded here when first needed, not at startup."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from pydantic import TypeAdapter

_ANYTHING: Final[TypeAdapter[Any]] = TypeAdapter(Any)


def check_of(output_model: Any) -> Callable[[Any], Any]:
    """Gives the output back as the type says, or raises."""
    return TypeAdapter[Any](output_model).validator.validate_python


def to_json(output: Any) -> str:
    return _ANYTHING.dump_json(output).decode()
