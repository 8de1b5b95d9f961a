"""What models are asked, what that costs, and where it must stop."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from time import monotonic
from typing import Literal, TypeAlias

from ..core.model import ModelError, ModelEvent, ModelFacts, ModelProvider, Request, Retrying, Stopped, Usage
from ..output.answers import Spent

Limit: TypeAlias = Literal["turns", "budget"]


class LimitReached(ModelError):
    """The next request is not made. Nothing is wrong with the model."""

    def __init__(self, limit: Limit, message: str) -> None:
        super().__init__(message, "request")
        self.limit: Limit = limit


async def _no_wait() -> None:
    """Nobody reads along who could be too slow."""


@dataclass(slots=True)
class Meter:
    """Counts every request of a run. The counts of a prompt begin anew with `begin`."""

    max_turns: int | None = None
    max_usd: float | None = None
    turns: int = 0
    usage: Usage = field(default_factory=Usage)
    api_seconds: float = 0.0
    reached: LimitReached | None = None
    spent: dict[str, Spent] = field(default_factory=dict[str, Spent])

    def begin(self) -> None:
        self.turns, self.usage, self.api_seconds, self.reached = 0, Usage(), 0.0, None

    @property
    def usd(self) -> float | None:
        """Of the whole run; `None` once something was asked that has no known price."""
        total = 0.0
        for spent in self.spent.values():
            if spent.usd is None:
                return None
            total += spent.usd
        return total

    def admit(self) -> None:
        """Raises `LimitReached` where no further request may be made."""
        if self.max_turns is not None and self.turns >= self.max_turns:
            self.reached = LimitReached("turns", f"The limit of {self.max_turns} turns was reached (--max-turns).")
        elif self.max_usd is not None and (self.usd or 0.0) >= self.max_usd:
            self.reached = LimitReached(
                "budget", f"The budget of {self.max_usd:g} dollars is spent ({self.usd:.4f} so far, --max-budget-usd)."
            )
        if self.reached is not None:
            raise self.reached
        self.turns += 1

    def count(self, model: ModelProvider, usage: Usage, seconds: float) -> None:
        cost = price(model.facts, usage)
        known = self.spent.get(model.name)
        before = known or Spent(facts=model.facts, usage=Usage(), usd=0.0, requests=0, api_seconds=0.0)
        self.usage = summed(self.usage, usage)
        self.api_seconds += seconds
        self.spent[model.name] = Spent(
            facts=model.facts,
            usage=summed(before.usage, usage),
            usd=None if cost is None or before.usd is None else before.usd + cost,
            requests=before.requests + 1,
            api_seconds=before.api_seconds + seconds,
        )


class MeteredModel:
    """A model whose every request is counted, and that can be another one from the next request on."""

    def __init__(self, model: ModelProvider, meter: Meter) -> None:
        self.model = model
        self._meter = meter
        self.ready: Callable[[], Awaitable[object]] = _no_wait
        """Awaited before each event: whoever writes the conversation down sets the pace."""
        self.is_finished: Callable[[], bool] = bool
        """Asked before each request; once it is true, the model has nothing more to say."""

    @property
    def name(self) -> str:
        return self.model.name

    @property
    def facts(self) -> ModelFacts:
        return self.model.facts

    @asynccontextmanager
    async def stream(self, request: Request, /) -> AsyncGenerator[AsyncIterator[ModelEvent]]:
        if self.is_finished():
            yield _nothing_more()
            return
        self._meter.admit()
        model, counted = self.model, _Counted(self.ready)
        began = monotonic()
        try:
            async with model.stream(request) as events:
                yield counted.passing(events)
        finally:
            self._meter.count(model, counted.usage, monotonic() - began)


@dataclass(slots=True)
class _Counted:
    ready: Callable[[], Awaitable[object]]
    usage: Usage = field(default_factory=Usage)

    async def passing(self, events: AsyncIterator[ModelEvent]) -> AsyncIterator[ModelEvent]:
        async for event in events:
            if isinstance(event, Usage):
                self.usage = event
            if not isinstance(event, Retrying):
                await self.ready()
            yield event


async def _nothing_more() -> AsyncIterator[ModelEvent]:
    yield Stopped("end")


def price(facts: ModelFacts, usage: Usage) -> float | None:
    """In dollars; `None` where tokens were used whose price is not known.

    >>> price(ModelFacts(input_price=3.0, output_price=15.0), Usage(1_000_000, 100_000))
    4.5
    """
    total = 0.0
    for tokens, cost in (
        (usage.input_tokens, facts.input_price),
        (usage.output_tokens, facts.output_price),
        (usage.cache_read_tokens, facts.cache_read_price),
        (usage.cache_write_tokens, facts.cache_write_price),
    ):
        if tokens and cost is None:
            return None
        total += tokens * (cost or 0.0) / 1_000_000
    return total


def summed(one: Usage, other: Usage) -> Usage:
    return Usage(
        one.input_tokens + other.input_tokens,
        one.output_tokens + other.output_tokens,
        one.cache_read_tokens + other.cache_read_tokens,
        one.cache_write_tokens + other.cache_write_tokens,
    )
