"""The limits of commands that the model runs, as the environment sets them."""

from __future__ import annotations

from collections.abc import Mapping

from ...core.values import named_value

LIMIT_VARIABLES = ("BASH_DEFAULT_TIMEOUT_MS", "BASH_MAX_TIMEOUT_MS", "BASH_MAX_OUTPUT_LENGTH")
LONGEST_SHOWN = 150_000
"""Characters of output that a setting may choose at most: a window holds only so many."""


@named_value
class CommandLimits:
    """How long a command of the model's may take, and how much of its output the model gets."""

    usual_ms: int = 120_000
    """Where the call does not say."""
    most_ms: int = 600_000
    output: int | None = None
    """Characters, where that is set; what is said about the output comes on top."""

    def __str__(self) -> str:
        return f"{self.usual_ms / 1000:g} seconds by default, {self.most_ms / 1000:g} at most"

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> CommandLimits:
        """A bad or zero value means the default.

        >>> CommandLimits.from_environment({"BASH_DEFAULT_TIMEOUT_MS": "900000", "BASH_MAX_OUTPUT_LENGTH": "x"})
        CommandLimits(usual_ms=900000, most_ms=900000, output=None)
        """
        own = cls()
        usual, most, shown = (_number(environment.get(name, "")) for name in LIMIT_VARIABLES)
        usual = usual or own.usual_ms
        return cls(
            usual_ms=usual,
            most_ms=max(most or own.most_ms, usual),
            output=min(shown, LONGEST_SHOWN) or None,
        )

    def describe(self) -> str:
        """For the model, which is told the usual ones."""
        seconds = f"{self.usual_ms / 1000:g} seconds by default and {self.most_ms / 1000:g} at most"
        return f"In this session the time limit is {seconds}, whatever is said above."


def _number(text: str) -> int:
    text = text.strip()
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else 0
