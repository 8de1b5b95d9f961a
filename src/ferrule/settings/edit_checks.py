"""Whether a change leaves a settings file valid.

A valid file must stay valid. A file whose syntax or content is invalid may only
become a valid one. Keys that this version does not know are accepted where they
were present before, as they may come from a newer version; a change may not add
new ones to a closed object.
"""

from __future__ import annotations

from typing import Final, TypeAlias

from pydantic import ValidationError

from ..core.values import plain_value
from ..text.json_reader import NotJson
from .json_places import Place, parse
from .settings_files import SettingsKind
from .settings_models import MODELS
from .violations import Violation, misspelt_at_top, of_error, violation_of_repeated

MOST_LISTED: Final = 20

_Pattern: TypeAlias = tuple[str | None, ...]
"""A place without its indexes: entries move when others are added."""


@plain_value
class Violations:
    """Why a change must not be made."""

    found: tuple[Violation, ...]
    broken_before: bool
    """The file was already invalid, so the change had to repair it."""

    def describe(self, file: str) -> str:
        """For the author of the change: what is wrong at each place, and what to do."""
        if self.broken_before:
            first = f"{file} is already an invalid settings file, so a change must make it valid. Remaining errors:"
            last = "Nothing was written. Repair all of it in one change; Write can replace the whole file."
        else:
            first = f"{file} is a settings file, and this change would make it invalid:"
            last = "Nothing was written. Correct the change and make it again."
        listed = [f"- {violation}" for violation in self.found[:MOST_LISTED]]
        if len(self.found) > MOST_LISTED:
            listed.append(f"- and {len(self.found) - MOST_LISTED:,} more.")
        return "\n".join((first, *listed, last))


def check(kind: SettingsKind, before: str | None, after: str) -> Violations | None:
    """`None` if the change may be made. `before` is `None` for a file that does not exist yet."""
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
    """Everything that is wrong with the file, including unknown keys in closed objects, which are marked."""
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
