"""Limits for one analysis, however much its text expands."""

from __future__ import annotations

MAX_SIMPLE = 600
MAX_SCRIPTS = 12
MAX_CHARACTERS = 20_000
"""Of all texts that commands hand to shells."""
MAX_MADE = 200
MAX_VALUE = 4_000


class AnalysisBudget:
    """What is left of the budget; one object for a whole analysis."""

    def __init__(self) -> None:
        self._simples = MAX_SIMPLE
        self._scripts = MAX_SCRIPTS
        self._characters = MAX_CHARACTERS
        self._made = MAX_MADE

    def simple(self) -> bool:
        """Takes one simple command; false if none is left."""
        self._simples -= 1
        return self._simples >= 0

    def script(self, length: int) -> bool:
        """Takes one text of that many characters that a command hands to a shell."""
        self._scripts -= 1
        self._characters -= length
        return self._scripts >= 0 and self._characters >= 0

    def words(self, count: int) -> bool:
        """Takes the words that braces expand to."""
        self._made -= count
        return self._made >= 0
