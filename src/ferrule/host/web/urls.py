"""A URL taken apart, strictly: what programs read in different ways is refused and not guessed at."""

from __future__ import annotations

import re
import unicodedata
from ipaddress import IPv4Address, IPv6Address
from typing import Final
from urllib.parse import quote, unquote, urljoin

from ...core.values import plain_value
from ..http.urls import PORTS, Url
from .addresses import LOCAL_NAMES, Address, AddressReach, is_local_name, reach_of

LONGEST: Final = 8_000
LONGEST_HOST: Final = 253
_PARTS: Final = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*):(?P<slashes>/*)(?P<authority>[^/?#\\]*)(?P<rest>.*)")
_LABEL: Final = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
_NUMBER: Final = re.compile(r"[0-9]+|0x[0-9a-f]*")
_QUAD: Final = re.compile(r"(?:(?:0|[1-9][0-9]{0,2})\.){3}(?:0|[1-9][0-9]{0,2})")
_AS_IT_IS: Final = "!$%&'()*+,-./:;=?@_~|[]^{}"
_BEGINNING: Final = re.compile(r"\s*https?:[/\\]*(?P<authority>[^/]*)", re.IGNORECASE)
_BETWEEN_HOSTS: Final = re.compile(r"[\x00-\x20@\\?#,;&]+")
_PORT: Final = re.compile(r"(?<![:\[]):[0-9]*\Z")
_UNSEEN: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Zl", "Zp"})
"""Categories of invisible characters, and of code points that are not characters."""


class Refused(Exception):
    """The URL is not fetched. The message completes a sentence that begins with the URL."""


class Unclear(Refused):
    """The URL is refused for its form alone: programs may read different hosts in it, none of which leads inside."""

    def __init__(self, message: str, hosts: tuple[str, ...]) -> None:
        super().__init__(message)
        self.hosts = hosts


@plain_value
class WebAddress:
    """What a URL names."""

    url: Url
    """Its host is in lower case, in ASCII and without a dot at its end; an address is in its usual spelling."""
    address: Address | None = None
    """What the host is, where it is an address."""
    has_credentials: bool = False

    @property
    def host(self) -> str:
        return self.url.host

    @property
    def is_local(self) -> bool:
        """Whether the host's name alone leads inside."""
        return self.address is None and is_local_name(self.host)

    def over_https(self) -> WebAddress:
        url = self.url
        if url.scheme == "https":
            return self
        port = PORTS["https"] if url.port == PORTS["http"] else url.port
        return WebAddress(Url("https", url.host, port, url.target), self.address, self.has_credentials)

    def __str__(self) -> str:
        return str(self.url)


def parse_url(text: str) -> WebAddress:
    """Raises `Refused`.

    >>> str(parse_url("HTTPS://Example.COM:443/a b#c")), parse_url("http://例え.jp").host
    ('https://example.com/a%20b', 'xn--r8jz45g.jp')
    """
    text = text.strip(" \t\r\n")
    if len(text) > LONGEST:
        raise Refused(f"is longer than {LONGEST:,} characters")
    if _holds_unseen(text):
        raise Refused("contains a character that is not visible")
    parts = _PARTS.fullmatch(text)
    if parts is None:
        raise Refused("is not a URL. Write one that begins with https://")
    scheme = parts["scheme"].lower()
    if scheme not in PORTS:
        raise Refused(f"is a URL of the kind {scheme}:, and only http: and https: are fetched")
    if parts["slashes"] != "//":
        raise Refused(f"does not begin with {scheme}:// and a host")
    if parts["rest"].startswith(("\\", "?@", "#@")):
        raise Refused("is ambiguous about where its host ends")
    credentials, at, rest = parts["authority"].rpartition("@")
    if "@" in credentials or "[" in credentials:
        raise Refused("is ambiguous about where its host begins")
    text_of_host, port = _host_and_port(rest)
    host, address = _host(text_of_host)
    return WebAddress(Url(scheme, host, port or PORTS[scheme], _target(parts["rest"])), address, bool(at))


def hosts_in(text: str) -> tuple[str, ...] | None:
    """The hosts that some program may read in a web address of any form; `None` if one of them leads inside.

    >>> hosts_in("https://evil.com\\\\@github.com/"), hosts_in("http://example.com@0x7f.1/")
    (('evil.com', 'github.com'), None)
    """
    found = _BEGINNING.match(unquote(text))
    pieces = [piece for piece in _BETWEEN_HOSTS.split(found["authority"] if found else "") if piece]
    hosts: list[str] = []
    for piece in pieces:
        try:
            host, address = _host(_PORT.sub("", piece))
        except Refused:
            if _NUMBER.fullmatch(_PORT.sub("", piece).lower().rstrip(".").rpartition(".")[2]):
                return None
            continue
        if address is None and "." not in host and host not in LOCAL_NAMES and len(pieces) > 1:
            continue  # a name or a password may be any word
        if is_local_name(host) if address is None else reach_of(address) is not AddressReach.PUBLIC:
            return None
        hosts.append(host)
    return tuple(dict.fromkeys(hosts)) or None


def join_url(base: WebAddress, location: str) -> WebAddress:
    """Where a redirect leads. Raises `Refused`."""
    if _holds_unseen(location):  # before they are joined, which drops some of these
        raise Refused("contains a character that is not visible")
    try:
        there = urljoin(str(base), location)
    except ValueError as error:
        raise Refused(f"is not a URL ({error})") from None
    return parse_url(there)


def _holds_unseen(text: str) -> bool:
    return any(unicodedata.category(character) in _UNSEEN for character in text)


def _host_and_port(authority: str) -> tuple[str, int | None]:
    found = re.fullmatch(r"(\[[^\[\]]*\]|[^:\[\]]*)(?::([0-9]{0,5}))?", authority)
    if found is None:
        raise Refused("has an invalid host or port")
    port = int(found[2]) if found[2] else None
    if port is not None and not 0 < port < 65_536:
        raise Refused(f"has an invalid port: {port}")
    return found[1], port


def _host(text: str) -> tuple[str, Address | None]:
    if text.startswith("["):
        address = _v6(text[1:-1])
        address = address.ipv4_mapped or address
        return str(address), address
    name = _ascii_name(text)
    labels = name.split(".")
    if _NUMBER.fullmatch(labels[-1]):
        address = _v4(name)
        return str(address), address
    if not name or len(name) > LONGEST_HOST or not all(_LABEL.fullmatch(label) for label in labels):
        raise Refused("has an invalid host name")
    return name, None


def _v6(text: str) -> IPv6Address:
    try:
        address = IPv6Address(text)
    except ValueError:
        raise Refused("has an invalid IPv6 address between its brackets") from None
    if address.scope_id is not None:
        raise Refused("has an address that is valid on one network interface only")
    return address


def _v4(name: str) -> IPv4Address:
    """Four plain decimal numbers: programs read every other spelling in their own way."""
    if _QUAD.fullmatch(name):
        try:
            return IPv4Address(name)
        except ValueError:
            pass
    raise Refused("has an IPv4 address in an unusual form. Write it as four decimal numbers")


def _ascii_name(text: str) -> str:
    """In the letters that go over the wire; what only looks like another letter becomes that letter first."""
    if len(text) > LONGEST_HOST:
        raise Refused("has a host name that is too long")
    if not text.isascii():
        try:
            text = text.encode("idna").decode("ascii")
        except UnicodeError:
            raise Refused("has a host name with invalid characters") from None
    return text.lower().removesuffix(".")


def _target(rest: str) -> str:
    path = rest.partition("#")[0]
    encoded = quote(path, safe=_AS_IT_IS)
    return encoded if encoded.startswith("/") else f"/{encoded}"
