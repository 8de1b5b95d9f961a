"""Known facts about models: context window, longest answer, prices in dollars per million tokens.

A row applies to its name, also with a date suffix. If prices rise with the length
of the request, the lowest are listed.
"""

from __future__ import annotations

import re
from typing import Literal, TypeAlias

from ..core.model import ModelFacts
from ..core.values import plain_value

Thinking: TypeAlias = Literal["budget", "adaptive"]
"""How reasoning is requested: with a number of tokens, or as the model sees fit."""

K = 1_000
M = 1_000_000


@plain_value
class Known:
    name: str
    window: int
    output: int
    input_price: float
    output_price: float
    cache_read_price: float
    cache_write_price: float | None = None
    thinking: Thinking = "adaptive"


ANTHROPIC = (
    Known("claude-3-haiku", 200 * K, 4_096, 0.25, 1.25, 0.03, 0.3, "budget"),
    Known("claude-3-5-haiku", 200 * K, 8_192, 0.8, 4, 0.08, 1, "budget"),
    Known("claude-3-7-sonnet", 200 * K, 64 * K, 3, 15, 0.3, 3.75, "budget"),
    Known("claude-opus-4", 200 * K, 32 * K, 15, 75, 1.5, 18.75, "budget"),
    Known("claude-opus-4-0", 200 * K, 32 * K, 15, 75, 1.5, 18.75, "budget"),
    Known("claude-opus-4-1", 200 * K, 32 * K, 15, 75, 1.5, 18.75, "budget"),
    Known("claude-opus-4-5", 200 * K, 64 * K, 5, 25, 0.5, 6.25, "budget"),
    Known("claude-opus-4-6", M, 128 * K, 5, 25, 0.5, 6.25),
    Known("claude-opus-4-7", M, 128 * K, 5, 25, 0.5, 6.25),
    Known("claude-opus-4-8", M, 128 * K, 5, 25, 0.5, 6.25),
    Known("claude-opus-5", M, 128 * K, 5, 25, 0.5, 6.25),
    Known("claude-opus-5-5", M, 128 * K, 4, 20, 0.2, 5),
    Known("claude-sonnet-4", 200 * K, 64 * K, 3, 15, 0.3, 3.75, "budget"),
    Known("claude-sonnet-4-0", 200 * K, 64 * K, 3, 15, 0.3, 3.75, "budget"),
    Known("claude-sonnet-4-5", 200 * K, 64 * K, 3, 15, 0.3, 3.75, "budget"),
    Known("claude-sonnet-4-6", M, 64 * K, 3, 15, 0.3, 3.75),
    Known("claude-sonnet-5", M, 128 * K, 2, 10, 0.2, 2.5),
    Known("claude-sonnet-5-5", M, 128 * K, 2, 10, 0.1, 2.5),
    Known("claude-haiku-4-5", 200 * K, 64 * K, 1, 5, 0.1, 1.25, "budget"),
    Known("claude-haiku-5-5", M, 128 * K, 0.1, 0.5, 0.01, 0.125),
    Known("claude-fable-5", M, 128 * K, 10, 50, 1, 12.5),
    Known("claude-fable-5-1", M, 128 * K, 10, 50, 0.25, 12.5),
)

SHORT_NAMES = {
    "fable": "claude-fable-5-1",
    "haiku": "claude-haiku-5-5",
    "opus": "claude-opus-5-5",
    "sonnet": "claude-sonnet-5-5",
}
"""The newest of each family, by its common short name."""

OPENAI = (
    Known("gpt-4o", 128 * K, 16_384, 2.5, 10, 1.25),
    Known("gpt-4o-mini", 128 * K, 16_384, 0.15, 0.6, 0.075),
    Known("gpt-4.1", 1_047_576, 32_768, 2, 8, 0.5),
    Known("gpt-4.1-mini", 1_047_576, 32_768, 0.4, 1.6, 0.1),
    Known("gpt-4.1-nano", 1_047_576, 32_768, 0.1, 0.4, 0.025),
    Known("o3", 200 * K, 100 * K, 2, 8, 0.5),
    Known("o3-mini", 200 * K, 100 * K, 1.1, 4.4, 0.55),
    Known("o4-mini", 200 * K, 100 * K, 1.1, 4.4, 0.275),
    Known("gpt-5", 400 * K, 128 * K, 1.25, 10, 0.125),
    Known("gpt-5-mini", 400 * K, 128 * K, 0.25, 2, 0.025),
    Known("gpt-5-nano", 400 * K, 128 * K, 0.05, 0.4, 0.005),
    Known("gpt-5.1", 400 * K, 128 * K, 1.25, 10, 0.125),
    Known("gpt-5.1-codex", 400 * K, 128 * K, 1.25, 10, 0.125),
    Known("gpt-5.2", 400 * K, 128 * K, 1.75, 14, 0.175),
    Known("gpt-5.4", 1_050 * K, 128 * K, 2.5, 15, 0.25),
    Known("gpt-5.4-mini", 400 * K, 128 * K, 0.75, 4.5, 0.075),
    Known("gpt-5.4-nano", 400 * K, 128 * K, 0.2, 1.25, 0.02),
    Known("gpt-5.5", M, 128 * K, 5, 30, 0.5),
    Known("gpt-5.6-sol", 1_050 * K, 128 * K, 4, 20, 0.4, 5),
    Known("gpt-5.6-terra", 1_050 * K, 128 * K, 2, 12, 0.2, 2.5),
    Known("gpt-5.6-luna", 1_050 * K, 128 * K, 0.2, 1.2, 0.02, 0.25),
    Known("gpt-6-astra", 1_050 * K, 128 * K, 10, 50, 1, 12.5),
    Known("gpt-6-sol", 1_050 * K, 128 * K, 2, 10, 0.2, 2.5),
    Known("gpt-6-luna", 1_050 * K, 128 * K, 0.1, 0.5, 0.01, 0.125),
    Known("gpt-6.1-sol", 1_050 * K, 128 * K, 2, 10, 0.1, 2.5),
    Known("gpt-6.1-terra", 1_050 * K, 128 * K, 1, 5, 0.05, 1.25),
)

