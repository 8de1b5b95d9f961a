"""Hosts by label: `github.com` is neither evilgithub.com nor github.com.evil.com."""

from __future__ import annotations

import ipaddress
import re
import socket
from collections.abc import Iterable
from typing import Final

from ..core.values import frozen_named_value
from ..host.web.addresses import Address, AddressReach, is_local_name, reach_of

_LABEL: Final = re.compile(r"[a-z0-9_*]([a-z0-9_*-]*[a-z0-9_*])?")
_LONGEST: Final = 253

PRE_APPROVED: Final = (
    "docs.rs",
    "crates.io",
    "github.com",
    "stackoverflow.com",
    "developer.mozilla.org",
    "docs.python.org",
    "peps.python.org",
    "pypi.org",
)


def why_no_domain(text: str, *, allows: bool) -> str | None:
    """What is wrong with the domain of a rule; `None` if nothing is.

    >>> why_no_domain("*.example.com", allows=True) is None
    True
    """
    host = canonical(text)
    if text.strip() == "*" or _address(host) is not None:
        return None
    labels = host.split(".")
    if host in ("", "*") or len(host) > _LONGEST or not all(_LABEL.fullmatch(label) for label in labels):
        return "has no host name after `domain:`. Write one such as `domain:example.com`, without scheme, port or path"
    if allows and not set(host) - set("*."):
        return "allows every domain. Write only the tool's name if that is intended"
    if allows and ("*" in labels[-1] or (len(labels) > 1 and all("*" in label for label in labels[:-1]))):
        return "allows a whole top-level domain. Name the domain: `domain:*.example.com`"
    return None


class DomainPattern:
    """`h`, `*.h` for what is below h at any depth, `*` elsewhere within one label.

    >>> DomainPattern("*.example.com").matches("a.b.example.com"), DomainPattern("*.example.com").matches("example.com")
    (True, False)
    """

    __slots__ = ("_regex", "text")

    def __init__(self, text: str) -> None:
        self.text = canonical(text)
        below = self.text.startswith("*.")
        labels = (self.text[2:] if below else self.text).split(".")
        pattern = r"\.".join("[^.]*".join(re.escape(part) for part in label.split("*")) for label in labels)
        self._regex = None if self.text == "*" else re.compile((r"(?:[^.]+\.)+" if below else "") + pattern)

    @property
    def names_one(self) -> bool:
        """Whether it names a host, and not a set of them."""
        return "*" not in self.text

    def matches(self, host: str) -> bool:
        return self._regex is None or self._regex.fullmatch(canonical(host)) is not None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DomainPattern) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)

    def __repr__(self) -> str:
        return f"DomainPattern({self.text!r})"


@frozen_named_value
class PreApproval:
    """Domains that may be fetched from without asking; a blocked one is never among them."""

    allowed: tuple[str, ...] = PRE_APPROVED
    blocked: tuple[str, ...] = ()
    https: bool = False
    """Whether every host may be fetched from over https."""

    def approves(self, host: str, *, https: bool = False) -> bool:
        """A domain covers itself and its subdomains."""
        if is_local(host) or _covers(self.blocked, host):
            return False
        return _covers(self.allowed, host) or (self.https and https)


def canonical(host: str) -> str:
    """Lower case, without the trailing dot; an internationalized name in its ASCII form."""
    text = host.strip().rstrip(".").lower()
    if text.isascii():
        return text
    try:
        return text.encode("idna").decode("ascii")
    except UnicodeError:
        return text


def is_local(host: str) -> bool:
    """Whether the host is this machine or a private network, in any spelling that resolvers accept.

    >>> is_local("169.254.169.254"), is_local("2130706433"), is_local("example.com")
    (True, True, False)
    """
    name = canonical(host).strip("[]")
    address = _address(name)
    return is_local_name(name) if address is None else reach_of(address) is not AddressReach.PUBLIC


def _address(host: str) -> Address | None:
    name = host.strip("[]").partition("%")[0]
    try:
        return ipaddress.ip_address(name)
    except ValueError:
        pass
    try:
        return ipaddress.IPv4Address(socket.inet_aton(name)) if name[:1].isdigit() else None
    except (OSError, UnicodeError):
        return None


def _covers(domains: Iterable[str], host: str) -> bool:
    name = canonical(host)
    return any(name == canonical(domain) or name.endswith(f".{canonical(domain)}") for domain in domains)
