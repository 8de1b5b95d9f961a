"""An http(s) URL, parsed strictly: what programs read in different ways is refused and not guessed at.

What is checked here is what is connected to.
"""

from __future__ import annotations

import re
import unicodedata
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Final
from urllib.parse import quote

from ...core.values import plain_value

PORTS: Final = {"http": 80, "https": 443}
LONGEST: Final = 8_000
LONGEST_HOST: Final = 253
_UNFIT: Final = re.compile(r"[\x00-\x20\x7f\\]")
_PARTS: Final = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*):(?P<slashes>/*)(?P<authority>[^/?#\\]*)(?P<rest>.*)")
_AUTHORITY: Final = re.compile(r"(\[[^\[\]]*\]|[^:\[\]]*)(?::([0-9]{0,5}))?")
_LABEL: Final = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
_NUMBER: Final = re.compile(r"[0-9]+|0x[0-9a-f]*")
_QUAD: Final = re.compile(r"(?:(?:0|[1-9][0-9]{0,2})\.){3}(?:0|[1-9][0-9]{0,2})")
_AS_IT_IS: Final = "!$%&'()*+,-./:;=?@_~|[]^{}"
_UNSEEN: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Zl", "Zp"})
"""Categories of invisible characters, and of code points that are not characters."""


class BadUrl(ValueError):
    """The URL is not used. The message completes a sentence that begins with the URL."""


@plain_value
class Url:
    scheme: str
    host: str
    """In lower case, in ASCII and without a dot at its end; an address in its usual spelling, without brackets."""
    port: int
    target: str
    """Path and query, as they are sent in the request."""
    has_credentials: bool = False
    """Whether it was written with a user name or a password, which are never sent."""

    @classmethod
    def parse(cls, text: str) -> Url:
        """Of a service, as somebody configures it. Raises `BadUrl`.

        >>> Url.parse("http://LocalHost:8080/a b?q=ü#there")
        Traceback (most recent call last):
        ...
        ferrule.host.http.urls.BadUrl: contains spaces, control characters or backslashes
        >>> str(Url.parse("http://LocalHost:8080/a?q=ü#there"))
        'http://localhost:8080/a?q=%C3%BC'
        """
        if _UNFIT.search(text):
            raise BadUrl("contains spaces, control characters or backslashes")
        url = parse_url(text)
        if url.has_credentials:
            raise BadUrl("contains a user name or a password")
        return url

    @property
    def address(self) -> IPv4Address | IPv6Address | None:
        """What the host is, where it is an address."""
        return ip_address(self.host) if ":" in self.host or _QUAD.fullmatch(self.host) else None

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


def parse_url(text: str) -> Url:
    """As a model, a page or a person writes it. Raises `BadUrl`.

    >>> str(parse_url("HTTPS://Example.COM:443/a b#c")), parse_url("http://例え.jp").host
    ('https://example.com/a%20b', 'xn--r8jz45g.jp')
    """
    text = text.strip(" \t\r\n")
    if len(text) > LONGEST:
        raise BadUrl(f"is longer than {LONGEST:,} characters")
    if has_unseen(text):
        raise BadUrl("contains a character that is not visible")
    parts = _PARTS.fullmatch(text)
    if parts is None:
        raise BadUrl("is not a URL. Write one that begins with https://")
    scheme = parts["scheme"].lower()
    if scheme not in PORTS:
        raise BadUrl(f"is a URL of the kind {scheme}:, and only http: and https: are supported")
    if parts["slashes"] != "//":
        raise BadUrl(f"does not begin with {scheme}:// and a host")
    if parts["rest"].startswith(("\\", "?@", "#@")):
        raise BadUrl("is ambiguous about where its host ends")
    credentials, at, rest = parts["authority"].rpartition("@")
    if "@" in credentials or "[" in credentials:
        raise BadUrl("is ambiguous about where its host begins")
    authority = _AUTHORITY.fullmatch(rest)
    if authority is None:
        raise BadUrl("has an invalid host or port")
    port = int(authority[2]) if authority[2] else PORTS[scheme]
    if not 0 < port < 65_536:
        raise BadUrl(f"has an invalid port: {port}")
    return Url(scheme, parse_host(authority[1]), port, _target(parts["rest"]), bool(at))


def has_unseen(text: str) -> bool:
    return any(unicodedata.category(character) in _UNSEEN for character in text)


def bracket_host(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def parse_host(text: str) -> str:
    """As `Url.host` has it. Raises `BadUrl`."""
    if text.startswith("["):
        return _v6(text[1:-1])
    name = _ascii_name(text)
    labels = name.split(".")
    if is_number(labels[-1]):
        return _v4(name)
    if not name or len(name) > LONGEST_HOST or not all(_LABEL.fullmatch(label) for label in labels):
        raise BadUrl("has an invalid host name")
    return name


def is_number(label: str) -> bool:
    """Whether a host that ends with this label is read as an address."""
    return _NUMBER.fullmatch(label) is not None


def _v6(text: str) -> str:
    try:
        address = IPv6Address(text)
    except ValueError:
        raise BadUrl("has an invalid IPv6 address between its brackets") from None
    if address.scope_id is not None:
        raise BadUrl("has an address that is valid on one network interface only")
    return str(address.ipv4_mapped or address)


def _v4(name: str) -> str:
    """Four plain decimal numbers: programs read every other spelling in their own way."""
    if _QUAD.fullmatch(name):
        try:
            return str(IPv4Address(name))
        except ValueError:
            pass
    raise BadUrl("has an IPv4 address in an unusual form. Write it as four decimal numbers")


def _ascii_name(text: str) -> str:
    """In the letters that go over the wire; what only looks like another letter becomes that letter first."""
    if len(text) > LONGEST_HOST:
        raise BadUrl("has a host name that is too long")
    if not text.isascii():
        try:
            text = text.encode("idna").decode("ascii")
        except UnicodeError:
            raise BadUrl("has a host name with invalid characters") from None
    return text.lower().removesuffix(".")


def _target(rest: str) -> str:
    path = rest.partition("#")[0]
    encoded = quote(path, safe=_AS_IT_IS)
    return encoded if encoded.startswith("/") else f"/{encoded}"
