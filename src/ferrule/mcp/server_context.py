"""What the connections of a session share, and the names of their states."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, Literal

from ..core.ports import Questioner
from ..core.values import named_value
from .callbacks import SignIn

FIRST_WAIT: Final = 5.0


class Phase(StrEnum):
    IDLE = "not started"
    CONNECTING = "starting"
    UP = "up"
    DOWN = "down"
    CLOSED = "closed"


class ServerTrouble(Exception):
    """A server did not do what was asked. The message is for the model: what happened, then what to do."""

    def __init__(self, message: str, code: int | None = None) -> None:
        super().__init__(message)
        self.code = code
        """The protocol's error code, if the server gave one."""


class PagesFirst(ServerTrouble):
    """A person has to open pages before the server does what was asked."""

    def __init__(self, message: str, code: int | None, pages: tuple[Mapping[str, Any], ...]) -> None:
        super().__init__(message, code)
        self.pages = pages
        """As the protocol asks to open them."""


@named_value
class Timing:
    """All in seconds."""

    begin_after: float = 0.3
    """Idle time before the start: the package takes a processor for a second, which the first request needs more."""
    begin_within: float = 3.0
    """However busy it is."""
    start: float = 30.0
    call: float | None = None
    """For servers that have no time limit of their own; `None` for half an hour, or five minutes over a network."""
    first_pause: float = 0.5
    longest_pause: float = 60.0
    steady_after: float = 30.0
    """A server that was up for this long has no consecutive failures any more."""


def timing_from(environment: Mapping[str, str]) -> Timing:
    """
    >>> timing_from({"MCP_TIMEOUT": "5000", "MCP_TOOL_TIMEOUT": "soon"}) == Timing(start=5.0)
    True
    """
    start, call = (_seconds(environment.get(name, "")) for name in ("MCP_TIMEOUT", "MCP_TOOL_TIMEOUT"))
    return Timing(start=start or 30.0, call=call)


def first_wait(environment: Mapping[str, str]) -> float:
    """Seconds that a first request waits for servers whose tools are not known yet.

    >>> first_wait({}), first_wait({"MCP_CONNECT_TIMEOUT_MS": "250"}), first_wait({"MCP_CONNECT_TIMEOUT_MS": "soon"})
    (5.0, 0.25, 5.0)
    """
    chosen = _seconds(environment.get("MCP_CONNECT_TIMEOUT_MS", ""))
    return FIRST_WAIT if chosen is None else chosen


def _seconds(milliseconds: str) -> float | None:
    return int(milliseconds) / 1000 if milliseconds.isascii() and milliseconds.isdecimal() else None


@named_value
class Around:
    """What all connections of a session share."""

    state_folder: Path
    timing: Timing = Timing()
    questioner: Questioner | None = None
    sign_in: SignIn | None = None
    roots: tuple[str, ...] = ()
    negotiation: Literal["auto", "legacy"] = "auto"
