"""Searches the web through the configured service. None is built in."""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from ...core.values import plain_value
from ..http.message import HttpError, HttpRequest
from ..http.tls import Tls
from ..http.urls import BadUrl, Url, parse_url
from .fetching import open_client
from .search_variables import NO_SEARCH

SECONDS: Final = 20.0
MOST_RESULTS: Final = 10
MOST_SEARCHES: Final = 200


class WebSearchFailed(Exception):
    """Nothing could be found out. The message says what happened and what to do."""


@plain_value
class Hit:
    title: str
    url: str
    snippet: str


@plain_value
class WebQuery:
    words: str
    allowed: tuple[str, ...] = ()
    """The only domains that results may be of, with what is below them; all where there are none."""
    blocked: tuple[str, ...] = ()

    def admits(self, url: str) -> bool:
        """Services may return results that they were asked to leave out."""
        try:
            host = parse_url(url).host
        except BadUrl:
            return False
        return (not self.allowed or _within(host, self.allowed)) and not _within(host, self.blocked)

    @property
    def with_sites(self) -> str:
        """In the query syntax that most services understand."""
        only = " OR ".join(f"site:{domain}" for domain in self.allowed)
        without = " ".join(f"-site:{domain}" for domain in self.blocked)
        return " ".join(part for part in (self.words, f"({only})" if len(self.allowed) > 1 else only, without) if part)


class Backend(Protocol):
    """One search service: how it is asked, and what its answer says."""

    @property
    def name(self) -> str: ...

    @property
    def endpoint(self) -> Url: ...

    @property
    def advice(self) -> str:
        """What to check if its answer is not usable."""
        ...

    def request(self, query: WebQuery, /) -> HttpRequest: ...

    def hits(self, answer: Any, /) -> Sequence[Hit]:
        """Raises `LookupError`, `TypeError` or `AttributeError` for an answer of another form."""
        ...


@dataclass(slots=True, kw_only=True)
class WebSearches:
    """The searches of one session, up to a limit."""

    backend: Backend | None = None
    wrong: str = NO_SEARCH
    """Why no service is available, if none is."""
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)
    """Names the proxies."""
    tls: Tls = field(default_factory=Tls)
    seconds: float = SECONDS
    most: int = MOST_SEARCHES
    made: int = 0

    async def hits(self, query: WebQuery) -> tuple[Hit, ...]:
        """The best results that the query admits. Raises `WebSearchFailed`."""
        if self.backend is None:
            raise WebSearchFailed(f"Nothing can be searched: {self.wrong}.")
        if self.made >= self.most:
            raise WebSearchFailed(f"This session has made its {self.most} searches. Work with what they found.")
        self.made += 1
        answer = await self._answer(self.backend, query)
        try:
            return _distinct(self.backend.hits(answer), query.admits)
        except (LookupError, TypeError, AttributeError):
            raise WebSearchFailed(f"{self.backend.name} did not answer with results in its usual form.") from None

    async def _answer(self, backend: Backend, query: WebQuery) -> Any:
        try:
            async with (
                asyncio.timeout(self.seconds),
                open_client(self.environ, self.tls) as client,
                client.send(backend.request(query)) as response,
            ):
                if response.status != 200:
                    raise WebSearchFailed(f"{backend.name} answered {response.status}{_meaning(response.status)}.")
                body = await response.read()
        except TimeoutError:
            raise WebSearchFailed(f"{backend.name} gave no answer within {self.seconds:g} seconds.") from None
        except HttpError as error:
            raise WebSearchFailed(f"{backend.name} could not be searched: {error}") from None
        try:
            return json.loads(body)
        except (ValueError, RecursionError):
            raise WebSearchFailed(f"{backend.name} did not answer with valid JSON. {backend.advice}") from None


def _meaning(status: int) -> str:
    match status:
        case 401 | 403:
            return ": it does not take the key, or does not answer in JSON for everyone"
        case 402 | 429 | 432 | 433:
            return ": its limit is reached. Search less, or later"
        case 301 | 302 | 303 | 307 | 308:
            return ", a redirect, which is not followed. Configure the service's own URL"
        case _:
            return ""


def _distinct(hits: Sequence[Hit], admits: Callable[[str], bool]) -> tuple[Hit, ...]:
    kept: dict[str, Hit] = {}
    for hit in hits:
        if admits(hit.url):
            kept.setdefault(hit.url, hit)
    return tuple(kept.values())[:MOST_RESULTS]


def domain_of(text: str) -> str:
    """The domain that somebody means, as hosts are compared. Raises `BadUrl`.

    >>> domain_of("https://Example.com/docs"), domain_of("*.example.com")
    ('example.com', 'example.com')
    """
    bare = re.sub(r"^[A-Za-z][A-Za-z0-9+.-]*://", "", text.strip()).removeprefix("*.")
    return parse_url(f"https://{bare}").host


def _within(host: str, domains: Iterable[str]) -> bool:
    return any(host == domain or host.endswith(f".{domain}") for domain in domains)
