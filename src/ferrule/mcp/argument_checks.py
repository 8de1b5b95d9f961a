"""Validates arguments against the schema of a server's tool. Imported through `lazy_imports.py` only.

The schema is a stranger's, so checking must end whatever it says: patterns go
to an engine whose time is linear in the text, and the number of steps has a
bound. What cannot be checked within these limits is left to the server.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache, partial
from typing import Any, Final, cast

from jsonschema import SchemaError, ValidationError, validators
from pydantic_core import SchemaError as BadPattern
from pydantic_core import SchemaValidator, core_schema
from pydantic_core import ValidationError as NoMatch
from referencing import Registry
from referencing.exceptions import Unresolvable

MOST_PROBLEMS: Final = 20
MOST_STEPS: Final = 10_000
"""Schema keywords checked against a value: a few hundred for ordinary arguments."""
LONGEST_PATTERN: Final = 10_000
"""Characters. The engine takes about a millisecond to read that much, and a second for what large counts unfold to."""
_LARGE_COUNT: Final = re.compile(r"\{\d{0,9}\d{3}[,}]|,\d*\d{3}\}")
_HERE_ONLY: Final[Registry[Any]] = Registry()
"""Nothing is fetched: a reference leads somewhere in the schema itself, or nowhere."""

_Keyword = Callable[[Any, Any, Any, Any], "Iterator[ValidationError] | None"]


class TooManySteps(Exception):
    """The check was aborted: the schema branches too often."""


class Checker:
    """Of one schema, read once. An invalid schema finds no problems; the server will."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._left = 0
        kind: Any = validators.validator_for(dict(schema))
        try:
            kind.check_schema(dict(schema))
            self._validator: Any = self._bound_keywords(kind)(dict(schema), registry=_HERE_ONLY)
        except (SchemaError, RecursionError):
            self._validator = None

    def problems(self, arguments: Mapping[str, Any]) -> tuple[str, ...]:
        """What is wrong with them, as text."""
        if self._validator is None:
            return ()
        self._left = MOST_STEPS
        try:
            errors: list[ValidationError] = list(self._validator.iter_errors(dict(arguments)))
        except (Unresolvable, RecursionError, TooManySteps):
            return ()
        words = [_words(error) for error in errors[:MOST_PROBLEMS]]
        return (*words, *([f"and {len(errors) - MOST_PROBLEMS:,} more"] if len(errors) > MOST_PROBLEMS else []))

    def _bound_keywords(self, kind: Any) -> Any:
        """The validator class with safe patterns, and with every keyword counted."""
        keywords = cast(Mapping[str, _Keyword], {**kind.VALIDATORS, **_SAFE})
        extend: Any = validators.extend  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
        return extend(kind, {name: partial(self._count, check) for name, check in keywords.items()})

    def _count(self, check: _Keyword, validator: Any, value: Any, instance: Any, schema: Any) -> Any:
        self._left -= 1
        if self._left < 0:
            raise TooManySteps
        return check(validator, value, instance, schema)


def _pattern(validator: Any, pattern: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    if isinstance(instance, str) and matches(pattern, instance) is False:
        yield ValidationError(f"it does not match the pattern {pattern!r}")


def _pattern_properties(validator: Any, patterns: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    if not isinstance(instance, dict):
        return
    for pattern, inner in cast(Mapping[str, Any], patterns).items():
        for name, value in cast(Mapping[str, Any], instance).items():
            if matches(pattern, name):
                yield from validator.descend(value, inner, path=name, schema_path=pattern)


def _additional_properties(validator: Any, inner: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    if not isinstance(instance, dict):
        return
    known, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
    for name, value in cast(Mapping[str, Any], instance).items():
        if name in known or any(matches(pattern, name) is not False for pattern in patterns):
            continue
        if inner is False:
            yield ValidationError(f"Additional properties are not allowed ({name!r} was unexpected)")
        else:
            yield from validator.descend(value, inner, path=name)


def _leave_unevaluated(validator: Any, inner: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    """Left to the server: to say what was evaluated, the package matches names by patterns itself."""
    return iter(())


_SAFE: Final = {
    "pattern": _pattern,
    "patternProperties": _pattern_properties,
    "additionalProperties": _additional_properties,
    "unevaluatedProperties": _leave_unevaluated,
    "unevaluatedItems": _leave_unevaluated,
}


def matches(pattern: Any, text: str) -> bool | None:
    """Whether the pattern is found in the text; `None` if the pattern cannot be tried safely.

    >>> matches("^(a+)+$", "a" * 5_000 + "!"), matches("^x", "xy"), matches("(?=x)x", "x")
    (False, True, None)
    """
    validator = _compile(pattern) if isinstance(pattern, str) else None
    if validator is None:
        return None
    try:
        validator.validate_python(text)
    except NoMatch:
        return False
    return True


@lru_cache(maxsize=256)
def _compile(pattern: str) -> SchemaValidator | None:
    if len(pattern) > LONGEST_PATTERN or _LARGE_COUNT.search(pattern):
        return None
    try:
        return SchemaValidator(core_schema.str_schema(pattern=pattern, regex_engine="rust-regex"))
    except BadPattern:
        return None


def _words(error: ValidationError) -> str:
    place = ".".join(str(part) for part in error.absolute_path)
    message = error.message if len(error.message) <= 300 else f"{error.message[:297]}..."
    return f"`{place}`: {message}" if place else message
