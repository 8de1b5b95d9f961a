"""What of a settings file cannot count. Loaded for the first file there is: the models take long to build."""

from __future__ import annotations

from typing import Any, Final

from pydantic import ValidationError

from .files import SettingsKind
from .models import MODELS
from .places import as_in_file, without, written
from .strict_json import Parsed, Place
from .violations import Violation, of_error, of_repeated

MOST_FAULTS: Final = 1000
"""Bad entries beyond which a file is not worth being picked apart."""


def faults_in(kind: SettingsKind, parsed: Parsed) -> tuple[set[Place] | None, list[Violation]]:
    """The entries to leave out and why, until the rest is valid; `None` where no part of the file can be used."""
    gone = set[Place]()
    faults = [of_repeated(repeated) for repeated in parsed.repeated]
    while violations := _violations(kind, without(parsed.value, gone)):
        before = frozenset(gone)
        for violation in violations:
            entry = as_in_file(_entry(violation.place), before)
            if not entry or entry in before:
                return None, [violation]
            if entry not in gone:
                gone.add(entry)
                inside = as_in_file(violation.place, before)[len(entry) :]
                faults.append(
                    Violation(entry, f"`{written(inside)}`: {violation.words}" if inside else violation.words)
                )
    return gone, faults


def _violations(kind: SettingsKind, value: Any) -> list[Violation]:
    model = MODELS[kind]
    try:
        model.model_validate(value)
    except ValidationError as error:
        if error.error_count() > MOST_FAULTS:
            return [Violation((), f"it has {error.error_count():,} faults. Correct it, or remove it.")]
        return list(of_error(error, model))
    return []


def _entry(place: Place) -> Place:
    """The part to leave out with a fault in it: an item of a list, one hook, one server, else the key itself.

    A hook without its faulty `if` would run more often than was meant, so a
    hook goes as a whole, and so does a group whose matcher is wrong.

    >>> _entry(("permissions", "allow", 2)), _entry(("hooks", "Stop", 0, "hooks", 1, "if"))
    (('permissions', 'allow', 2), ('hooks', 'Stop', 0, 'hooks', 1))
    """
    if place[:1] == ("mcpServers",):
        return place[:2]
    if place[:1] == ("hooks",) and place[3:4] == ("hooks",) and len(place) > 4:
        return place[:5]
    first = next((index for index, part in enumerate(place) if isinstance(part, int)), len(place))
    return place[: first + 1]
