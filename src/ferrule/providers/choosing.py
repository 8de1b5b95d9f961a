"""Which model is asked where a program, the environment or the settings name one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from .model_choice import ModelChoice

if TYPE_CHECKING:
    from .model_catalog import OpenedModel


def choose_model(name: str | None, environ: Mapping[str, str], choice: ModelChoice | None = None) -> OpenedModel:
    """By this name, or as the environment or the settings choose, or that of whoever has a key. Raises `ModelError`."""
    from .model_catalog import open_model

    choice = choice or ModelChoice()
    named = choice.choose_name(name, environ)
    return open_model(named, choice.reaching(named, environ))
