"""How many examples a law is shown with."""

from __future__ import annotations

from hypothesis import settings

USUAL = settings.get_profile("steady").max_examples


def examples(number: int) -> settings:
    """So many where others have the usual number, and more in the same measure where the profile has more."""
    return settings(max_examples=number * settings.default.max_examples // USUAL)
