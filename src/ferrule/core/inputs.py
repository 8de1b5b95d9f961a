"""Inputs as models write them: strict about meaning, lenient about spelling.

Unknown keys are refused by name. `"10"` is a whole number and `"true"` a
boolean where those are declared, because models send them; `"1.5"`, `"yes"`
and `1` for `true` are not. `null` for a field that has a default means the
default.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, TypeAlias, get_args

from pydantic import BaseModel, ConfigDict, GetCoreSchemaHandler
from pydantic_core import CoreSchema

from .meaning import by_meaning, null_means_the_default


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