UNKNOWN_CLAUDE = ModelFacts(window=200 * K, most_output=32 * K, takes_documents=True)
UNKNOWN = ModelFacts(window=128 * K, most_output=16 * K, takes_images=False)
"""Small enough for most, so that a conversation is shortened before the service refuses it; images only if they
are known to be accepted, since one that is refused stays in the conversation."""


def anthropic_facts(model: str) -> tuple[ModelFacts, Thinking]:
    known = _find_known(model, ANTHROPIC)
    if known is not None:
        return _facts(known, takes_documents=True), known.thinking
    return (UNKNOWN_CLAUDE, "adaptive") if model.startswith("claude-") else (UNKNOWN, "budget")


def openai_facts(model: str) -> ModelFacts:
    known = _find_known(model, OPENAI)
    return _facts(known, takes_documents=False) if known else UNKNOWN


def _find_known(model: str, rows: tuple[Known, ...]) -> Known | None:
    """A longer name is a different model with a different price: `gpt-5` does not cover `gpt-5-pro`.

    >>> _find_known("claude-opus-4-5-20251101", ANTHROPIC) is not None, _find_known("gpt-5-pro", OPENAI)
    (True, None)
    """
    name = re.sub(r"[-@](latest|\d{4}-?\d\d-?\d\d)$", "", model)
    return next((row for row in rows if row.name == name), None)


def _facts(known: Known, *, takes_documents: bool) -> ModelFacts:
    return ModelFacts(
        window=known.window,
        most_output=known.output,
        takes_documents=takes_documents,
        input_price=known.input_price,
        output_price=known.output_price,
        cache_read_price=known.cache_read_price,
        cache_write_price=known.cache_write_price,
    )


GEMINI_WINDOW = 1_048_576
GEMINI_OUTPUT = 65_536
GEMINI = (
    Known("gemini-2.5-pro", GEMINI_WINDOW, GEMINI_OUTPUT, 1.25, 10, 0.125),
    Known("gemini-2.5-flash", GEMINI_WINDOW, GEMINI_OUTPUT, 0.3, 2.5, 0.03),
    Known("gemini-2.5-flash-lite", GEMINI_WINDOW, GEMINI_OUTPUT, 0.1, 0.4, 0.01),
    Known("gemini-3-flash", GEMINI_WINDOW, GEMINI_OUTPUT, 0.5, 3, 0.05),
    Known("gemini-3.1-pro", GEMINI_WINDOW, GEMINI_OUTPUT, 2, 12, 0.2),
    Known("gemini-3.1-flash-lite", GEMINI_WINDOW, GEMINI_OUTPUT, 0.25, 1.5, 0.025),
    Known("gemini-3.5-flash", GEMINI_WINDOW, GEMINI_OUTPUT, 1.5, 9, 0.15),
    Known("gemini-3.5-flash-lite", GEMINI_WINDOW, GEMINI_OUTPUT, 0.3, 2.5, 0.03),
    Known("gemini-3.6-flash", GEMINI_WINDOW, GEMINI_OUTPUT, 0.75, 3.75, 0.075),
    Known("gemini-3.7-flash", GEMINI_WINDOW, GEMINI_OUTPUT, 0.75, 3.75, 0.075),
    Known("gemini-3.8-flash", GEMINI_WINDOW, GEMINI_OUTPUT, 0.75, 3.75, 0.075),
)
"""A row applies to previews of the model too. Prices of 3.6 to 3.8 are those until the end of 2026."""
UNKNOWN_GEMINI = ModelFacts(window=GEMINI_WINDOW, most_output=GEMINI_OUTPUT, takes_documents=True)


def gemini_facts(model: str) -> ModelFacts:
    """
    >>> gemini_facts("gemini-3.1-pro-preview").input_price, gemini_facts("gemma-4-31b-it").takes_images
    (2, False)
    """
    known = _find_known(re.sub(r"-preview(-\d\d-\d{4})?$", "", model), GEMINI)
    if known is not None:
        return _facts(known, takes_documents=True)
    return UNKNOWN_GEMINI if model.startswith("gemini-") else UNKNOWN
