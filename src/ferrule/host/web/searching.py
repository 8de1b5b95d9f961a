"""Searching the web through whichever service is configured. Nothing is built in, so without one there is no search."""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from html import unescape
from typing import Any, Final, Protocol, cast
from urllib.parse import urlencode

from ..http.message import HttpError, HttpRequest, Timeouts
from ..http.tls import Tls
from ..http.urls import BadUrl, Url
from .fetching import open_client
from .guard import Refused
from .urls import parse_url

SECONDS: Final = 20.0
MOST_BYTES: Final = 4 << 20
MOST_RESULTS: Final = 10
MOST_SEARCHES: Final = 200
LONGEST_SNIPPET: Final = 500
NO_SEARCH: Final = (
    "no search service is configured. Set FERRULE_SEARCH_URL (a SearXNG server), BRAVE_API_KEY or TAVILY_API_KEY"
)
_TAG: Final = re.compile(r"</?[A-Za-z][^<>]{0,200}>")


class WebSearchFailed(Exception):
    """Nothing could be found out. The message says what happened and what to do."""


@dataclass(frozen=True, slots=True)
class Hit:
    title: str
    url: str
    snippet: str


@dataclass(frozen=True, slots=True)
class WebQuery:
    words: str
    allowed: tuple[str, ...] = ()
    """The only domains that results may be of, with what is below them; all where there are none."""
    blocked: tuple[str, ...] = ()

    def admits(self, url: str) -> bool:
        """What a service was asked to leave out may come all the same."""
        try:
            host = parse_url(url).host
        except Refused:
            return False
        return (not self.allowed or _within(host, self.allowed)) and not _within(host, self.blocked)

    @property
    def with_sites(self) -> str:
        """In the words that most services understand."""
        only = " OR ".join(f"site:{domain}" for domain in self.allowed)
        without = " ".join(f"-site:{domain}" for domain in self.blocked)
        return " ".join(part for part in (self.words, f"({only})" if len(self.allowed) > 1 else only, without) if part)


BRAVE: Final = Url("https", "api.search.brave.com", 443, "/res/v1/web/search")
TAVILY: Final = Url("https", "api.tavily.com", 443, "/search")


class Backend(Protocol):
    """One search service: how it is asked, and where its results stand in the answer."""

    @property
    def name(self) -> str: ...

    @property
    def endpoint(self) -> Url: ...

    def request(self, query: WebQuery, /) -> HttpRequest: ...

    def rows(self, answer: Any, /) -> Any:
        """The list of results, each with `title`, `url` and a snippet; anything else where there is none."""
        ...


@dataclass(frozen=True, slots=True)
class SearxNg:
    endpoint: Url
    name: str = "SearXNG"

    def request(self, query: WebQuery, /) -> HttpRequest:
        base = self.endpoint.target.partition("?")[0].rstrip("/").removesuffix("/search")
        asked = urlencode({"q": query.with_sites, "format": "json"})
        return _asking(self.endpoint, f"{base}/search?{asked}")

    def rows(self, answer: Any, /) -> Any:
        return answer["results"]


@dataclass(frozen=True, slots=True)
class Brave:
    key: str
    endpoint: Url = BRAVE
    name: str = "Brave Search"

    def request(self, query: WebQuery, /) -> HttpRequest:
        asked = urlencode({"q": query.with_sites, "count": 2 * MOST_RESULTS})
        return _asking(self.endpoint, f"{self.endpoint.target}?{asked}", ("X-Subscription-Token", self.key))

    def rows(self, answer: Any, /) -> Any:
        return answer.get("web", {"results": []})["results"]


@dataclass(frozen=True, slots=True)
class Tavily:
    key: str
    endpoint: Url = TAVILY
    name: str = "Tavily"

    def request(self, query: WebQuery, /) -> HttpRequest:
        asked = {
            "query": query.words,
            "max_results": MOST_RESULTS,
            "include_domains": query.allowed,
            "exclude_domains": query.blocked,
        }
        headers = (("Authorization", f"Bearer {self.key}"), ("Content-Type", "application/json"))
        return _asking(self.endpoint, self.endpoint.target, *headers, method="POST", body=json.dumps(asked).encode())

    def rows(self, answer: Any, /) -> Any:
        return answer["results"]


