"""A model behind a network service: what is common to all APIs."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace

from ..core.model import ModelEvent, ModelFacts, Request
from ..host.http.http_client import HttpClient
from .retry import Retries, with_retries
from .service_access import RequestAuthorization, with_own_headers
from .service_errors import ServiceAddress, Trouble
from .service_requests import FrameReader, MessageReader, ask_once
from .sse import SseReader


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
        frames: Callable[[], FrameReader] = SseReader,
        authorization: RequestAuthorization | None = None,
        key_source: str = "none",
    ) -> None:
        """`authorization` gives the key where the service's own headers have none."""
        self.key_source = key_source
        self.name = service.model
        self.facts = facts
        self._service = service
        self._client = client
        self._retries = retries or Retries()
        self._body = body
        self._reader = reader
        self._frames = frames
        self._authorization = authorization

    async def close(self) -> None:
        await self._client.close()

    @asynccontextmanager
    async def stream(self, request: Request, /) -> AsyncGenerator[AsyncIterator[ModelEvent]]:
        body = self._body(request)

        def ask() -> AsyncGenerator[ModelEvent]:
            if self._authorization is not None:
                return self._ask_with(self._authorization, body)
            return self._ask(self._service, body)

        async with aclosing(with_retries(ask, self._retries)) as events:
            yield events

    def _ask(self, service: ServiceAddress, body: bytes) -> AsyncGenerator[ModelEvent]:
        return ask_once(self._client, service, body, self._reader(), self._frames())

    async def _ask_with(self, authorization: RequestAuthorization, body: bytes) -> AsyncGenerator[ModelEvent]:
        """A key that is refused may be an old one, so another is asked for, once."""
        for last in (False, True):
            given = await authorization.headers(self._service.url, body)
            service = replace(self._service, headers=with_own_headers(given, self._service.headers))
            try:
                async with aclosing(self._ask(service, body)) as events:
                    async for event in events:
                        yield event
                return
            except Trouble as trouble:
                if last or not authorization.forget(trouble.status):
                    raise
