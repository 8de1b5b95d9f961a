"""A GET that goes where the guard says, and stops at its limits.

What came before a limit or a lost connection is kept, with a note on what is missing.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import field
from http import HTTPStatus
from typing import TYPE_CHECKING, Final, TypeAlias

from ..._version import __version__
from ...core.values import named_value, plain_value
from ..http.message import HttpError, HttpRequest, Timeouts
from ..http.tls import Tls
from ..http.urls import Url
from .url_guard import (
    MOST_REDIRECTS,
    HandedBack,
    LocalHosts,
    Refused,
    admit_url,
    check_addresses,
    follow_redirect,
    no_local_hosts,
    shorten_url,
)

if TYPE_CHECKING:
    from ..http.http_client import HttpClient, HttpResponse

SECONDS: Final = 30.0
MOST_BYTES: Final = 10 << 20
BODY_SHARE: Final = 0.95
"""Of the time for all of it: a body ends a little before the whole is given up, so that what came of it is kept."""
FINISHING_SECONDS: Final = 0.5
"""How long the rest of a redirect is worth waiting for, so that the next hop needs no new connection."""
REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
HEADERS: Final = (
    ("User-Agent", f"Mozilla/5.0 (compatible; ferrule/{__version__})"),
    ("Accept", "text/markdown, text/html;q=0.9, text/plain;q=0.9, application/json;q=0.9, */*;q=0.5"),
    ("Accept-Language", "en, *;q=0.5"),
)

Resolver: TypeAlias = Callable[[str, int], Awaitable[Sequence[str]]]
"""The addresses of a host, asked once for each hop."""


class FetchFailed(Exception):
    """Nothing could be fetched. The message says what happened and what to do."""


@plain_value
class Body:
    """What a URL gave."""

    url: str
    """Where it came from in the end."""
    status: int
    content_type: str
    data: bytes
    missing: str = ""
    """Why the end is missing, where it is."""


@plain_value
class Moved:
    """An answer that points to another place, which was not asked."""

    url: str
    status: int
    location: str
    why: str


async def addresses_of(host: str, port: int) -> Sequence[str]:
    """As the system resolves the name. Raises `OSError`."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return tuple(dict.fromkeys(str(address[0]) for *_, address in found))


@named_value
class Fetcher:
    local_hosts: LocalHosts = no_local_hosts
    resolve: Resolver = addresses_of
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)
    """Names the proxies. A proxy gets the address that was checked, not the name."""
    tls: Tls = field(default_factory=Tls)
    seconds: float = SECONDS
    """For all of it, redirects included."""
    most_bytes: int = MOST_BYTES

    async def fetch(self, url: str) -> Body | Moved:
        """Raises `FetchFailed`."""
        try:
            async with asyncio.timeout(self.seconds), open_client(self.environ, self.tls) as client:
                return await self._fetch_one(client, admit_url(url, self.local_hosts))
        except Refused as error:
            raise FetchFailed(f"{shorten_url(url)} {error}.") from None
        except TimeoutError:
            raise FetchFailed(f"{shorten_url(url)} gave no answer within {self.seconds:g} seconds.") from None
        except HttpError as error:
            raise FetchFailed(f"{shorten_url(url)} could not be fetched: {error}") from None

    async def _fetch_one(self, client: HttpClient, place: Url) -> Body | Moved:
        deadline = asyncio.get_running_loop().time() + BODY_SHARE * self.seconds
        for _ in range(MOST_REDIRECTS + 1):
            async with AsyncExitStack() as stack:
                response = await self._answer(client, place, stack)
                location = response.headers.get("location")
                if response.status not in REDIRECTS or not location:
                    return await self._body(response, place, deadline)
                await response.finish(FINISHING_SECONDS)
            hop = follow_redirect(place, _as_text(location), self.local_hosts)
            if isinstance(hop, HandedBack):
                return Moved(str(place), response.status, hop.location, hop.why)
            place = hop.place
        raise Refused(f"redirects more than {MOST_REDIRECTS} times")

    async def _answer(self, client: HttpClient, place: Url, stack: AsyncExitStack) -> HttpResponse:
        """From the first of the host's addresses that accepts a connection; all of them have been checked."""
        addresses = check_addresses(place, await self._resolve(place), self.local_hosts)
        failure: HttpError | None = None
        for address in addresses:
            request = HttpRequest(
                url=place,
                headers=HEADERS,
                address=str(address),
                timeouts=Timeouts(connect=min(10.0, self.seconds), first_byte=self.seconds, idle=self.seconds),
                most_body=self.most_bytes,
            )
            try:
                return await stack.enter_async_context(client.send(request))
            except HttpError as error:
                if error.kind != "connect" and not (error.kind == "timeout" and len(addresses) > 1):
                    raise
                failure = error
        assert failure is not None, "there is at least one address"
        raise failure

    async def _resolve(self, place: Url) -> Sequence[str]:
        if place.address is not None:
            return (place.host,)
        try:
            return await self.resolve(place.host, place.port)
        except (OSError, UnicodeError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise Refused(f"has a host that cannot be found: {place.host} ({reason})") from None

    async def _body(self, response: HttpResponse, place: Url, deadline: float) -> Body:
        if not 200 <= response.status < 300:
            raise FetchFailed(_describe_status(place, response))
        data = bytearray()
        missing = ""
        try:
            async with asyncio.timeout_at(deadline):
                async for chunk in response.chunks():
                    data += chunk
        except TimeoutError:
            missing = f"its end did not come within {self.seconds:g} seconds"
        except HttpError as error:
            lost = error.kind != "too_large"
            missing = (
                "the connection was lost before its end" if lost else f"it has more than {self.most_bytes:,} bytes"
            )
        if not data:
            raise FetchFailed(f"{place} answered {response.status}, and {missing or 'its answer is empty'}.")
        return Body(str(place), response.status, response.headers.get("content-type"), bytes(data), missing)


def open_client(environ: Mapping[str, str], tls: Tls) -> HttpClient:
    from ..http.http_client import HttpClient

    return HttpClient(environ, tls=tls)


def _as_text(header: str) -> str:
    """A header's bytes are Latin-1 by the letter and UTF-8 in practice."""
    try:
        return header.encode("latin-1").decode("utf-8")
    except UnicodeError:
        return header


def _describe_status(place: Url, response: HttpResponse) -> str:
    try:
        name = f" {HTTPStatus(response.status).phrase}"
    except ValueError:
        name = ""
    told = f"{place} answered {response.status}{name}."
    match response.status:
        case 401 | 402 | 403 | 407 | 451:
            return f"{told} It is not open to everyone; look for another source."
        case 404 | 410:
            return f"{told} The page does not exist; check the URL, or search for it."
        case 429 | 503:
            after = response.headers.get("retry-after").strip()
            wait = f"in {after} seconds" if after.isdecimal() and len(after) < 6 else "later"
            return f"{told} Try again {wait}."
        case status if status >= 500:
            return f"{told} This is an error of the server; try again later."
        case _:
            return told
