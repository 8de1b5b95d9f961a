"""Where the commands of a session work, for whoever holds them there. Loaded at every start, so it needs little."""

from __future__ import annotations

from collections.abc import Callable

from ...core.values import named_value
from .covering import NoSecrets, SecretNames


@named_value
class HeldPlaces:
    """Where commands work, and what else they may read. What may change is asked for each time."""

    roots: Callable[[], tuple[str, ...]] = tuple
    """The workspace first, then what was added to it."""
    readable: Callable[[], tuple[str, ...]] = tuple
    """What settings add."""
    writable: Callable[[], tuple[str, ...]] = tuple
    """What settings add to what a command may write whose effects are not known."""
    saved: str = ""
    """The folder of this session's results."""
    private: str = ""
    """Ferrule's own folder: nothing in it is read but what was saved."""
    secrets: SecretNames = NoSecrets()
