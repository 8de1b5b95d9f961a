"""The models that agents ask for by name, opened once each and closed together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ..core.model import ModelError, ModelProvider
from .claude_choice import is_short
from .model_catalog import speaks_anthropic
from .model_choice import ModelChoice, choose_model

if TYPE_CHECKING:
    from .model_catalog import OpenedModel


class AgentModels:
    """Satisfies `agents.launcher.ModelSource`."""

    def __init__(self, environ: Mapping[str, str], choice: ModelChoice, *, own: ModelProvider) -> None:
        """`own` is the session's model, the fallback for a Claude model whose service is not available."""
        self._environ = environ
        self._choice = choice
        self._own = own
        self._opened: dict[str, OpenedModel] = {}

    def __call__(self, name: str, /) -> ModelProvider:
        if is_out_of_reach(name, self._environ, self._choice):
            return self._own
        if name not in self._opened:
            try:
                self._opened[name] = choose_model(name, self._environ, self._choice)
            except ModelError as error:
                raise ValueError(str(error)) from None
        return self._opened[name]

    async def close(self) -> None:
        for model in self._opened.values():
            await model.close()


def is_out_of_reach(name: str, environ: Mapping[str, str], choice: ModelChoice) -> bool:
    """Whether it is a Claude model, as agents of other programs name them, whose service is not available here.

    >>> is_out_of_reach("claude-opus-4-7", {"OPENAI_API_KEY": "k"}, ModelChoice())
    True
    """
    reached = choice.reaching(name, environ)
    if speaks_anthropic(reached):
        return False
    return is_short(name) or (name.startswith("claude-") and not reached.get("OPENAI_BASE_URL"))  # it may have it
