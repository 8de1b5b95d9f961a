"""What is wrong with a settings file, and what to write instead."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, cast, get_args

from pydantic import BaseModel, RootModel, ValidationError

from ..core.values import plain_value
from .forbidding import guard_meant, misspelt_guard, nearest
from .json_places import LONGEST_VALUE, Place, Repeated, show_value, write_place
from .settings_files import SettingsKind
from .settings_models import MODELS, TAGS, PermissionsFile

MOST_NAMES: Final = 16

_KEY_MARK: Final = "[key]"
"""Follows a key of a mapping if the key itself is wrong."""

_EXPECTED: Final[Mapping[str, str]] = {
    "string_type": "a string",
    "int_type": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "tuple_type": "a list",
    "dict_type": "an object",
    "mapping_type": "an object",
    "model_type": "an object",
    "string_too_short": "text",
}
_CHOICE: Final = re.compile(r"'([^']*)'")
_BARE: Final = re.compile(r"true|false|-?[0-9]{1,9}(\.[0-9]{1,9})?")
_BOUNDS: Final[Mapping[str, tuple[str, str]]] = {
    "greater_than": ("more than", "gt"),
    "greater_than_equal": ("at least", "ge"),
    "less_than_equal": ("at most", "le"),
}


@plain_value
class Violation:
    place: Place
    words: str
    unknown: bool = False
    """The key is unknown to this version, which is accepted if it was already there."""
    near: str = ""
    """The key that an unknown one is a misspelling of."""
    forbids: bool = False
    """Whether an unknown key was meant to be one that could forbid something."""

    def __str__(self) -> str:
        return f"`{write_place(self.place)}`: {self.words}" if self.place else self.words


def violation_of_repeated(repeated: Repeated) -> Violation:
    first, again = repeated.first_line, repeated.line
    where = f"in lines {first} and {again}" if first != again else f"in line {first}"
    return Violation(repeated.place, f"the key occurs twice, {where}. Keep one.")


def of_error(error: ValidationError, model: type[BaseModel]) -> Iterator[Violation]:
    """The content of an unknown key is not checked: nobody here knows what belongs there."""
    details = cast(list[Mapping[str, Any]], error.errors(include_url=False))
    violations = [_of_detail(detail, model) for detail in details]
    unknown = {violation.place for violation in violations if violation.unknown}
    for violation in violations:
        place = violation.place
        if violation.unknown or not any(place[:length] in unknown for length in range(1, len(place) + 1)):
            yield violation if place else Violation((), f"the file: {violation.words}")


def _of_detail(detail: Mapping[str, Any], model: type[BaseModel]) -> Violation:
    location = cast(Place, detail["loc"])
    place = _place(location)
    context = cast(Mapping[str, Any], detail.get("ctx", {}))
    found = detail["input"]
    match detail["type"]:
        case "said":
            return Violation(place, context["words"])
        case "missing":
            return Violation(place[:-1], f"`{place[-1]}` is missing. Add it.")
        case "extra_forbidden":
            return _of_unknown(location, _names_at(model, location), _above(model))
        case "literal_error" if location[-1] == _KEY_MARK:
            return _of_unknown(location[:-1], _CHOICE.findall(context["expected"]), _above(model))
        case "literal_error":
            return Violation(place, _about_choice(_CHOICE.findall(context["expected"]), found))
        case kind if kind in _BOUNDS:
            words, key = _BOUNDS[kind]
            return Violation(place, f"expected {words} {context[key]:g}, found {show_value(found)}.")
        case kind if kind in _EXPECTED:
            return Violation(place, f"expected {_EXPECTED[kind]}, found {show_value(found)}.{_hint(kind, found)}")
        case _:
            return Violation(place, f"{detail['msg']}, found {show_value(found)}.")


def _above(model: type[BaseModel]) -> Place:
    """Where the file's keys would be in a settings file."""
    return ("permissions",) if model is PermissionsFile else ()


def _place(location: Place) -> Place:
    """Without the names of alternatives, and without the mark of a wrong key."""
    marked = location[-1:] == (_KEY_MARK,)
    return tuple(part for part in (location[:-1] if marked else location) if part not in TAGS)


def _of_unknown(location: Place, names: list[str], above: Place) -> Violation:
    key = str(location[-1])
    place = (*_place(location[:-1]), key)
    near, meant = nearest(key[:LONGEST_VALUE], names), guard_meant((*above, *place), names)
    guess = near or meant or next(iter(difflib.get_close_matches(key[:LONGEST_VALUE], names, n=1)), "")
    advice = f"Did you mean `{guess}`?" if guess else f"Known here: {_join_names(names)}."
    return Violation(place, f"this key is unknown. {advice}", unknown=True, near=near, forbids=meant != "")


def misspelt_at_top(kind: SettingsKind, value: Any) -> Iterator[Violation]:
    """Unknown keys at the top of a settings file that are misspellings of one that could forbid something."""
    if kind is not SettingsKind.SETTINGS or not isinstance(value, dict):
        return
    known = {field.alias for field in MODELS[kind].model_fields.values()}
    for key in cast(dict[str, Any], value):
        meant = misspelt_guard(key[:LONGEST_VALUE]) if key not in known else ""
        if meant:
            yield Violation((key,), f"this key is unknown. Did you mean `{meant}`?", unknown=True, forbids=True)


def _about_choice(choices: list[str], found: Any) -> str:
    near = difflib.get_close_matches(found[:LONGEST_VALUE], choices, n=1) if isinstance(found, str) else []
    if near and len(choices) > 2:
        return f'found {show_value(found)}, which is not a valid choice. Did you mean "{near[0]}"?'
    one_of = "one of " if len(choices) > 1 else ""
    return f"expected {one_of}{_join_names([show_value(choice) for choice in choices])}, found {show_value(found)}."


def _join_names(names: list[str]) -> str:
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    return ", ".join(names[:MOST_NAMES]) + more


def _hint(kind: str, found: Any) -> str:
    if found is None:
        return " Leave it out instead."
    if kind in ("bool_type", "int_type", "float_type") and isinstance(found, str) and _BARE.fullmatch(found):
        return f" Write {found}, without quotes."
    if kind == "tuple_type" and isinstance(found, str):
        return f" Write [{show_value(found)}]."
    return ""


def _names_at(model: type[BaseModel], location: Place) -> list[str]:
    """The sibling keys of the last part of the location, which also contains names of alternatives."""
    models = list(_models_in(model.model_fields["root"].annotation)) if issubclass(model, RootModel) else [model]
    for part in location[:-1]:
        fields = [field for model in models for field in model.model_fields.values() if field.alias == part]
        if fields:
            models = [nested for field in fields for nested in _models_in(field.annotation)]
        elif part in TAGS:
            models = [model for model in models if f"<{_type_of(model)}>" == part] or models
    return list(dict.fromkeys(str(field.alias) for model in models for field in model.model_fields.values()))


def _type_of(model: type[BaseModel]) -> str:
    """The first `type` that the model accepts."""
    field = model.model_fields.get("type")
    return next(iter(get_args(field.annotation)), "") if field else ""


def _models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation):
        yield from _models_in(part)
