"""The parts of a settings file that are invalid. Imported only once a file exists: the models take long to build."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from pydantic import ValidationError

from ..core.values import plain_value
from .forbidding import as_in_settings, could_forbid, could_refuse
from .json_places import Parsed, Place, as_in_file, without, write_place
from .settings_files import SettingsKind
from .settings_models import MODELS
from .violations import Violation, misspelt_at_top, of_error, violation_of_repeated

MOST_FAULTS: Final = 1000
"""Invalid entries beyond which the whole file is skipped."""


@plain_value
class Fault:
    place: Place
    """The entry that is left out, or the key."""
    words: str
    may_forbid: bool
    unknown: bool = False
    """It is a key that this version does not know, and nothing else is left out with it."""


def faults_in(kind: SettingsKind, parsed: Parsed) -> tuple[set[Place] | None, list[Fault]]:
    """The entries to leave out so that the rest is valid, and why; `None` if no part of the file can be used."""
    gone = set[Place]()
    faults = [_fault(kind, parsed, violation_of_repeated(repeated), repeated.place) for repeated in parsed.repeated]
    while violations := _violations(kind, without(parsed.value, gone)):
        before = frozenset(gone)
        for violation in violations:
            place = as_in_file(violation.place, before)
            entry = place if _is_ignored(kind, parsed, violation) else _entry(place)
            if not entry or entry in before:
                return None, [Fault((), violation.words, may_forbid=True)]
            if entry not in gone:
                gone.add(entry)
                faults.append(_fault(kind, parsed, replace(violation, place=place), entry))
    return gone, faults


def _fault(kind: SettingsKind, parsed: Parsed, violation: Violation, entry: Place) -> Fault:
    inside = violation.place[len(entry) :]
    words = f"`{write_place(inside)}`: {violation.words}" if inside else violation.words
    if violation.unknown and not inside:
        event = _is_event(kind, parsed, entry)
        return Fault(entry, words, could_refuse(entry[-1]) if event else violation.forbids, unknown=True)
    return Fault(entry, words, could_forbid(*as_in_settings(kind, entry, parsed.value)))


def _is_ignored(kind: SettingsKind, parsed: Parsed, violation: Violation) -> bool:
    """Whether an unknown key is left out alone. A slip in a hook might have been what kept it from running."""
    if not violation.unknown:
        return False
    place, _ = as_in_settings(kind, violation.place, parsed.value)
    return place[:1] != ("hooks",) or not violation.near or _is_event(kind, parsed, violation.place)


def _is_event(kind: SettingsKind, parsed: Parsed, place: Place) -> bool:
    whole, _ = as_in_settings(kind, place, parsed.value)
    return whole[:1] == ("hooks",) and len(whole) == 2 and isinstance(whole[1], str)


def _violations(kind: SettingsKind, value: Any) -> list[Violation]:
    model = MODELS[kind]
    try:
        model.model_validate(value)
    except ValidationError as error:
        if error.error_count() > MOST_FAULTS:
            return [Violation((), f"it has {error.error_count():,} faults. Correct it, or remove it.")]
        return [*misspelt_at_top(kind, value), *of_error(error, model)]
    return list(misspelt_at_top(kind, value))


def _entry(place: Place) -> Place:
    """The part to leave out with a fault in it: an item of a list, one hook, one server, otherwise the key itself.

    A hook without its faulty `if` would run more often than intended, so a
    hook is left out as a whole, and so is a group whose matcher is wrong.

    >>> _entry(("permissions", "allow", 2)), _entry(("hooks", "Stop", 0, "hooks", 1, "if"))
    (('permissions', 'allow', 2), ('hooks', 'Stop', 0, 'hooks', 1))
    """
    if place[:1] == ("mcpServers",):
        return place[:2]
    if place[:1] == ("hooks",) and place[3:4] == ("hooks",) and len(place) > 4:
        return place[:5]
    first = next((index for index, part in enumerate(place) if isinstance(part, int)), len(place))
    return place[: first + 1]
