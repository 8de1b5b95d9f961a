"""What a mode decides about a call, from its effects alone.

| mode | without a rule |
|---|---|
| default, manual, auto | reads inside the workspace, read-only commands, fetches from pre-approved domains |
| acceptEdits | these, and changes of files inside the workspace by file tools and a few programs |
| plan | the same as default; a write is refused, any other command needs a sandbox that writes nowhere |
| dontAsk | the same as default; what would be asked is refused |
| bypassPermissions | everything |

Deny and ask rules, protected and critical paths take precedence over any mode.
"""

from __future__ import annotations

from enum import StrEnum
from typing import assert_never

from ..core.effects import (
    GRANTS,
    ChangesState,
    Effects,
    Opaque,
    ReachesHost,
    ReadsPath,
    ReadsState,
    RunsCommand,
    Touch,
    WritesPath,
)
from ..core.values import frozen_named_value
from .domains import PreApproval
from .path_patterns import Places
from .programs import ACCEPTED


class Mode(StrEnum):
    DEFAULT = "default"
    ACCEPT_EDITS = "acceptEdits"
    PLAN = "plan"
    AUTO = "auto"
    """A classifier, if one is configured as a judge, answers what `default` would ask."""
    DONT_ASK = "dontAsk"
    BYPASS = "bypassPermissions"

    @classmethod
    def _missing_(cls, value: object) -> Mode | None:
        return cls.DEFAULT if value == "manual" else None


@frozen_named_value
class ModeContext:
    """What a mode bases its decisions on."""

    places: Places
    domains: PreApproval
    https: bool = False
    """Whether the call uses only https for its web requests."""


def is_free(mode: Mode, touch: Touch, program: str | None, ground: ModeContext) -> bool:
    """Whether the mode allows the touch without a rule, by the program of that name or by the tool itself."""
    if mode is Mode.BYPASS:
        return True
    match touch:
        case ReadsPath(path, real):
            return _inside(path, real, ground.places)
        case WritesPath(path, _, real):
            accepted = mode is Mode.ACCEPT_EDITS and (program is None or program in ACCEPTED)
            return accepted and _inside(path, real, ground.places)
        case RunsCommand(accounted=accounted):
            return accounted
        case ReachesHost(host, sends):
            return not sends and ground.domains.approves(host, https=ground.https)
        case ReadsState():
            return True
        case ChangesState(key):
            # The session's state belongs to the conversation, except for its grants.
            return key != GRANTS
        case Opaque():
            return False
        case _:
            assert_never(touch)


def refusal(mode: Mode, effects: Effects) -> str | None:
    """Why the mode refuses the call even if a rule allows it; `None` if it does not."""
    if mode is Mode.PLAN and effects.writes:
        return f"{effects.writes[0].path} would be changed, and plan mode changes nothing until the plan is approved"
    return None


def needs_read_only_sandbox(mode: Mode, effects: Effects) -> bool:
    """Whether the mode allows the call only if confined to reading, since it may do more than read."""
    return mode is Mode.PLAN and effects.unknown


def _inside(path: str, real: str, places: Places) -> bool:
    return places.inside(path) and (real in ("", path) or places.inside(real))
