"""Validation errors in words a model can act on."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, cast, get_args

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic.json_schema import SkipJsonSchema

MOST_PROBLEMS: Final = 20
LONGEST_NAME: Final = 100
_HIDDEN: Final = cast(type, SkipJsonSchema)
"""The mark of what a schema does not show; checkers do not see that it is a class."""


def explain(tool: str, error: ValidationError, model: type[BaseModel]) -> str:
    """What is wrong with the arguments, field by field, and what the tool takes."""
    details = cast(list[Mapping[str, Any]], error.errors(include_url=False))
    unknown = sum(detail["type"] == "extra_forbidden" for detail in details)
    missing = [detail["loc"] for detail in details if detail["type"] == "missing" and unknown == 1]
    problems = [f"- {_problem(detail, model, missing)}" for detail in details[:MOST_PROBLEMS]]
    if len(details) > MOST_PROBLEMS:
        problems.append(f"- and {len(details) - MOST_PROBLEMS:,} more.")
    return "\n".join((f"{tool} cannot take these arguments:", *problems, f"It takes: {_signature(model)}."))


def _problem(detail: Mapping[str, Any], model: type[BaseModel], missing: Sequence[tuple[int | str, ...]]) -> str:
    """`missing` are the parameters of which one may be meant by the only unknown one."""
    name = _name(detail)
    context: Mapping[str, Any] = detail.get("ctx", {})
    given = _short(detail["input"])
    match detail["type"]:
        case "missing":
            return f"`{name}` is missing."
        case "extra_forbidden":
            names = _names_at(model, detail["loc"])
            near = difflib.get_close_matches(str(detail["loc"][-1])[:LONGEST_NAME], names, n=1)
            beside = [str(loc[-1]) for loc in missing if loc[:-1] == detail["loc"][:-1]]
            near = near or (beside if len(beside) == 1 else [])
            return f"`{name}` is not a parameter" + (f"; did you mean `{near[0]}`?" if near else ".")
        case "int_type" | "int_parsing" | "int_from_float":
            return f"`{name}` must be a whole number, not {given}."
        case "float_type" | "float_parsing":
            return f"`{name}` must be a number, not {given}."
        case "bool_type" | "bool_parsing":
            return f"`{name}` must be true or false, not {given}."
        case "string_too_short" if context.get("min_length") == 1:
            return f"`{name}` must not be empty."
        case "string_type":
            return f"`{name}` must be a string, not {given}."
        case "list_type" | "tuple_type" | "set_type":
            return f"`{name}` must be a list, not {given}."
        case "dict_type" | "model_type" | "model_attributes_type":
            return f"`{name or 'the input'}` must be an object, not {given}."
        case "literal_error" | "enum":
            return f"`{name}` must be {context['expected']}, not {given}."
        case _:
            return f"`{name or 'the input'}`: {detail['msg']} (given: {given})."


_LABEL: Final = re.compile(r"(function-(before|after|wrap|plain)|nullable|list|dict|set|frozenset|tuple)\[.*\]")
"""How pydantic names a member of a union within a location."""
_SCALARS: Final = {"str": "string_", "int": "int_", "float": "float_", "bool": "bool_"}


def _name(detail: Mapping[str, Any]) -> str:
    """Where the problem is, as the caller would write it: without the names of union members."""
    parts = [str(part) for part in detail["loc"] if not _LABEL.fullmatch(str(part))]
    if len(parts) > 1 and detail["type"].startswith(_SCALARS.get(parts[-1], "\0")):
        parts.pop()
    name = ".".join(parts)
    return name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 3]}..."


def _names_at(model: type[BaseModel], loc: tuple[int | str, ...]) -> list[str]:
    """The valid parameters at the place that `loc` names, which may be in a nested model."""
    models = [model]
    for part in loc[:-1]:
        fields = [model.model_fields[part] for model in models if part in model.model_fields]
        if fields:
            models = [nested for field in fields for nested in _models_in(field.annotation)]
        else:
            models = [model for model in models if model.__name__ == part] or models
    return [name for model in models for name in _names(model)]


def _models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation):
        yield from _models_in(part)


def _names(model: type[BaseModel]) -> list[str]:
    """Without those that the schema does not show."""
    return [name for name, _ in _shown_fields(model)]


def _shown_fields(model: type[BaseModel]) -> Iterator[tuple[str, FieldInfo]]:
    for name, field in model.model_fields.items():
        if not any(type(one) is _HIDDEN for one in field.metadata):
            yield field.alias or name, field


def _signature(model: type[BaseModel]) -> str:
    fields = _shown_fields(model)
    return ", ".join(f"{name} (required)" if field.is_required() else name for name, field in fields) or "nothing"


def _short(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case str():
            return f'"{value}"' if len(value) <= 60 else f'"{value[:57]}..."'
        case int() | float():
            return str(value)
        case list() | tuple():
            return "a list"
        case _:
            return "an object"
