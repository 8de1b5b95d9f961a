"""Session state, and the changes a result may carry.

A tool never changes the session; it returns changes as values and the engine
applies them, in the model's order whatever finished first. A change whose key
the call declared with `ChangesState` takes effect as the call ends, so the
next call that depends on it sees it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeAlias, assert_never

from .effects import CWD, GRANTS, MODE
from .values import frozen_value


@frozen_value
class MovedTo:
    """A new working directory."""

    path: str
    key: str = field(default=CWD, init=False)


@frozen_value
class Granted:
    """A permission rule that applies from now on in this session."""

    rule: str
    key: str = field(default=GRANTS, init=False)


@frozen_value
class Queued:
    """A prompt or command to run after the turn."""

    text: str
    key: str = field(default="queue", init=False)


@frozen_value
class ToolsFound:
    """Deferred tools that the next request offers in full."""

    names: tuple[str, ...]
    key: str = field(default="found_tools", init=False)


@frozen_value
class ModeChanged:
    """Another permission mode, by its name in settings."""

    mode: str
    key: str = field(default=MODE, init=False)


@frozen_value
class TurnStopped:
    """The turn is over once the calls of this message are, as a person wants it."""

    key: str = field(default="turn", init=False)


@frozen_value
class StateSet:
    """Any other piece of state, under the tool's own key."""

    key: str
    value: Any


StateChange: TypeAlias = MovedTo | Granted | Queued | ToolsFound | ModeChanged | TurnStopped | StateSet


@dataclass(slots=True)
class SessionState:
    """What one conversation remembers between calls. Owned by the session; changed only through `apply`."""

    cwd: str
    added_directories: tuple[str, ...] = ()
    grants: tuple[str, ...] = ()
    queue: tuple[str, ...] = ()
    found_tools: tuple[str, ...] = ()
    mode: str = ""
    """The permission mode, where it was changed; empty for the one that the settings say."""
    mode_before: str = ""
    """The one that was left last."""
    stopped: bool = False
    """Whether the turn is to end without another message of the model."""
    values: dict[str, Any] = field(default_factory=dict[str, Any])

    def apply(self, change: StateChange) -> None:
        match change:
            case MovedTo(path):
                self.cwd = path
            case Granted(rule):
                self.grants = (*self.grants, rule)
            case Queued(text):
                self.queue = (*self.queue, text)
            case ToolsFound(names):
                new = [name for name in dict.fromkeys(names) if name not in self.found_tools]
                self.found_tools = (*self.found_tools, *new)
            case ModeChanged(mode):
                self.mode_before, self.mode = self.mode, mode
            case TurnStopped():
                self.stopped = True
            case StateSet(key, value):
                self.values[key] = value
            case _:
                assert_never(change)
