"""The models that one conversation asks: its own, another that it is switched to, those that agents want."""

from __future__ import annotations

from collections.abc import Mapping

from ..core.model import ModelError, ModelProvider
from ..providers.agent_models import is_out_of_reach
from ..providers.choosing import choose_model
from ..providers.model_catalog import OpenedModel
from ..providers.model_choice import ModelChoice
from .fallback import FallbackModel


class OpenedModels:
    """Opens each name once, and closes what it opened. A model that the program brought stands for every name."""

    def __init__(
        self,
        given: ModelProvider | None,
        environ: Mapping[str, str],
        choice: ModelChoice,
        *,
        fallback: str | None = None,
    ) -> None:
        self._given = given
        self._fallback = fallback
        self._environ = environ
        self._choice = choice
        self._opened: dict[str | None, OpenedModel] = {}
        self._leading: ModelProvider | None = None

    def open(self, name: str | None) -> ModelProvider:
        """`None` for what the environment or the settings name. Raises `ModelError`."""
        if self._given is not None:
            return self._given
        if name not in self._opened:
            self._opened[name] = choose_model(name, self._environ, self._choice)
        return self._opened[name]

    def leading(self, name: str | None) -> ModelProvider:
        """For the conversation itself, with what stands behind it. Raises `ModelError`."""
        model = self.open(name)
        if self._fallback is not None and self._given is None:
            model = FallbackModel(model, self.open(self._fallback))
        self._leading = model
        return model

    def small(self) -> ModelProvider | None:
        """For small questions; `None` where nobody chose one. Raises `ModelError`."""
        name = self._choice.choose_small_name(self._environ)
        return self.open(name) if name and self._given is None else None

    def __call__(self, name: str, /) -> ModelProvider:
        """For agents: satisfies `agents.spawner.Models`."""
        if self._leading is not None and is_out_of_reach(name, self._environ, self._choice):
            return self._leading
        try:
            return self.open(name)
        except ModelError as error:
            raise ValueError(str(error)) from None

    async def close(self) -> None:
        for model in self._opened.values():
            await model.close()
