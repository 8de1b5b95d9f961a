"""The known search services: how each is asked, and where its answer holds the results."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from html import unescape
from typing import Any, Final, cast
from urllib.parse import urlencode

from ...core.values import plain_value
from ..http.message import HttpRequest, Timeouts
from ..http.urls import BadUrl, Url
from .search_variables import SEARCH_VARIABLES
from .searching import MOST_RESULTS, SECONDS, Backend, Hit, WebQuery, WebSearches, WebSearchFailed

MOST_BYTES: Final = 4 << 20
LONGEST_SNIPPET: Final = 500
KEYED: Final = "Check that its key is still valid."
_TAG: Final = re.compile(r"</?[A-Za-z][^<>]{0,200}>")

BRAVE: Final = Url("https", "api.search.brave.com", 443, "/res/v1/web/search")
TAVILY: Final = Url("https", "api.tavily.com", 443, "/search")


@plain_value
class SearxNg:
    endpoint: Url
    name: str = "SearXNG"
    advice: str = "Its settings must list json among the formats."

    def request(self, query: WebQuery, /) -> HttpRequest:
        base = self.endpoint.target.partition("?")[0].rstrip("/").removesuffix("/search")
        asked = urlencode({"q": query.with_sites, "format": "json"})
        return _asking(self.endpoint, f"{base}/search?{asked}")

    def hits(self, answer: Any, /) -> Sequence[Hit]:
        return _hits(answer["results"])


@plain_value
class Brave:
    key: str
    endpoint: Url = BRAVE
    name: str = "Brave Search"
    advice: str = KEYED

    def request(self, query: WebQuery, /) -> HttpRequest:
        asked = urlencode({"q": query.with_sites, "count": 2 * MOST_RESULTS})
        return _asking(self.endpoint, f"{self.endpoint.target}?{asked}", ("X-Subscription-Token", self.key))

    def hits(self, answer: Any, /) -> Sequence[Hit]:
        return _hits(answer.get("web", {"results": []})["results"])


@plain_value
class Tavily:
    key: str
    endpoint: Url = TAVILY
    name: str = "Tavily"
    advice: str = KEYED

    def request(self, query: WebQuery, /) -> HttpRequest:
        asked = {
            "query": query.words,
            "max_results": MOST_RESULTS,
            "include_domains": query.allowed,
            "exclude_domains": query.blocked,
        }
        headers = (("Authorization", f"Bearer {self.key}"), ("Content-Type", "application/json"))
        return _asking(self.endpoint, self.endpoint.target, *headers, method="POST", body=json.dumps(asked).encode())

    def hits(self, answer: Any, /) -> Sequence[Hit]:
        return _hits(answer["results"])


def load_searches(environ: Mapping[str, str]) -> WebSearches:
    """The searches of a session that has this environment."""
    try:
        return WebSearches(backend=backend_from(environ), environ=environ)
    except WebSearchFailed as error:
        return WebSearches(wrong=str(error), environ=environ)


def backend_from(environ: Mapping[str, str]) -> Backend | None:
    """The first that is configured. Raises `WebSearchFailed` for an invalid URL.

    >>> backend_from({"BRAVE_API_KEY": "k"}).name, backend_from({})
    ('Brave Search', None)
    """
    address, brave, tavily = (environ.get(name, "").strip() for name in SEARCH_VARIABLES)
    if address:
        try:
            return SearxNg(Url.parse(address))
        except BadUrl as error:
            raise WebSearchFailed(f"FERRULE_SEARCH_URL is not a usable URL: it {error}") from None
    return Brave(brave) if brave else Tavily(tavily) if tavily else None


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


def _hits(rows: Any) -> Sequence[Hit]:
    """Rows of another form are skipped."""
    if not isinstance(rows, list):
        raise TypeError
    return [_hit(cast(Mapping[str, Any], row)) for row in cast(list[Any], rows) if isinstance(row, dict)]


def _hit(row: Mapping[str, Any]) -> Hit:
    url, snippet = row.get("url"), row.get("content") or row.get("description")
    return Hit(
        _plain(row.get("title")) or "(no title)",
        url.strip() if isinstance(url, str) else "",
        _plain(snippet)[:LONGEST_SNIPPET],
    )


def _plain(text: Any) -> str:
    """Without markup, on one line.

    >>> _plain("a <strong>b</strong> &amp; c < d")
    'a b & c < d'
    """
    return " ".join(unescape(_TAG.sub("", text)).split()) if isinstance(text, str) else ""
