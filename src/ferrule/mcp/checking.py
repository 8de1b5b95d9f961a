"""Arguments held against the schema of a foreign tool. Imported through `late.py` only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from jsonschema import SchemaError, ValidationError
from jsonschema.validators import validator_for
from referencing import Registry
from referencing.exceptions import Unresolvable

MOST_PROBLEMS: Final = 20
_HERE_ONLY: Final[Registry[Any]] = Registry()
"""Nothing is fetched: a reference leads somewhere in the schema itself, or nowhere."""


class Checker:
    """Of one schema, read once. A schema that is none says nothing; the server will."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        kind: Any = validator_for(dict(schema))
        try:
            kind.check_schema(dict(schema))
            self._validator: Any = kind(dict(schema), registry=_HERE_ONLY)
        except (SchemaError, RecursionError):
            self._validator = None

    def problems(self, arguments: Mapping[str, Any]) -> tuple[str, ...]:
        """What is wrong with them, in words."""
        if self._validator is None:
            return ()
        try:
            errors: list[ValidationError] = list(self._validator.iter_errors(dict(arguments)))
        except (Unresolvable, RecursionError):
            return ()
        words = [_words(error) for error in errors[:MOST_PROBLEMS]]
        return (*words, *([f"and {len(errors) - MOST_PROBLEMS:,} more"] if len(errors) > MOST_PROBLEMS else []))


def _words(error: ValidationError) -> str:
    place = ".".join(str(part) for part in error.absolute_path)
    message = error.message if len(error.message) <= 300 else f"{error.message[:297]}..."
    return f"`{place}`: {message}" if place else message
