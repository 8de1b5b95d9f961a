"""May a URL be fetched? Decided from its spelling and from what its host resolves to: no network, no disk.

A host is resolved once, every address it has must pass, and the connection goes to one of
those. Each hop of a redirect is judged anew; one that leaves the host is handed back.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from ipaddress import ip_address
from typing import Final, TypeAlias
from urllib.parse import unquote, urljoin

from ...core.values import plain_value
from ...core.verdicts import Behavior
from ..http.urls import PORTS, BadUrl, Url, has_unseen, is_number, parse_host, parse_url
from .addresses import LOCAL_NAMES, Address, AddressReach, is_local_name, reach_of

MOST_REDIRECTS: Final = 5
WEB_PORTS: Final = frozenset({80, 443})
SERVICE_PORTS: Final = frozenset(
    {
        1080, 1433, 1521, 1719, 1720, 1723, 2049, 2181, 2375, 2376, 2379, 2380, 3128, 3306, 3389, 3659, 4045, 4190,
        4369, 5060, 5061, 5432, 5672, 5900, 5984, 5985, 5986, 6000, 6379, 6443, 6566, 6665, 6666, 6667, 6668, 6669,
        6679, 6697, 9042, 9092, 9200, 9300, 10080, 10250, 11211, 27017,
    }
)  # fmt: skip
"""Ports above 1023 that are used for something other than web pages. Below, only those of the web are reached."""

_BEGINNING: Final = re.compile(r"\s*https?:[/\\]*(?P<authority>[^/]*)", re.IGNORECASE)
_BETWEEN_HOSTS: Final = re.compile(r"[\x00-\x20@\\?#,;&]+")
_PORT: Final = re.compile(r"(?<![:\[]):[0-9]*\Z")

LocalHosts: TypeAlias = Callable[[str], bool]
"""Whether a rule allows the host by its very name, so that it may be a local one."""


def no_local_hosts(host: str, /) -> bool:
    return False


OPENED_FOR_ADDRESSES: Final = frozenset({AddressReach.LOOPBACK, AddressReach.PRIVATE, AddressReach.LINK})
OPENED_FOR_LOCAL_NAMES: Final = frozenset({AddressReach.LOOPBACK, AddressReach.PRIVATE})
OPENED_FOR_NAMES: Final = frozenset({AddressReach.PRIVATE})
"""What a rule for a host opens. The owner of a public name can let it resolve to this machine; no rule means that."""


class Refused(BadUrl):
    """The URL is not fetched. The message completes a sentence that begins with the URL."""


class LeadsInside(Refused):
    """The URL is one of this machine or a private network, which only a rule opens."""


class Unclear(Refused):
    """The URL is refused for its form alone: programs may read different hosts in it, none of which leads inside."""

    def __init__(self, message: str, hosts: tuple[str, ...]) -> None:
        super().__init__(message)
        self.hosts = hosts


@plain_value
class Followed:
    """A redirect that stays with its host."""

    place: Url


@plain_value
class HandedBack:
    """A redirect that leaves its host, or changes how it is reached: whoever asked decides whether to go there."""

    location: str
    why: str


@plain_value
class Explained:
    """What would become of a fetch. `ASK` means a redirect that is handed back and not followed."""

    behavior: Behavior
    reason: str
    unclear: bool = False
    """Whether it is refused only because its host is ambiguous."""


def admit_url(text: str, local_hosts: LocalHosts = no_local_hosts) -> Url:
    """The URL to fetch, over https unless a rule names its local host. Raises `Refused`, which may be `Unclear`."""
    try:
        place = parse_url(text)
        if place.has_credentials:
            raise Refused("contains a user name or password. Leave that out")
    except BadUrl as error:
        hosts = hosts_in(text)
        raise Refused(str(error)) if hosts is None else Unclear(str(error), hosts) from None
    return _admit(place, local_hosts)


def check_addresses(
    place: Url, answers: Sequence[str | Address], local_hosts: LocalHosts = no_local_hosts
) -> tuple[Address, ...]:
    """The addresses that the host has, of which each may be connected to. Raises `Refused` if any may not."""
    if not answers:
        raise Refused(f"has a host without a known address: {place.host}")
    opened = _openable(place) if local_hosts(place.host) else frozenset[AddressReach]()
    addresses = tuple(_address(answer) for answer in answers)
    for address in addresses:
        reach = reach_of(address)
        if reach is not AddressReach.PUBLIC and reach not in opened:
            raise LeadsInside(f"leads to {address}, an address of {reach}{_remedy(place, reach)}")
    return addresses


def follow_redirect(place: Url, location: str, local_hosts: LocalHosts = no_local_hosts) -> Followed | HandedBack:
    """What to do about an answer that points elsewhere. Raises `Refused` for a place that is never fetched from."""
    try:
        there = _join(place, location)
        admissible = _admit(there, local_hosts)
    except BadUrl as error:
        raise Refused(f"redirects to {shorten_url(location)}, which {error}") from None
    if there.has_credentials:
        return HandedBack(str(there), "it adds a name or password to the URL")
    if _bare(there.host) != _bare(place.host):
        return HandedBack(str(there), f"it leads to another host, {there.host}")
    if admissible.port != place.port:
        return HandedBack(str(there), f"it leads to another port, {admissible.port}")
    if there.scheme == "http" and place.scheme == "https":
        return HandedBack(str(there), "it leads from https to http")
    return Followed(admissible)


def explain_fetch(
    text: str,
    *,
    resolve: Sequence[str] | None = None,
    resolve_sequence: Sequence[str | Sequence[str]] = (),
    redirect_to: str | Sequence[str] | None = None,
    local_hosts: LocalHosts = no_local_hosts,
) -> Explained:
    """What would become of a fetch whose host resolves like this, and whose answer redirects there.

    Every answer of a `resolve_sequence` is judged: a fetch to come would meet it. Where no answers are
    given, a name is judged by its form alone.

    >>> explain_fetch("http://spoofed.example.com/", resolve=["10.0.0.5"]).behavior.name
    'DENY'
    """
    answers = resolve_sequence or (() if resolve is None else (resolve,))
    hops = [redirect_to] if isinstance(redirect_to, str) else list(redirect_to or ())
    try:
        place = admit_url(text, local_hosts)
        for one in answers:
            check_addresses(place, (one,) if isinstance(one, str) else one, local_hosts)
        for count, location in enumerate(hops, 1):
            if count > MOST_REDIRECTS:
                raise Refused(f"redirects more than {MOST_REDIRECTS} times")
            hop = follow_redirect(place, location, local_hosts)
            if isinstance(hop, HandedBack):
                return Explained(Behavior.ASK, f"the redirect is handed back and not followed: {hop.why}")
            place = hop.place
    except Refused as error:
        return Explained(Behavior.DENY, f"{shorten_url(text)} {error}", isinstance(error, Unclear))
    return Explained(Behavior.ALLOW, f"it may be fetched as {place}")


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
            host = parse_host(_PORT.sub("", piece))
        except BadUrl:
            if is_number(_PORT.sub("", piece).lower().rstrip(".").rpartition(".")[2]):
                return None
            continue
        address = Url("https", host, PORTS["https"], "/").address
        if address is None and "." not in host and host not in LOCAL_NAMES and len(pieces) > 1:
            continue  # a name or a password may be any word
        if is_local_name(host) if address is None else reach_of(address) is not AddressReach.PUBLIC:
            return None
        hosts.append(host)
    return tuple(dict.fromkeys(hosts)) or None


def shorten_url(text: str) -> str:
    """The text on one line, cut where it is long; a URL can hold anything."""
    plain = "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in text[:200])
    return plain if len(text) <= 200 else f"{plain}…"


def _admit(place: Url, local_hosts: LocalHosts) -> Url:
    """By its form: the host, the port, and an address that is spelled out."""
    named = local_hosts(place.host)
    if _is_local(place) and not named:
        raise LeadsInside(
            f"leads to {place.host}, a host of this machine or its network{_remedy(place, AddressReach.PRIVATE)}"
        )
    address = place.address
    if address is not None:
        check_addresses(place, (address,), local_hosts)
    if _is_local(place) or (address is not None and reach_of(address) is not AddressReach.PUBLIC):
        return place
    port = place.port
    if not named and (port in SERVICE_PORTS or (port < 1024 and port not in WEB_PORTS)):
        raise Refused(f"asks for port {port}, which is not a port of the web")
    return _over_https(place)


def _is_local(place: Url) -> bool:
    """Whether the host's name alone leads inside."""
    return place.address is None and is_local_name(place.host)