def backend_from(environ: Mapping[str, str]) -> Backend | None:
    """The first that is configured. Raises `WebSearchFailed` for a URL that is none.

    >>> backend_from({"BRAVE_API_KEY": "k"}).name, backend_from({})
    ('Brave Search', None)
    """
    address, brave, tavily = (
        environ.get(name, "").strip() for name in ("FERRULE_SEARCH_URL", "BRAVE_API_KEY", "TAVILY_API_KEY")
    )
    if address:
        try:
            return SearxNg(Url.parse(address))
        except BadUrl as error:
            raise WebSearchFailed(f"FERRULE_SEARCH_URL is no URL of a search service: {error}") from None
    return Brave(brave) if brave else Tavily(tavily) if tavily else None


@dataclass(slots=True, kw_only=True)
class WebSearches:
    """The searches of one session, which are counted."""

    backend: Backend | None = None
    wrong: str = NO_SEARCH
    """Why there is none, where there is none."""
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)
    """Names the proxies."""
    tls: Tls = field(default_factory=Tls)
    seconds: float = SECONDS
    most: int = MOST_SEARCHES
    made: int = 0

    @classmethod
    def configured(cls, environ: Mapping[str, str]) -> WebSearches:
        try:
            return cls(backend=backend_from(environ), environ=environ)
        except WebSearchFailed as error:
            return cls(wrong=str(error), environ=environ)

    async def hits(self, query: WebQuery) -> tuple[Hit, ...]:
        """The best results that the query admits. Raises `WebSearchFailed`."""
        if self.backend is None:
            raise WebSearchFailed(f"Nothing can be searched: {self.wrong}.")
        if self.made >= self.most:
            raise WebSearchFailed(f"This session has made its {self.most} searches. Work with what they found.")
        self.made += 1
        return _hits(self.backend, await self._answer(self.backend, query), query.admits)

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
            raise WebSearchFailed(f"{backend.name} could not be asked: {error}") from None
        try:
            return json.loads(body)
        except (ValueError, RecursionError):
            hint = " Its settings must list json among the formats." if isinstance(backend, SearxNg) else ""
            raise WebSearchFailed(f"{backend.name} answered what is no JSON.{hint}") from None


def _asking(
    endpoint: Url, target: str, *headers: tuple[str, str], method: str = "GET", body: bytes = b""
) -> HttpRequest:
    return HttpRequest(
        url=Url(endpoint.scheme, endpoint.host, endpoint.port, target),
        method=method,
        headers=(("Accept", "application/json"), *headers),
        body=body,
        timeouts=Timeouts(connect=10.0, first_byte=SECONDS, idle=SECONDS),
        most_body=MOST_BYTES,
    )


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


def _hits(backend: Backend, answer: Any, admits: Callable[[str], bool]) -> tuple[Hit, ...]:
    try:
        rows = backend.rows(answer)
    except (KeyError, TypeError, AttributeError):
        rows = None
    if not isinstance(rows, list):
        raise WebSearchFailed(f"{backend.name} answered something that holds no results.")
    hits = [_hit(cast(Mapping[str, Any], row)) for row in cast(list[Any], rows) if isinstance(row, dict)]
    return tuple({hit.url: hit for hit in hits if hit.url and admits(hit.url)}.values())[:MOST_RESULTS]


def _hit(row: Mapping[str, Any]) -> Hit:
    snippet = row.get("content") or row.get("description") or ""
    return Hit(_plain(row.get("title")) or "(no title)", str(row.get("url") or ""), _plain(snippet)[:LONGEST_SNIPPET])


def _plain(text: Any) -> str:
    """Without markup, on one line.

    >>> _plain("a <strong>b</strong> &amp; c < d")
    'a b & c < d'
    """
    return " ".join(unescape(_TAG.sub("", text)).split()) if isinstance(text, str) else ""


def domain_of(text: str) -> str:
    """The domain that somebody means, as hosts are compared. Raises `Refused`.

    >>> domain_of("https://Example.com/docs"), domain_of("*.example.com")
    ('example.com', 'example.com')
    """
    bare = re.sub(r"^[A-Za-z][A-Za-z0-9+.-]*://", "", text.strip()).removeprefix("*.")
    return parse_url(f"https://{bare}").host


def _within(host: str, domains: Iterable[str]) -> bool:
    return any(host == domain or host.endswith(f".{domain}") for domain in domains)
