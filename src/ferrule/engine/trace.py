"""The record of one call while it is being made."""

from __future__ import annotations

from collections.abc import Mapping
from time import perf_counter
from typing import Any

from ..core.calls import CallRecord, ToolCall
from ..core.context import Facts
from ..core.effects import Effects
from ..core.verdicts import Verdict


class Trace:
    """Filled in as the call moves on; `record` can be taken at any moment."""

    __slots__ = ("_last", "call", "effects", "facts", "produced", "rewrites", "saved_to", "sent", "stages", "verdict")

    def __init__(self, call: ToolCall, facts: Facts) -> None:
        self.call = call
        self.facts = facts
        self.stages: list[tuple[str, float]] = []
        self.effects: Effects | None = None
        self.verdict: Verdict | None = None
        self.rewrites: tuple[Mapping[str, Any], ...] = ()
        self.produced = 0
        self.sent = 0
        self.saved_to: str | None = None
        self._last = perf_counter()

    def mark(self, stage: str) -> None:
        """The stage that just ended; its time is the time since the mark before."""
        now = perf_counter()
        self.stages.append((stage, now - self._last))
        self._last = now

    def record(self) -> CallRecord:
        return CallRecord(
            call_id=self.call.id,
            tool=self.call.name,
            agent=self.facts.agent,
            chain=self.facts.chain,
            stages=tuple(self.stages),
            effects=self.effects,
            verdict=self.verdict,
            rewrites=self.rewrites,
            produced_chars=self.produced,
            sent_chars=self.sent,
            saved_to=self.saved_to,
        )
