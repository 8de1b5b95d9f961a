"""Models behind OpenAI's chat completions: OpenAI's own, Ollama, vLLM, OpenRouter and the like."""

from __future__ import annotations

from dataclasses import replace

from ..core.model import ModelFacts, Request
from ..host.http.http_client import HttpClient
from .accents import PLAIN, Accent, accent_for, learn_accent
from .openai_address import OpenAiAccess
from .openai_calls import CallsInProgress
from .openai_wire import OpenAiBodies, OpenAiReader
from .retry import Retries
from .service_errors import Trouble
from .service_model import ServiceModel
from .service_requests import MessageReader
from .written_text import WrittenText


class OpenAiModel(ServiceModel):
    def __init__(
        self, access: OpenAiAccess, *, client: HttpClient, facts: ModelFacts, retries: Retries | None = None
    ) -> None:
        service = access.service
        self._limit_name = access.limit_name
        self._ids: set[str] = set()
        self.accent = PLAIN
        self._bodies = OpenAiBodies(service.model, limit_name=access.limit_name, origin=service.origin)
        super().__init__(
            service,
            facts=facts,
            client=client,
            retries=retries,
            body=self._body_of,
            reader=lambda: OpenAiReader(service, CallsInProgress(self._ids, service.origin)),
            key_source=access.key_source,
        )
        self._use_accent(accent_for(service.url.host, service.model))

    def reader_for(self, request: Request) -> MessageReader:
        written = WrittenText(
            request.tools,
            opens_in_thought=self.accent.opens_in_thought,
            found_lone_end=lambda: self._use_accent(replace(self.accent, opens_in_thought=True)),
        )
        return OpenAiReader(self._service, CallsInProgress(self._ids, self._service.origin), written)

    def adapt(self, trouble: Trouble) -> bool:
        learned = learn_accent(self.accent, trouble)
        if learned is not None:
            self._use_accent(learned)
        return learned is not None

    def _body_of(self, request: Request) -> bytes:
        return self._bodies.body(request)

    def _use_accent(self, accent: Accent) -> None:
        """For all requests from now on."""
        self.accent = accent
        if replace(accent, opens_in_thought=False) != PLAIN:
            from .accented_bodies import AccentedBodies

            self._bodies = AccentedBodies(
                self._service.model, limit_name=self._limit_name, origin=self._service.origin, accent=accent
            )
