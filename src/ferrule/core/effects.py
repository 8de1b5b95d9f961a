"""What a call would touch, stated by the tool before anything runs.

A tool states facts; scheduling, permission, sandbox and undo draw their own
conclusions from this one value. Nothing else may guess what an input does.
Every default here describes the worst case, so forgetting something can make
a call slower or make it ask, and never makes it freer.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TypeAlias

from .values import frozen_value

CWD = "cwd"
"""The state key of the session's working directory."""
GRANTS = "grants"
"""The state key of the permissions given in this session."""
MODE = "mode"
"""The state key of the permission mode. It concerns every call, so one that changes it runs alone."""


class Change(StrEnum):
    """What a write does to what was there."""

    CREATES = "creates"
    REPLACES = "replaces"
    DELETES = "deletes"
    UNLINKS = "removes"
    """The name itself is removed: for a link the link, not what it leads to."""


@frozen_value
class ReadsPath:
    """A file, or a directory with everything below it.

    A tool gives the absolute `path`. The engine adds `real`, the path with
    links resolved, and `links`, the links that were followed on the way. A
    tool that knows a way with `..` in it gives that as `real`, to be resolved.
    """

    path: str
    real: str = ""
    links: tuple[str, ...] = ()
    names: str = ""
    """A glob for the names below `path` that are meant; `**` for all below it. Empty if names were not chosen."""
    follows: bool = False
    """Whether links among these names are followed. The engine states where each leads as a touch of its own."""
    found: bool = False
    """Whether the engine states it, derived from the disk for another touch."""


@frozen_value
class WritesPath:
    """Like `ReadsPath`, for a path whose content or existence changes."""

    path: str
    change: Change = Change.DELETES
    real: str = ""
    links: tuple[str, ...] = ()
    names: str = ""
    """As for `ReadsPath`, and links are followed but where the names themselves are removed."""
    like: str = ""
    """A folder whose entries come to lie below `path`. The engine states those that programs may look for."""
    if_folder: tuple[WritesPath, ...] = ()
    """What is written below `path`, where that is a folder. The engine knows whether it is."""
    found: bool = False
    """As for `ReadsPath`."""


@frozen_value
class RunsCommand:
    """A program that is started.

    `accounted` says that the other touches of the same value are all that the
    program does; without that word its effects are unknown.
    """

    argv: tuple[str, ...]
    source: str = ""
    accounted: bool = False
    within: str = ""
    """The source of the command that runs this one, such as `sudo ls` for `ls`; empty for one that runs by itself."""


@frozen_value
class ReachesHost:
    """A network host. `sends` unless the call only fetches."""

    host: str
    sends: bool = True


@frozen_value
class ReadsState:
    """A piece of session state (`CWD`, a todo list, a mode) the call depends on."""

    key: str


@frozen_value
class ChangesState:
    key: str


@frozen_value
class Opaque:
    """The tool cannot say. Runs alone, asks, and matches no allow rule but one for the call's own form."""


Touch: TypeAlias = ReadsPath | WritesPath | RunsCommand | ReachesHost | ReadsState | ChangesState | Opaque


@frozen_value
class Effects:
    """The touches of one call, and what follows from them.

    Their order says who does what: touches after a `RunsCommand` are done
    by that program, touches before the first by the tool itself.

    >>> Effects().unknown, Effects.reading("/etc/hosts").read_only
    (True, True)
    """

    touches: tuple[Touch, ...] = (Opaque(),)

    @classmethod
    def of(cls, *touches: Touch) -> Effects:
        """All that the call touches. `Effects.of()` is a call that touches nothing at all."""
        return cls(touches)

    @classmethod
    def reading(cls, *paths: str) -> Effects:
        return cls(tuple(ReadsPath(path) for path in paths))

    @property
    def unknown(self) -> bool:
        return any(
            isinstance(touch, Opaque) or (isinstance(touch, RunsCommand) and not touch.accounted)
            for touch in self.touches
        )

    @property
    def read_only(self) -> bool:
        """Changes nothing: no file, no state, nothing at the other end of a connection."""
        return all(_only_reads(touch) for touch in self.touches)

    @property
    def destructive(self) -> bool:
        """May lose something that was there."""
        return self.unknown or any(
            isinstance(touch, WritesPath) and touch.change is not Change.CREATES for touch in self.touches
        )

    @property
    def reads(self) -> tuple[ReadsPath, ...]:
        return tuple(touch for touch in self.touches if isinstance(touch, ReadsPath))

    @property
    def writes(self) -> tuple[WritesPath, ...]:
        return tuple(touch for touch in self.touches if isinstance(touch, WritesPath))

    @property
    def hosts(self) -> tuple[ReachesHost, ...]:
        return tuple(touch for touch in self.touches if isinstance(touch, ReachesHost))

    @property
    def commands(self) -> tuple[RunsCommand, ...]:
        return tuple(touch for touch in self.touches if isinstance(touch, RunsCommand))

    def changes_state(self, key: str) -> bool:
        return self.unknown or any(isinstance(touch, ChangesState) and touch.key == key for touch in self.touches)


def _only_reads(touch: Touch) -> bool:
    match touch:
        case ReadsPath() | ReadsState():
            return True
        case RunsCommand(accounted=accounted):
            return accounted
        case ReachesHost(sends=sends):
            return not sends
        case WritesPath() | ChangesState() | Opaque():
            return False


def describe_touch(touch: Touch) -> str:
    """The touch in the words of a prompt or a log.

    >>> describe_touch(WritesPath("/a", Change.CREATES))
    'creates /a'
    """
    match touch:
        case ReadsPath(path):
            return f"reads {path}"
        case WritesPath(path, change):
            return f"{change} {path}"
        case RunsCommand(argv, source):
            return f"runs {source or ' '.join(argv)}"
        case ReachesHost(host, sends):
            return f"sends to {host}" if sends else f"fetches from {host}"
        case ReadsState(key):
            return f"depends on the session's {key}"
        case ChangesState(key):
            return f"changes the session's {key}"
        case Opaque():
            return "may do anything: the tool cannot say"
