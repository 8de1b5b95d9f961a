"""The confinement of a command that nobody approved: its declared effects, and what rules deny."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from ..core.ports import Proposal
from ..core.verdicts import Confinement, Grants

COMMANDS: Final = "Bash"
"""The tool whose processes can be confined."""


def is_command(proposal: Proposal) -> bool:
    """Whether the call is a command that Ferrule itself starts, and so can confine."""
    return proposal.tool.name == COMMANDS and proposal.tool.server is None


def grants_of(proposal: Proposal) -> Grants:
    """What the call declares."""
    lasts = bool(getattr(proposal.input, "run_in_background", False))
    return Grants.for_effects(proposal.effects, lasts=lasts)


def join_confinements(one: Confinement | None, other: Confinement | None) -> Confinement:
    """A confinement that enforces both. The grants are those of the first that has any."""
    if one is None or other is None:
        return one or other or Confinement()
    return replace(
        one,
        unreadable=tuple(dict.fromkeys((*one.unreadable, *other.unreadable))),
        unwritable=tuple(dict.fromkeys((*one.unwritable, *other.unwritable))),
        unreachable=tuple(dict.fromkeys((*one.unreachable, *other.unreachable))),
        read_only=one.read_only or other.read_only,
        writable=other.writable if one.writable is None else one.writable,
        grants=one.grants or other.grants,
    )
