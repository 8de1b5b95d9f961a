"""The typed output of a call as JSON, for consumers that want more than the text the model reads."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias, cast

from ..core.calls import ToolOutcome
from ..core.content import encodable, plain_text

LONGEST = 100_000
"""Characters of one string; the text for the model is bounded already, the output behind it need not be."""


Shape: TypeAlias = Callable[[ToolOutcome], Mapping[str, Any] | None]
"""Gives the output of a call as others know it; `None` for one that they do not know."""


def own_shape(outcome: ToolOutcome) -> None:
    """Every output as its tool gave it."""


def as_json(outcome: ToolOutcome, shape: Shape = own_shape) -> Any:
    """The output of a call that went well; of any other, and of one that JSON cannot hold, the words for the model."""
    if not outcome.is_error and outcome.output is not None:
        from pydantic_core import PydanticSerializationError, to_jsonable_python

        try:
            return _bound(to_jsonable_python(shape(outcome) or outcome.output, bytes_mode="base64"))
        except (PydanticSerializationError, ValueError, RecursionError):
            pass  # a value of a kind that JSON does not know
    text = encodable(plain_text(outcome.content))
    return f"Error: {text}" if outcome.is_error else text


def without_nan(value: Any) -> Any:
    """With text for the numbers that JSON has no word for."""
    match value:
        case float() if not math.isfinite(value):
            return str(value)
        case list():
            return [without_nan(item) for item in cast(list[Any], value)]
        case dict():
            return {key: without_nan(item) for key, item in cast(dict[Any, Any], value).items()}
        case _:
            return value


def _bound(value: Any) -> Any:
    match value:
        case str():
            text = encodable(value)
            return text if len(text) <= LONGEST else f"{text[:LONGEST]}… ({len(text):,} characters)"
        case list():
            return [_bound(item) for item in cast(list[Any], value)]
        case dict():
            items = cast(dict[Any, Any], value).items()
            return {key: item if key == "base64" else _bound(item) for key, item in items}  # of no use when cut
        case _:
            return value
