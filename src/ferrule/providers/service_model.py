"""A model behind a network service: what is common to all APIs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import replace

from ..core.model import ModelError, ModelEvent, ModelFacts, Request
from ..host.http.http_client import HttpClient
from .model_claims import FactSources, ModelClaim, limit_output, merge_claims, refuse_small_window
from .request_fitting import RequestFitting, has_images
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
        self._fitting = RequestFitting()
        self._knowledge: Knowledge | None = None

    async def close(self) -> None:
        if self._knowledge is not None:
            await self._knowledge.close()
        await self._client.close()

    def use_sources(self, service: str, sources: FactSources, environ: Mapping[str, str]) -> None:
        """Complete its facts with what settings say, what was learned, and what its server says when first asked."""
        self._knowledge = Knowledge(service, self._service, self._client, sources, environ, self.facts)
        self.facts = self._knowledge.facts()

    async def ask_server(self) -> ModelClaim | None:
        """What its server says of it now, in place of what was known; `None` if it cannot be asked."""
        if self._knowledge is None:
            return None
        self._knowledge.forget()
        claim = await self._knowledge.ask()
        self.facts = self._knowledge.facts()
        return claim

    def learn_window(self, window: int, /) -> None:
        """The service cannot read more than this many tokens. Satisfies `core.model.LearnsWindow`."""
        if window < self.facts.window:
            self.facts = replace(self.facts, window=window, source="learned")
            if self._knowledge is not None:
                self._knowledge.keep_learned(window)

    @asynccontextmanager
    async def stream(self, request: Request, /) -> AsyncGenerator[AsyncIterator[ModelEvent]]:
        if request.tools and (words := refuse_small_window(self.name, self.facts)):
            raise ModelError(words, "request")
        if self._knowledge is not None:
            self._knowledge.ask_beside(self._note_server)
        async with aclosing(with_retries(lambda: self._ask_adapting(request), self._retries)) as events:
            yield events

    def _note_server(self, claim: ModelClaim) -> None:
        assert self._knowledge is not None, "it has asked"
        learned = self.facts if self.facts.source == "learned" else None
        self.facts = self._knowledge.facts()
        if learned is not None and claim.window is None:
            self.facts = replace(self.facts, window=learned.window, source="learned")

    async def _ask_adapting(self, request: Request) -> AsyncGenerator[ModelEvent]:
        """A refusal that something can be done about is answered with another request, at once."""
        has_begun = False
        while True:
            fitted = self._fitting.fit(request, self.facts)
            try:
                async with aclosing(self._ask(self._body(fitted), self.reader_for(fitted))) as events:
                    async for event in events:
                        has_begun = True
                        yield event
                return
            except Trouble as trouble:
                if has_begun or not (self._stop_showing(fitted, trouble) or self.adapt(trouble)):
                    raise

    def _stop_showing(self, request: Request, trouble: Trouble) -> bool:
        """A service that refuses pictures is not sent any from then on. Whether there were some."""
        if trouble.kind != "images" or not has_images(request.history):
            return False
        self.facts = replace(self.facts, takes_images=False)
        return True

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


class Knowledge:
    """What else is known of a model: asked of its server at most once, beside the first request."""

    def __init__(
        self,
        service: str,
        address: ServiceAddress,
        client: HttpClient,
        sources: FactSources,
        environ: Mapping[str, str],
        base: ModelFacts,
    ) -> None:
        """`base` is what the table says."""
        self._service = service
        self._address = address
        self._client = client
        self._sources = sources
        self._environ = environ
        self._base = base
        self._asking: asyncio.Task[None] | None = None

    def facts(self) -> ModelFacts:
        claims = self._sources.claims(self._service, self._origin, self._address.model)
        return limit_output(merge_claims(self._base, claims)[0], self._environ)

    @property
    def _origin(self) -> str:
        return self._address.url.origin

    def keep_learned(self, window: int) -> None:
        if (kept := self._sources.kept()) is not None:
            kept.keep(self._origin, self._address.model, "learned", {"window": window})

    def forget(self) -> None:
        if (kept := self._sources.kept()) is not None:
            kept.forget(self._origin, self._address.model)

    def ask_beside(self, note: Callable[[ModelClaim], None]) -> None:
        """Start asking, unless the facts are known or were asked for lately; `note` is called with the answer."""
        if self._asking is None and self._is_needed():
            self._asking = asyncio.create_task(self._ask(note))

    def _is_needed(self) -> bool:
        kept = self._sources.kept()
        if kept is None or self._base.source == "table" or self.facts().source == "settings":
            return False
        return not kept.is_fresh(self._origin, self._address.model)

    async def _ask(self, note: Callable[[ModelClaim], None]) -> None:
        claim = await self.ask()
        if claim is not None:
            note(claim)

    async def ask(self) -> ModelClaim | None:
        """What its server says now, which is kept; `None` if it cannot be asked."""
        from .server_facts import ask_server, may_be_asked

        if not may_be_asked(self._address.url):
            return None
        claim = await ask_server(self._client, self._address.url, self._address.headers, self._address.model)
        if claim is not None and (kept := self._sources.kept()) is not None:
            kept.keep(self._origin, self._address.model, "server", claim.as_json())
        return claim

    async def close(self) -> None:
        if self._asking is not None:
            self._asking.cancel()
            with suppress(asyncio.CancelledError):
                await self._asking
