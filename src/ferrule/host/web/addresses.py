"""Which addresses and which names lead to the public internet, and which lead inside.

An address that carries another one (IPv4 in IPv6, 6to4, NAT64, Teredo, ISATAP) is judged
as every address it carries. What is on no list and not known to be public is not public.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from typing import Final, TypeAlias

Address: TypeAlias = IPv4Address | IPv6Address


class AddressReach(StrEnum):
    """Where a connection to an address ends. The words complete "it is an address of ..."."""

    PUBLIC = "the public internet"
    LOOPBACK = "this machine"
    PRIVATE = "a private network"
    LINK = "the local link or a cloud's metadata service"
    NOWHERE = "no network that can be fetched from"


_V4: Final = tuple(
    (reach, IPv4Network(network))
    for reach, networks in (
        (AddressReach.LOOPBACK, "127.0.0.0/8 0.0.0.0/32"),
        (AddressReach.LINK, "169.254.0.0/16 168.63.129.16/32 100.100.100.200/32 192.0.0.192/32"),
        (AddressReach.PRIVATE, "10.0.0.0/8 172.16.0.0/12 192.168.0.0/16 100.64.0.0/10 198.18.0.0/15"),
        (
            AddressReach.NOWHERE,
            "0.0.0.0/8 192.0.0.0/24 192.0.2.0/24 192.88.99.0/24 198.51.100.0/24 203.0.113.0/24 224.0.0.0/4 240.0.0.0/4",
        ),
    )
    for network in networks.split()
)
"""The first that holds an address says what it is."""
_V6: Final = tuple(
    (reach, IPv6Network(network))
    for reach, networks in (
        (AddressReach.LOOPBACK, "::1/128 ::/128"),
        (AddressReach.LINK, "fe80::/10 fd00:ec2::/32 fd20:ce::/32"),
        (AddressReach.PRIVATE, "fc00::/7 fec0::/10"),
        (AddressReach.NOWHERE, "2001::/23 2001:db8::/32 3ffe::/16 3fff::/20"),
    )
    for network in networks.split()
)
_GLOBAL_UNICAST: Final = IPv6Network("2000::/3")
_MAPPED: Final = IPv6Network("::ffff:0:0/96")
_CARRYING: Final = tuple(
    (IPv6Network(network), shift)
    for network, shift in (
        ("::ffff:0:0/96", 0),
        ("::/96", 0),  # IPv4-compatible
        ("::ffff:0:0:0/96", 0),  # IPv4-translated
        ("64:ff9b::/96", 0),  # NAT64
        ("64:ff9b:1::/48", 0),  # NAT64 of a local network
        ("2002::/16", 80),  # 6to4
    )
)
"""Prefixes of addresses that contain an IPv4 address, and how many bits are to the right of it."""
_AS_CARRIED: Final = (_MAPPED, IPv6Network("64:ff9b::/96"))
"""Where the address itself says nothing beyond the one that it carries."""
_ISATAP: Final = (0x00005EFE, 0x02005EFE)

LOCAL_NAMES: Final = frozenset(
    {
        "localhost", "localdomain", "localhost6", "localdomain6", "ip6-localhost", "ip6-loopback", "broadcasthost",
        "local", "internal", "lan", "home", "corp", "intranet", "private", "workgroup", "svc", "home.arpa",
        "localnet", "consul", "test", "invalid", "onion", "fritz.box", "mshome.net",
        "localtest.me", "lvh.me", "vcap.me", "lacolhost.com", "nip.io", "sslip.io", "xip.io",
        "metadata.goog", "metadata.tencentyun.com", "metadata.packet.net", "metadata.platformequinix.com",
    }
)  # fmt: skip
"""Names that lead inside, with all below them: reserved ones, ones that resolve to whatever they spell, clouds' own."""


def reach_of(address: Address) -> AddressReach:
    """The worst of the address and of what it carries.

    >>> from ipaddress import ip_address
    >>> [reach_of(ip_address(text)).name for text in ("8.8.8.8", "::ffff:127.0.0.1", "2002:a9fe:a9fe::1", "fd00::1")]
    ['PUBLIC', 'LOOPBACK', 'LINK', 'PRIVATE']
    """
    carried = tuple(_embedded_addresses(address))
    reaches = [_of_v4(one) for one in carried]
    if isinstance(address, IPv4Address):
        reaches.append(_of_v4(address))
    elif not any(address in network for network in _AS_CARRIED):
        reaches.append(_of_v6(address))
    inside = [reach for reach in reaches if reach is not AddressReach.PUBLIC]
    return inside[0] if inside else AddressReach.PUBLIC


def is_local_name(name: str) -> bool:
    """Whether a host name, in lower case and without a dot at its end, leads inside whatever it resolves to.

    >>> is_local_name("printer.lan"), is_local_name("intranet"), is_local_name("internal.example.com")
    (True, True, False)
    """
    labels = name.split(".")
    return len(labels) == 1 or any(".".join(labels[at:]) in LOCAL_NAMES for at in range(len(labels)))


def _of_v4(address: IPv4Address) -> AddressReach:
    listed = next((reach for reach, network in _V4 if address in network), None)
    return listed or (AddressReach.PUBLIC if address.is_global else AddressReach.NOWHERE)


def _of_v6(address: IPv6Address) -> AddressReach:
    if address.scope_id is not None:
        return AddressReach.LINK
    listed = next((reach for reach, network in _V6 if address in network), None)
    return listed or (AddressReach.PUBLIC if address.is_global and address in _GLOBAL_UNICAST else AddressReach.NOWHERE)


def _embedded_addresses(address: Address) -> Iterator[IPv4Address]:
    if isinstance(address, IPv4Address) or address in (IPv6Address("::"), IPv6Address("::1")):
        return
    bits = int(address)
    for network, shift in _CARRYING:
        if address in network:
            yield IPv4Address(bits >> shift & 0xFFFFFFFF)
    if address.teredo is not None:
        yield from address.teredo
    if bits >> 32 & 0xFFFFFFFF in _ISATAP:
        yield IPv4Address(bits & 0xFFFFFFFF)
