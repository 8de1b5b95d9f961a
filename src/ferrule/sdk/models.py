"""The models that one conversation asks: its own, another that it is switched to, those that agents want."""

from __future__ import annotations

import os

from ..app.choosing import chosen_model
from ..core.model import ModelError, ModelProvider
from ..providers.catalog import OpenedModel
from .options import Options


class Models:
    """Opens each name once, and closes what it opened. A model that the program brought stands for every name."""

    def __init__(self, options: Options) -> None:
        named = options.model is None or isinstance(options.model, str)
        self._given: ModelProvider | None = None if named else options.model  # pyright: ignore[reportAttributeAccessIssue]
        self._environ = {**os.environ, **options.env}
        self._opened: dict[str | None, OpenedModel] = {}

    def named(self, name: str | None) -> ModelProvider:
        """`None` for what the environment names. Raises `ModelError`."""
        if self._given is not None:
            return self._given
        if name not in self._opened:
            self._opened[name] = chosen_model(name, self._environ)
        return self._opened[name]

    def __call__(self, name: str, /) -> ModelProvider:
        """For agents: satisfies `agents.spawner.Models`."""
        try:
            return self.named(name)
        except ModelError as error:
            raise ValueError(str(error)) from None

    async def close(self) -> None:
        for model in self._opened.values():
            await model.close()
