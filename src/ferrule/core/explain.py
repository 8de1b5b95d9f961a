"""Validation errors in words a model can act on."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any, cast

from pydantic import BaseModel, ValidationError


def explain(tool: str, error: ValidationError, model: type[BaseModel]) -> str:
    """What is wrong with the arguments, field by field, and what the tool takes."""
    problems = [f"- {_problem(cast(Mapping[str, Any], detail), model)}" for detail in error.errors(include_url=False)]
    return "\n".join((f"{tool} cannot take these arguments:", *problems, f"It takes: {_signature(model)}."))


def _problem(detail: Mapping[str, Any], model: type[BaseModel]) -> str:
    name = ".".join(str(part) for part in detail["loc"] if not str(part).startswith("function-"))
    context: Mapping[str, Any] = detail.get("ctx", {})
    given = _short(detail["input"])
    match detail["type"]:
        case "missing":
            return f"`{name}` is missing."
        case "extra_forbidden":
            near = difflib.get_close_matches(str(detail["loc"][-1]), _names(model), n=1)
            return f"`{name}` is not a parameter" + (f"; did you mean `{near[0]}`?" if near else ".")
        case "int_type" | "int_parsing" | "int_from_float":
            return f"`{name}` must be a whole number, not {given}."
        case "float_type" | "float_parsing":
            return f"`{name}` must be a number, not {given}."
        case "bool_type" | "bool_parsing":
            return f"`{name}` must be true or false, not {given}."
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


def _names(model: type[BaseModel]) -> list[str]:
    return [field.alias or name for name, field in model.model_fields.items()]


def _signature(model: type[BaseModel]) -> str:
    fields = zip(_names(model), model.model_fields.values(), strict=True)
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
