"""What a conversation uses and costs, and its limits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ..core.events import TurnEnded
from ..core.model import ModelFacts, ModelProvider, Usage
from ..core.values import named_value, plain_value

MILLION = 1_000_000
HOUR_FACTOR = 2
"""What is cached for an hour costs this much more than plain input."""
NOTHING = Usage()
NO_PRICE = (
    "The price of {} is unknown, so a budget cannot be enforced. Set its prices in `models` in your "
    "settings, or ask its server with `ferrule models probe`; or leave the budget out and set `max_turns`."
)


@named_value
class TurnLimits:
    """`None` means no limit."""

    max_turns: int | None = None
    """Messages that the model may write for one prompt."""
    max_budget: float | None = None
    """Dollars that the session may cost, counted from when it was opened."""

    def end_if_reached(
        self, messages: int, spending: Spending, model: ModelProvider, agent: str = "main"
    ) -> TurnEnded | None:
        """How the agent's turn ends, if one of the limits is reached."""
        if self.max_turns is not None and messages >= self.max_turns:
            return TurnEnded("max_turns")
        if self.max_budget is None:
            return None
        if cost_of(NOTHING, model.facts) is None:
            return TurnEnded("error", NO_PRICE.format(model.name))
        return TurnEnded("max_budget") if spending.committed(agent) >= self.max_budget else None


@plain_value
class ModelTotal:
    """What one model reported to have used, and what it cost."""

    usage: Usage = NOTHING
    dollars: float | None = 0.0
    """`None` if its prices are unknown."""
    is_estimate: bool = False
    """Whether the service left out the usage of some messages: their cost is that of their sizes."""
    messages: int = 0


@dataclass(slots=True)
class Spending:
    """The totals of a session since it was opened, by model, and what its open requests may cost."""

    _by_model: dict[str, ModelTotal] = field(default_factory=dict[str, ModelTotal])
    _reserved: dict[str, float] = field(default_factory=dict[str, float])

    def add(self, model: str, usage: Usage, facts: ModelFacts, *, is_estimate: bool = False) -> None:
        """For one message: the price may depend on its length."""
        before = self._by_model.get(model, ModelTotal())
        more = cost_of(usage, facts)
        dollars = None if before.dollars is None or more is None else before.dollars + more
        total = before.usage if is_estimate else add_usage(before.usage, usage)
        self._by_model[model] = ModelTotal(total, dollars, before.is_estimate or is_estimate, before.messages + 1)

    def reserve(self, agent: str, model: ModelProvider, usage: Usage) -> None:
        """Set aside what the agent's next message may cost: by its size, or what one has cost so far."""
        spent = self._by_model.get(model.name, ModelTotal())
        usual = (spent.dollars or 0.0) / spent.messages if spent.messages else 0.0
        self._reserved[agent] = max(usual, cost_of(usage, model.facts) or 0.0)

    def release(self, agent: str) -> None:
        self._reserved.pop(agent, None)

    def committed(self, agent: str) -> float:
        """Dollars that are spent, or set aside for messages of others."""
        return self.dollars + sum(dollars for other, dollars in self._reserved.items() if other != agent)

    @property
    def usage(self) -> Usage:
        """Of all models together."""
        total = NOTHING
        for spent in self._by_model.values():
            total = add_usage(total, spent.usage)
        return total

    @property
    def by_model(self) -> Mapping[str, ModelTotal]:
        return dict(self._by_model)

    @property
    def dollars(self) -> float:
        """Of all models whose prices are known."""
        return sum(spent.dollars or 0.0 for spent in self._by_model.values())

    @property
    def is_estimate(self) -> bool:
        return any(spent.is_estimate for spent in self._by_model.values())


def add_usage(one: Usage, other: Usage) -> Usage:
    return Usage(
        one.input_tokens + other.input_tokens,
        one.output_tokens + other.output_tokens,
        one.cache_read_tokens + other.cache_read_tokens,
        one.cache_write_tokens + other.cache_write_tokens,
        one.cache_hour_tokens + other.cache_hour_tokens,
    )


def subtract_usage(one: Usage, other: Usage) -> Usage:
    """What came to `other` until it was `one`."""
    return Usage(
        one.input_tokens - other.input_tokens,
        one.output_tokens - other.output_tokens,
        one.cache_read_tokens - other.cache_read_tokens,
        one.cache_write_tokens - other.cache_write_tokens,
        one.cache_hour_tokens - other.cache_hour_tokens,
    )


def cost_of(usage: Usage, facts: ModelFacts) -> float | None:
    """Of one message, in dollars; `None` where the prices are not known.

    What is cached costs like input where it has no price, and for an hour twice as much as input.

    >>> cost_of(Usage(1_000_000, 100_000), ModelFacts(input_price=3.0, output_price=15.0))
    4.5
    >>> cost_of(Usage(0, 0, 0, 1_000_000, 1_000_000), ModelFacts(input_price=3.0, output_price=15.0))
    6.0
    """
    if facts.input_price is None or facts.output_price is None:
        return None
    read = facts.input_price if facts.cache_read_price is None else facts.cache_read_price
    write = facts.input_price if facts.cache_write_price is None else facts.cache_write_price
    into = (
        usage.input_tokens * facts.input_price
        + usage.cache_read_tokens * read
        + (usage.cache_write_tokens - usage.cache_hour_tokens) * write
        + usage.cache_hour_tokens * facts.input_price * HOUR_FACTOR
    )
    out = usage.output_tokens * facts.output_price
    if facts.long_prices is not None and usage.prompt_tokens > facts.long_prices.above:
        into *= facts.long_prices.input_factor
        out *= facts.long_prices.output_factor
    return (into + out) / MILLION
