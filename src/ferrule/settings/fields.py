"""What the models of settings files are made of.

Types are strict: `"true"` is not a boolean, and `null` does not mean that a key
is left out. Values are frozen. Keys are camelCase in the file unless an alias says
otherwise, and errors name them as the file does.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, TypeAlias, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    Strict,
    StringConstraints,
    WithJsonSchema,
)
from pydantic.alias_generators import to_camel
from pydantic_core import CoreSchema, PydanticCustomError

from .rule_entries import RULE_PATTERN, why_no_rule

T = TypeVar("T")

SAID: Final = "said"
"""The type of an error whose context holds its `words` already."""


class OpenObject(BaseModel):
    """Unknown keys are accepted: the file may be shared with other programs, or newer versions."""

    model_config = ConfigDict(strict=True, frozen=True, extra="allow", alias_generator=to_camel, defer_build=True)


class ClosedObject(BaseModel):
    """An unknown key is an error.

    A misspelt `deny` or `matcher` would silently forbid nothing, so these
    are closed in the published schema of such files too.
    """

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid", alias_generator=to_camel, defer_build=True)


class _NeverNull:
    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        schema = handler(source)
        if schema["type"] != "nullable":
            raise TypeError(f"{source} has no None to take out.")
        return schema["schema"]


def _require_rule(text: str) -> str:
    if words := why_no_rule(text):
        raise custom_error(words)
    return text


def custom_error(words: str) -> PydanticCustomError:
    """An error with a message of our own."""
    return PydanticCustomError(SAID, "{words}", {"words": words})


Given: TypeAlias = Annotated[T | None, _NeverNull()]
"""A key that may be left out, and is then `None`. `null` in the file is still an error."""

Items: TypeAlias = Annotated[tuple[T, ...], Strict(False)]
"""A list in the file, a tuple in the program; lax only about that difference."""

Named: TypeAlias = Annotated[str, StringConstraints(min_length=1)]
"""Text that must not be empty."""

RuleText: TypeAlias = Annotated[
    str, AfterValidator(_require_rule), WithJsonSchema({"type": "string", "pattern": RULE_PATTERN})
]
"""A permission rule, spelt correctly. See `rules.py`."""

Seconds: TypeAlias = Annotated[float, Field(gt=0)]
Port: TypeAlias = Annotated[int, Field(ge=1, le=65535)]
