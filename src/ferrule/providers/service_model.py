"""A model behind a network service: what is common to all APIs."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager

from ..core.model import ModelEvent, ModelFacts, Request
from ..host.http.http_client import HttpClient
from .retry import Retries, with_retries
from .service_errors import ServiceAddress
from .service_requests import MessageReader, ask_once


class ServiceModel:
    """Its client may be shared with others."""

    def __init__(
        self,
        service: ServiceAddress,
        *,
        facts: ModelFacts,
        client: HttpClient,
        retries: Retries | None,
        body: Callable[[Request], bytes],
        reader: Callable[[], MessageReader],
    ) -> None:
        self.name = service.model
        self.facts = facts
        self._service = service
        self._client = client
        self._retries = retries or Retries()
        self._body = body
        self._reader = reader

    async def close(self) -> None:
        await self._client.close()

    @asynccontextmanager
    async def stream(self, request: Request, /) -> AsyncGenerator[AsyncIterator[ModelEvent]]:
        body = self._body(request)

        def ask() -> AsyncGenerator[ModelEvent]:
            return ask_once(self._client, self._service, body, self._reader())

        async with aclosing(with_retries(ask, self._retries)) as events:
            yield events
