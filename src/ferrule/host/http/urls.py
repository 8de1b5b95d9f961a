"""An http(s) URL, read strictly: what is checked here is what is connected to."""

from __future__ import annotations

import re
from urllib.parse import quote, urlsplit

from ...core.values import plain_value

PORTS = {"http": 80, "https": 443}
_UNFIT = re.compile(r"[\x00-\x20\x7f\\]")
_HOST = re.compile(r"[a-z0-9._-]+|[0-9a-f:.]+")
_KEPT = "!#$%&'()*+,/:;=?@[]~"


class BadUrl(ValueError):
    """Says what is wrong with the URL, as the end of a sentence."""


@plain_value
class Url:
    scheme: str
    host: str
    """In lower case, in ASCII; an IPv6 address without its brackets."""
    port: int
    target: str
    """Path and query, as they are sent in the request."""

    @classmethod
    def parse(cls, text: str) -> Url:
        """Raises `BadUrl`.

        >>> Url.parse("http://LocalHost:8080/a b?q=ü#there")
        Traceback (most recent call last):
        ...
        ferrule.host.http.urls.BadUrl: it has spaces, control characters or backslashes
        >>> str(Url.parse("http://LocalHost:8080/a?q=ü#there"))
        'http://localhost:8080/a?q=%C3%BC'
        """
        if _UNFIT.search(text):
            raise BadUrl("it has spaces, control characters or backslashes")
        try:
            parts = urlsplit(text)
            port = parts.port
        except ValueError as error:
            raise BadUrl(f"it cannot be read ({error})") from None
        if parts.scheme not in PORTS:
            raise BadUrl("it does not begin with http:// or https://")
        if "@" in parts.netloc:
            raise BadUrl("it holds a user name or a password")
        if port == 0:
            raise BadUrl("port 0 is not valid")
        path = quote(parts.path, safe=_KEPT) or "/"
        query = "?" + quote(parts.query, safe=_KEPT) if parts.query else ""
        return cls(parts.scheme, _ascii_host(parts.hostname or ""), port or PORTS[parts.scheme], path + query)

    @property
    def authority(self) -> str:
        """As in the Host header: the port only where it is not the scheme's own."""
        host = bracket_host(self.host)
        return host if self.port == PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def origin(self) -> str:
        return f"{self.scheme}://{self.authority}"

    def __str__(self) -> str:
        return self.origin + self.target


def bracket_host(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _ascii_host(host: str) -> str:
    if not host.isascii():
        try:
            host = host.encode("idna").decode("ascii")
        except UnicodeError:
            raise BadUrl(f'"{host}" is not a host name') from None
    host = host.lower()
    if not _HOST.fullmatch(host):
        raise BadUrl(f'"{host}" is not a host name' if host else "it names no host")
    return host
