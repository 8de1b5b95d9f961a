"""What the hooks before a call leave for its later stages."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from ..core.calls import ToolCall

if TYPE_CHECKING:
    from .reply_parsing import HookAnswer

MOST: Final = 1_000
"""Calls that are remembered; of one that is refused nobody says that it is over."""


@dataclass(slots=True)
class Remembered:
    call: ToolCall
    rewrote: list[HookAnswer] = field(default_factory=list["HookAnswer"])
    """Answers of hooks whose input is being judged: they are not asked about what they wrote themselves."""
    context: list[str] = field(default_factory=list[str])
    """For the model, once the call has run."""


class CallMemory:
    """By call. The same id may come again in another message, and is another call then."""

    def __init__(self) -> None:
        self._calls: dict[str, Remembered] = {}

    def of(self, call: ToolCall) -> Remembered | None:
        known = self._calls.get(call.id)
        return known if known is not None and known.call is call else None

    def create(self, call: ToolCall) -> Remembered:
        known = self.of(call)
        if known is None:
            if len(self._calls) >= MOST:
                del self._calls[next(iter(self._calls))]
            known = self._calls[call.id] = Remembered(call)
        return known

    def take(self, call: ToolCall) -> Remembered | None:
        known = self.of(call)
        if known is not None:
            del self._calls[call.id]
        return known
