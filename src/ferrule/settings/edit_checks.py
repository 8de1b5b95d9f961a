"""Whether a change leaves a settings file valid.

A file that is valid must stay so. A file that is broken, by its syntax or by
what stands in it, may only become a valid one. Keys that this version does not
know are let be where they stood before, as they may be of a newer version; a
change may not bring new ones into an object that is closed.
"""

from __future__ import annotations

from typing import Final, TypeAlias

from pydantic import ValidationError

from ..core.values import plain_value
from .settings_files import SettingsKind
from .settings_models import MODELS
from .strict_json import NotJson, Place, parse
from .violations import Violation, misspelt_at_top, of_error, violation_of_repeated

MOST_LISTED: Final = 20

_Pattern: TypeAlias = tuple[str | None, ...]
"""A place, whatever the indexes in it: entries move when others are added."""


@plain_value
class Violations:
    """Why a change must not be made."""

    found: tuple[Violation, ...]
    broken_before: bool
    """The file was invalid already, so that the change was to repair it."""

    def describe(self, file: str) -> str:
        """For the one who made the change: what is wrong, place by place, and what to do."""
        if self.broken_before:
            first = (
                f"{file} is a settings file that is not valid already, so a change must make all of it valid. Still:"
            )
            last = "Nothing was written. Repair all of it in one change; Write can replace the whole file."
        else:
            first = f"{file} is a settings file, and this change would make it invalid:"
            last = "Nothing was written. Correct the change and make it again."
        listed = [f"- {violation}" for violation in self.found[:MOST_LISTED]]
        if len(self.found) > MOST_LISTED:
            listed.append(f"- and {len(self.found) - MOST_LISTED:,} more.")
        return "\n".join((first, *listed, last))


def check(kind: SettingsKind, before: str | None, after: str) -> Violations | None:
    """`None` where the change may be made. `before` is `None` for a file that is not there yet."""
    old = () if before is None else violations_in(kind, before)
    known = {_pattern(violation.place) for violation in old if violation.unknown}
    found = tuple(
        violation
        for violation in violations_in(kind, after)
        if not (violation.unknown and _pattern(violation.place) in known)
    )
    broken_before = not all(violation.unknown for violation in old)
    return Violations(found, broken_before) if found else None


def violations_in(kind: SettingsKind, text: str) -> tuple[Violation, ...]:
    """Everything that is wrong with the file; unknown keys in closed objects are among it, and marked."""
    try:
        parsed = parse(text)
    except NotJson as error:
        return (Violation((), str(error)),)
    repeated = (*map(violation_of_repeated, parsed.repeated), *misspelt_at_top(kind, parsed.value))
    model = MODELS[kind]
    try:
        model.model_validate(parsed.value)
    except ValidationError as error:
        return (*repeated, *of_error(error, model))
    return repeated


def _pattern(place: Place) -> _Pattern:
    return tuple(None if isinstance(part, int) else part for part in place)
