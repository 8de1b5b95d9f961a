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
        async with aclosing(with_retries(lambda: self._ask_adapting(request), self._retries)) as events:
            yield events

    async def _ask_adapting(self, request: Request) -> AsyncGenerator[ModelEvent]:
        """A refusal that the wire can do something about is answered with another request, at once."""
        has_begun = False
        while True:
            try:
                async with aclosing(self._ask(self._body(request), self.reader_for(request))) as events:
                    async for event in events:
                        has_begun = True
                        yield event
                return
            except Trouble as trouble:
                if has_begun or not self.adapt(trouble):
                    raise

    def reader_for(self, request: Request) -> MessageReader:
        """What reads the answer to this request."""
        return self._reader()

    def adapt(self, trouble: Trouble) -> bool:
        """Whether requests are different from now on, so that this refusal will not come again."""
        return False

    def _ask(self, body: bytes, reader: MessageReader) -> AsyncGenerator[ModelEvent]:
        if self._authorization is not None:
            return self._ask_with(self._authorization, body, reader)
        return ask_once(self._client, self._service, body, reader, self._frames())

    async def _ask_with(
        self, authorization: RequestAuthorization, body: bytes, reader: MessageReader
    ) -> AsyncGenerator[ModelEvent]:
        """A key that is refused may be an old one, so another is asked for, once. A refusal leaves `reader` unused."""
        for last in (False, True):
            given = await authorization.headers(self._service.url, body)
            service = replace(self._service, headers=with_own_headers(given, self._service.headers))
            try:
                async with aclosing(ask_once(self._client, service, body, reader, self._frames())) as events:
                    async for event in events:
                        yield event
                return
            except Trouble as trouble:
                if last or not authorization.forget(trouble.status):
                    raise
