"""A hook that is a URL: the event is posted to it, and its answer is JSON.

Only an answer with a status of success decides anything. No redirect is
followed: only the URL in the settings was trusted.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from ..core.values import named_value
from ..host.http.http_client import HttpClient
from ..host.http.message import HttpError, HttpRequest, Timeouts
from ..host.http.urls import BadUrl, Url
from .hook import Payload, Service, ServiceFailed
from .hook_loading import HookError
from .payloads import encode_payload

LARGEST: Final = 1 << 20
_LONG: Final = 3600.0
_TIMEOUTS: Final = Timeouts(connect=15.0, first_byte=_LONG, idle=_LONG)
"""The hook's own limit applies."""
_VARIABLE: Final = re.compile(r"\$(?:\{(\w+)\}|(\w+))", re.ASCII)


@named_value
class Addresses:
    """What the settings say about URLs, if anything."""

    allowed: tuple[str, ...] | None = None
    """Where events may be posted; `*` matches any text."""
    variables: frozenset[str] | None = None
    """Which variables of the environment may leave in a header."""


def posting(said: Mapping[str, Any], addresses: Addresses, environment: Mapping[str, str] = os.environ) -> Service:
    """Makes a hook from its entry in a file. Raises `HookError`."""
    try:
        url = Url.parse(said["url"])
    except BadUrl as error:
        raise HookError(f"its `url` cannot be used: it {error}.") from None
    if addresses.allowed is not None and not _is_among(str(url), addresses.allowed):
        raise HookError(f"{url} is not among `allowedHttpHookUrls`.")
    variables = frozenset[str](said.get("allowedEnvVars", ()))
    known = variables if addresses.variables is None else variables & addresses.variables
    headers = tuple(
        (name, _fill(value, {one: environment.get(one, "") for one in known}))
        for name, value in said.get("headers", {}).items()
    )
    for name, value in headers:
        if not re.fullmatch(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", name) or re.search(r"[\r\n\0]", value):
            raise HookError(f"its header `{name}` cannot be sent.")

    async def ask(payload: Payload) -> str:
        request = HttpRequest(
            url=url,
            method="POST",
            headers=(("content-type", "application/json"), *headers),
            body=encode_payload(payload),
            timeouts=_TIMEOUTS,
            most_body=LARGEST,
        )
        try:
            async with HttpClient(environment) as client, client.send(request) as response:
                body = await response.read()
        except HttpError as error:
            raise ServiceFailed(str(error)) from None
        if not 200 <= response.status < 300:
            raise ServiceFailed(f"{url} answered with the status {response.status}")
        return body.decode("utf-8", "replace").removeprefix("\ufeff")

    return Service(f"POST {url} {headers}", ask)


def _is_among(url: str, patterns: Iterable[str]) -> bool:
    """
    >>> _is_among("https://a.example/hook", ["https://*.example/*"]), _is_among("https://b.test/", ["https://a*"])
    (True, False)
    """
    return any(re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), url) for pattern in patterns)


def _fill(value: str, known: Mapping[str, str]) -> str:
    """A variable that is not allowed becomes an empty string."""
    return _VARIABLE.sub(lambda found: known.get(found[1] or found[2], ""), value)
