"""What a conversation uses and costs, and its limits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ..core.events import TurnEnded
from ..core.model import ModelFacts, ModelProvider, Usage
from ..core.values import named_value

MILLION = 1_000_000
NOTHING = Usage()
NO_PRICE = (
    "The price of {} is unknown, so a budget in dollars cannot be enforced. Leave the budget out, or set `max_turns`."
)


@named_value
class TurnLimits:
    """`None` means no limit."""

    max_turns: int | None = None
    """Messages that the model may write for one prompt."""
    max_budget: float | None = None
    """Dollars that the session may cost, counted from when it was opened."""

    def end_if_reached(self, messages: int, spending: Spending, model: ModelProvider) -> TurnEnded | None:
        """How the turn ends, if one of the limits is reached."""
        if self.max_turns is not None and messages >= self.max_turns:
            return TurnEnded("max_turns")
        if self.max_budget is None:
            return None
        if cost_of(NOTHING, model.facts) is None:
            return TurnEnded("error", NO_PRICE.format(model.name))
        return TurnEnded("max_budget") if spending.dollars >= self.max_budget else None


@dataclass(slots=True)
class Spending:
    """The totals of a session since it was opened, for each model that it asked."""

    _by_model: dict[str, tuple[Usage, float | None]] = field(default_factory=dict[str, tuple[Usage, float | None]])

    def add(self, model: str, usage: Usage, facts: ModelFacts) -> None:
        spent, dollars = self._by_model.get(model, (NOTHING, 0.0))
        more = cost_of(usage, facts)
        known = None if dollars is None or more is None else dollars + more
        self._by_model[model] = (add_usage(spent, usage), known)

    @property
    def usage(self) -> Usage:
        """Of all models together."""
        total = NOTHING
        for usage, _ in self._by_model.values():
            total = add_usage(total, usage)
        return total

    @property
    def by_model(self) -> Mapping[str, tuple[Usage, float | None]]:
        """The usage and the dollars of each model; `None` for dollars if its prices are unknown."""
        return dict(self._by_model)

    @property
    def dollars(self) -> float:
        """Of all models whose prices are known."""
        return sum(dollars or 0.0 for _, dollars in self._by_model.values())


def add_usage(one: Usage, other: Usage) -> Usage:
    return Usage(
        one.input_tokens + other.input_tokens,
        one.output_tokens + other.output_tokens,
        one.cache_read_tokens + other.cache_read_tokens,
        one.cache_write_tokens + other.cache_write_tokens,
    )


def subtract_usage(one: Usage, other: Usage) -> Usage:
    return Usage(
        one.input_tokens - other.input_tokens,
        one.output_tokens - other.output_tokens,
        one.cache_read_tokens - other.cache_read_tokens,
        one.cache_write_tokens - other.cache_write_tokens,
    )


def cost_of(usage: Usage, facts: ModelFacts) -> float | None:
    """In dollars, `None` where the prices are not known. What is cached costs like input where it has no price.

    >>> cost_of(Usage(1_000_000, 100_000), ModelFacts(input_price=3.0, output_price=15.0))
    4.5
    """
    if facts.input_price is None or facts.output_price is None:
        return None
    read = facts.input_price if facts.cache_read_price is None else facts.cache_read_price
    write = facts.input_price if facts.cache_write_price is None else facts.cache_write_price
    return (
        usage.input_tokens * facts.input_price
        + usage.output_tokens * facts.output_price
        + usage.cache_read_tokens * read
        + usage.cache_write_tokens * write
    ) / MILLION
