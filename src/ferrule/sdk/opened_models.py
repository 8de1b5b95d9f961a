"""The models of one conversation: its own, another that it is switched to, those of agents."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Final

from ..core.model import FailureKind, ModelError, ModelEvent, ModelFacts, ModelProvider, Request, Retrying
from ..providers.claude_choice import is_short
from ..providers.model_catalog import OpenedModel, service_of, speaks_anthropic
from ..providers.model_choice import ModelChoice, choose_model
from ..providers.service_access import cloud_of

log = logging.getLogger(__name__)

MOST_TRIES: Final = 2
"""How often the first model is tried for a message: with a fallback, waiting long is not useful."""
_OF_THE_SERVICE: Final[frozenset[FailureKind]] = frozenset({"limit", "overload", "network"})
"""Errors that another model may not have. A refused request would be refused again."""


class FallbackModel:
    """Asks the first model for each message, and the second if the first returned nothing."""

    def __init__(self, first: ModelProvider, second: ModelProvider) -> None:
        self._first = first
        self._second = second
        self._asked = first

    @property
    def name(self) -> str:
        """Of the one that was asked last."""
        return self._asked.name

    @property
    def facts(self) -> ModelFacts:
        return self._asked.facts

    @asynccontextmanager
    async def stream(self, request: Request, /) -> AsyncGenerator[AsyncIterator[ModelEvent]]:
        self._asked = self._first
        async with AsyncExitStack() as streams:
            yield self._events(request, streams)

    async def _events(self, request: Request, streams: AsyncExitStack) -> AsyncIterator[ModelEvent]:
        has_begun = False
        try:
            async for event in await streams.enter_async_context(self._first.stream(request)):
                if isinstance(event, Retrying) and event.attempt > MOST_TRIES:
                    raise ModelError(event.reason, "overload")
                has_begun = has_begun or not isinstance(event, Retrying)
                yield event
            return
        except ModelError as error:
            if has_begun or error.kind not in _OF_THE_SERVICE:
                raise
            log.warning("%s cannot answer (%s); %s is asked instead", self._first.name, error, self._second.name)
        await streams.aclose()
        self._asked = self._second
        async for event in await streams.enter_async_context(self._second.stream(request)):
            yield event


class OpenedModels:
    """Opens each name once, and closes what it opened. A model object of the program is used for every name."""

    def __init__(
        self,
        given: ModelProvider | None,
        environ: Mapping[str, str],
        choice: ModelChoice,
        *,
        name: str | None = None,
        fallback: str | None = None,
    ) -> None:
        """`name` is that of the model which the conversation begins with."""
        self._given = given
        self._name = name
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

    def leading(self, name: str | None = None) -> ModelProvider:
        """For the conversation itself, with its fallback; by default the one that it begins with.

        Raises `ModelError`.
        """
        model = self.open(name or self._name)
        if self._fallback is not None and self._given is None:
            model = FallbackModel(model, self.open(self._fallback))
        self._leading = model
        return model

    @property
    def is_anthropic(self) -> bool:
        """Whether a bare name of a Claude goes where the model that the conversation began with is."""
        if self._given is not None:
            return False
        name = self._choice.choose_name(self._name, self._environ)
        service = service_of(name or "", self._choice.reaching(name, self._environ))
        return service in ("anthropic", cloud_of(self._environ))

    def small(self) -> ModelProvider | None:
        """For small questions; `None` if none was chosen. Raises `ModelError`."""
        name = self._choice.choose_small_name(self._environ)
        return self.open(name) if name and self._given is None else None

    def __call__(self, name: str, /) -> ModelProvider:
        """For agents: satisfies `agents.launcher.ModelSource`."""
        if self._leading is not None and _is_out_of_reach(name, self._environ, self._choice):
            return self._leading
        try:
            return self.open(name)
        except ModelError as error:
            raise ValueError(str(error)) from None

    async def close(self) -> None:
        for model in self._opened.values():
            await model.close()


def _is_out_of_reach(name: str, environ: Mapping[str, str], choice: ModelChoice) -> bool:
    """Whether it is a Claude model, as agents of other programs name them, whose service is not available here.

    >>> _is_out_of_reach("claude-opus-4-7", {"OPENAI_API_KEY": "k"}, ModelChoice())
    True
    """
    reached = choice.reaching(name, environ)
    if speaks_anthropic(reached):
        return False
    return is_short(name) or (name.startswith("claude-") and not reached.get("OPENAI_BASE_URL"))  # it may have it
