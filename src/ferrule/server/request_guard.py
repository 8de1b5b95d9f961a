"""Who may use the HTTP server: requests for this host, not from a foreign page, and with the token.

A page in a browser can send requests to any name that it can make lead here
(DNS rebinding). Its requests name a foreign host, or a foreign origin.
"""

from __future__ import annotations

import hmac
import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import urlsplit


@dataclass(frozen=True, slots=True)
class Turned:
    """A refused request: the status and a message."""

    status: int
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestGuard:
    host: str
    """The host that the server listens on."""
    port: int
    names: tuple[str, ...] = ()
    """Additional host names of the server."""
    token: str | None = None

    def turns_away(self, headers: Iterable[tuple[bytes, bytes]]) -> Turned | None:
        """`None` for a request that may pass. The names of headers are in lower case."""
        given: dict[str, list[str]] = {}
        for name, value in headers:
            given.setdefault(name.decode("latin-1"), []).append(value.decode("latin-1"))
        hosts, origins = given.get("host", []), given.get("origin", [])
        if len(hosts) != 1 or not self._is_ours(hosts[0], port=self.port):
            return Turned(421, f"The Host header must name this server. Use {self.authority}, or --allowed-host.")
        if len(origins) > 1 or any(not self._is_own_origin(origin) for origin in origins):
            return Turned(403, "The Origin header names a foreign page.")
        if self.token is not None and not self._is_known(given.get("authorization", [])):
            return Turned(401, "The Authorization header must be Bearer with the server's token.")
        return None

    @property
    def authority(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    def _is_ours(self, authority: str, *, port: int | None) -> bool:
        """Whether it names this server; additional names may have any port, as through a proxy."""
        split = _split(authority)
        if split is None:
            return False
        name, given_port = split
        if name in {known.lower() for known in self.names}:
            return True
        if port is not None and (given_port or 80) != port:
            return False
        if name == self.host.lower() or (is_loopback(self.host) and is_loopback(name)):
            return True
        return _is_any(self.host) and (_is_address(name) or is_loopback(name))

    def _is_own_origin(self, origin: str) -> bool:
        parts = urlsplit(origin)
        return parts.scheme in ("http", "https") and self._is_ours(parts.netloc, port=None)

    def _is_known(self, authorization: list[str]) -> bool:
        assert self.token is not None
        scheme, _, token = authorization[0].partition(" ") if len(authorization) == 1 else ("", "", "")
        same = hmac.compare_digest(token.strip().encode("utf-8", "surrogateescape"), self.token.encode())
        return same and scheme.lower() == "bearer"


def is_loopback(host: str) -> bool:
    """
    >>> is_loopback("localhost"), is_loopback("127.0.0.2"), is_loopback("::1"), is_loopback("0.0.0.0")
    (True, True, True, False)
    """
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _is_any(host: str) -> bool:
    return host in ("0.0.0.0", "::")


def _is_address(name: str) -> bool:
    """A literal address cannot be redirected by a name server."""
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _split(authority: str) -> tuple[str, int | None] | None:
    """Host in lower case, without brackets, and port.

    >>> _split("[::1]:80"), _split("LOCALHOST"), _split("a@b:1"), _split("a:b")
    (('::1', 80), ('localhost', None), None, None)
    """
    try:
        parts = urlsplit(f"//{authority}")
        if parts.hostname is None or "@" in authority or parts.path or parts.query or parts.fragment:
            return None
        return parts.hostname, parts.port
    except ValueError:
        return None