def _over_https(place: Url) -> Url:
    if place.scheme == "https":
        return place
    return replace(place, scheme="https", port=PORTS["https"] if place.port == PORTS["http"] else place.port)


def _join(base: Url, location: str) -> Url:
    """Where a redirect leads. Raises `BadUrl`."""
    if has_unseen(location):  # before they are joined, which drops some of these
        raise BadUrl("contains a character that is not visible")
    try:
        there = urljoin(str(base), location)
    except ValueError as error:
        raise BadUrl(f"is not a URL ({error})") from None
    return parse_url(there)


def _openable(place: Url) -> frozenset[AddressReach]:
    """What a rule that names the host opens."""
    if place.address is not None:
        return OPENED_FOR_ADDRESSES
    return OPENED_FOR_LOCAL_NAMES if _is_local(place) else OPENED_FOR_NAMES


def _remedy(place: Url, reach: AddressReach) -> str:
    return f". Only a rule `WebFetch(domain:{place.host})` allows that" if reach in _openable(place) else ""


def _address(answer: str | Address) -> Address:
    try:
        return ip_address(answer) if isinstance(answer, str) else answer
    except ValueError:
        raise Refused(f"has a host that resolves to no address: {shorten_url(str(answer))}") from None


def _bare(host: str) -> str:
    return host.removeprefix("www.")
