"""Inputs as models write them: strict about meaning, lenient about spelling.

Unknown keys are refused by name. `"10"` is a whole number and `"true"` a
boolean where those are declared, because models send them; `"1.5"`, `"yes"`
and `1` for `true` are not. `null` for a field that has a default means the
default.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, TypeAlias, cast, get_args

from pydantic import BaseModel, ConfigDict, GetCoreSchemaHandler, model_validator
from pydantic_core import CoreSchema

from .meaning import by_meaning


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
        cls.path_fields = tuple(
            name
            for name, field in cls.model_fields.items()
            if any(isinstance(mark, IsPath) for mark in field.metadata) or _mentions_path(field.annotation)
        )

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return cast(CoreSchema, by_meaning(handler(source)))

    @model_validator(mode="before")
    @classmethod
    def _null_means_the_default(cls, data: Any) -> Any:
        if not isinstance(data, Mapping):
            return data
        given = cast(Mapping[str, Any], data)
        if None not in given.values():
            return given
        absent = {
            key
            for name, field in cls.model_fields.items()
            if not field.is_required() and field.default is not None
            for key in (name, field.alias)
        }
        return {key: value for key, value in given.items() if value is not None or key not in absent}


def _mentions_path(annotation: Any) -> bool:
    return any(isinstance(part, IsPath) or _mentions_path(part) for part in get_args(annotation))
