"""How many examples a law is shown with."""

from __future__ import annotations

from hypothesis import settings


def at_least(examples: int) -> settings:
    """So many, or as many as the profile has for every law if that is more."""
    return settings(max_examples=max(examples, settings.default.max_examples))
