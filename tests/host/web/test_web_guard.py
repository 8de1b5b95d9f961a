"""Which URLs may be fetched: the corpus, every spelling of an address that leads inside, and what rules open."""

from __future__ import annotations

import json
from collections.abc import Callable
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferrule.core.verdicts import Behavior
from ferrule.host.web.addresses import AddressReach, reach_of
from ferrule.host.web.url_guard import (
    Followed,
    HandedBack,
    Refused,
    admit_url,
    check_addresses,
    explain_fetch,
    follow_redirect,
)
from tests.requirement import requirement

CORPUS = Path(__file__).parents[2] / "corpus"
CASES = [
    json.loads(line)
    for name in ("ssrf.jsonl", "ssrf_own.jsonl")
    for line in (CORPUS / name).read_text(encoding="utf-8").splitlines()
]
EXPECTED = {"block": Behavior.DENY, "allow": Behavior.ALLOW, "no_silent_follow": Behavior.ASK}
PUBLIC = ["93.184.216.34"]
INSIDE_V4 = [
    IPv4Network(network)
    for network in ("127.0.0.0/8", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "169.254.0.0/16", "100.64.0.0/10")
]


def naming(*hosts: str) -> Callable[[str], bool]:
    """A rule for each of the hosts."""
    return lambda host: host in hosts


@requirement("WEB-2")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_the_corpus_is_decided_as_it_says(case: dict[str, Any]) -> None:
    explained = explain_fetch(
        case["url"],
        resolve=case.get("resolve"),
        resolve_sequence=case.get("resolve_sequence", ()),
        redirect_to=case.get("redirect_to"),
    )

    assert explained.behavior is EXPECTED[case["expect"]], explained.reason


@pytest.mark.parametrize(
    "url",
    [
        "http://2130706433/",
        "http://0177.0.0.1/",
        "http://0x7f.1/",
        "http://127.1/",
        "http://127.0.0.1./",
        "http://\uff11\uff12\uff17.0.0.1/",
        "http://①②⑦.⓪.⓪.①/",
        "http://127。0。0。1/",
        "http://127.0.0.1\u00ad/",
        "http://%31%32%37.0.0.1/",
        "http://foo.0x1/",
        "http://1.2.3.4.5/",
        "http://[::ffff:127.0.0.1]/",
        "http://[64:ff9b::7f00:1]/",
        "http://[64:ff9b:1::a00:1]/",
        "http://[2002:7f00:1::]/",
        "http://[2001:0:4136:e378:8000:63bf:80ff:fffe]/",
        "http://[2001:470::5efe:10.0.0.1]/",
        "http://[fec0::1]/",
        "http://[ff02::1]/",
        "http://[::]/",
        "http://[fd00:ec2::254]/",
        "http://168.63.129.16/",
        "http://192.0.0.192/",
        "http://100.100.100.200/",
        "http://metadata.google.internal/",
        "http://metadata/",
        "http://10.0.0.1.nip.io/",
        "http://\uff2c\uff2f\uff23\uff21\uff2c\uff28\uff2f\uff33\uff34/",
        "http://example.com@127.0.0.1/",
        "http://example.com\\@127.0.0.1/",
        "http://user:pw@example.com/",
        "http://example.com:0/",
        "http://example.com:99999/",
        "http://example.com:6379/",
        "http://example.com:²²/",
        "http://exa\tmple.com/",
        "http://example.com\r\nHost: localhost/",
        "http://[::1",
        "http://]/",
        "http://..",
        "http://a..b/",
        "http://",
        "https:///path",
        "//example.com/",
        "example.com",
        "javascript:alert(1)",
        "",
        "\ud800",
        "http://" + "a" * 300 + ".com/",
        "https://example.com/" + "a" * 9000,
    ],
)
@requirement("WEB-2")
def test_a_tricky_url_is_refused(url: str) -> None:
    with pytest.raises(Refused):
        admit_url(url)


@requirement("WEB-1")
@pytest.mark.parametrize(
    ("url", "fetched"),
    [
        ("http://example.com", "https://example.com/"),
        ("http://example.com:80/a", "https://example.com/a"),
        ("https://example.com:8443/a?b=c#d", "https://example.com:8443/a?b=c"),
        (" https://example.com/a b/ü?q=a b\n", "https://example.com/a%20b/%C3%BC?q=a%20b"),
        ("https://example.com./", "https://example.com/"),
        ("https://example.com?q=a@b.org", "https://example.com/?q=a@b.org"),
        ("https://example.com/%7Efoo/a%2Fb", "https://example.com/%7Efoo/a%2Fb"),
        ("https://bücher.example/", "https://xn--bcher-kva.example/"),
        ("https://[::ffff:8.8.8.8]/", "https://8.8.8.8/"),
    ],
)
def test_a_url_is_fetched_over_https_in_one_spelling(url: str, fetched: str) -> None:
    assert str(admit_url(url)) == fetched


@requirement("WEB-1")
@pytest.mark.parametrize(
    ("url", "answers"),
    [
        ("http://localhost:3000/a", ["127.0.0.1", "::1"]),
        ("http://127.0.0.1:8000/", ["127.0.0.1"]),
        ("http://[::1]:8000/", ["::1"]),
        ("http://169.254.169.254/latest", ["169.254.169.254"]),
        ("http://printer.lan/", ["192.168.1.7"]),
    ],
)
def test_a_rule_that_names_a_local_host_opens_it_and_leaves_it_on_http(url: str, answers: list[str]) -> None:
    host = url.split("/")[2].rsplit(":", 1)[0].strip("[]") if "[" in url else url.split("/")[2].split(":")[0]
    rule = naming(host)

    place = admit_url(url, rule)

    assert str(place) == url
    assert check_addresses(place, answers, rule) == tuple(map(ip_address, answers))


@requirement("WEB-2")
def test_a_rule_for_a_public_name_opens_a_private_network_and_never_this_machine() -> None:
    rule = naming("git.example.com")
    place = admit_url("http://git.example.com/", rule)

    assert str(place) == "https://git.example.com/"
    assert check_addresses(place, ["10.0.0.5"], rule) == (ip_address("10.0.0.5"),)
    for inside in ("127.0.0.1", "169.254.169.254", "::1", "0.0.0.0"):
        with pytest.raises(Refused):
            check_addresses(place, [inside], rule)


def test_a_rule_for_one_local_host_opens_no_other() -> None:
    rule = naming("localhost")

    with pytest.raises(Refused):
        admit_url("http://127.0.0.1/", rule)
    with pytest.raises(Refused):
        check_addresses(admit_url("http://localhost/", rule), ["169.254.169.254"], rule)


@requirement("WEB-2")
def test_one_answer_that_leads_inside_refuses_all_of_them() -> None:
    place = admit_url("https://example.com/")

    assert check_addresses(place, PUBLIC) == (ip_address(PUBLIC[0]),)
    with pytest.raises(Refused, match=r"leads to 10\.0\.0\.1, an address of a private network"):
        check_addresses(place, [*PUBLIC, "10.0.0.1"])
    with pytest.raises(Refused, match="without a known address"):
        check_addresses(place, [])
    with pytest.raises(Refused, match="resolves to no address"):
        check_addresses(place, ["nonsense"])


@requirement("WEB-2")
def test_a_name_whose_second_answer_leads_inside_is_explained_as_refused() -> None:
    for answers in ([PUBLIC, ["127.0.0.1"]], [*PUBLIC, "127.0.0.1"]):
        assert explain_fetch("https://rebind.example.com/", resolve_sequence=answers).behavior is Behavior.DENY
    assert explain_fetch("https://steady.example.com/", resolve_sequence=PUBLIC * 2).behavior is Behavior.ALLOW


@requirement("WEB-1")
@pytest.mark.parametrize(
    ("location", "outcome"),
    [
        ("/b", "https://example.com/b"),
        ("b?c", "https://example.com/x/b?c"),
        ("//www.example.com/b", "https://www.example.com/b"),
        ("https://other.example.org/", HandedBack),
        ("https://example.com:8443/", HandedBack),
        ("http://example.com/", HandedBack),
        ("https://user:pw@example.com/", HandedBack),
        ("http://169.254.169.254/", Refused),
        ("https://user:pw@127.0.0.1/", Refused),
        ("//localhost/", Refused),
        ("file:///etc/passwd", Refused),
        ("https://exa\x00mple.com/", Refused),
        ("https://[::1/", Refused),
        ("\\\\evil.example\\", "https://example.com/x/%5C%5Cevil.example%5C"),
    ],
)
def test_a_redirect_is_followed_within_its_host_and_handed_back_beyond(location: str, outcome: object) -> None:
    place = admit_url("https://example.com/x/a")

    if outcome is Refused:
        with pytest.raises(Refused, match="redirects to"):
            follow_redirect(place, location)
    else:
        hop = follow_redirect(place, location)
        assert str(hop.place) == outcome if isinstance(hop, Followed) else type(hop) is outcome


def test_redirects_without_end_are_explained_as_refused() -> None:
    explained = explain_fetch("https://example.com/", resolve=PUBLIC, redirect_to=["/again"] * 6)

    assert explained == explain_fetch("https://example.com/", redirect_to=["/again"] * 6)
    assert "more than 5 times" in explained.reason


@given(
    st.text(max_size=60)
    | st.text("ht:p/@[]%.\\?#0123456789abcdefx\u0661。\u00ad\x00", max_size=40).map("http://".__add__)
)
def test_no_text_makes_the_guard_raise_anything_but_a_refusal(text: str) -> None:
    assert explain_fetch(text, resolve=PUBLIC, redirect_to=text).behavior in Behavior


def _inside_addresses() -> st.SearchStrategy[IPv4Address]:
    return st.sampled_from(INSIDE_V4).flatmap(
        lambda network: st.integers(int(network[0]), int(network[-1])).map(IPv4Address)
    )


def _spellings(address: IPv4Address) -> list[str]:
    """The ways in which resolvers and programs are known to write an IPv4 address."""
    number, parts = int(address), address.packed
    a, b, c, d = parts
    return [
        str(address),
        f"{address}.",
        f"{number}",
        f"0x{number:x}",
        f"0{number:o}",
        ".".join(f"0x{part:02X}" for part in parts),
        ".".join(f"0{part:03o}" for part in parts),
        f"{a}.{number & 0xFFFFFF}",
        f"{a}.{b}.{c << 8 | d}",
        str(address).translate({ord("0") + digit: chr(0xFF10 + digit) for digit in range(10)}),
        str(address).replace(".", "\u3002"),
        "".join(f"%{ord(character):02x}" for character in str(address)),
        f"[::ffff:{address}]",
        f"[::{address}]",
        f"[::ffff:0:{address}]",
        f"[64:ff9b::{address}]",
        f"[{IPv6Address(0x2002 << 112 | number << 80)}]",
        f"[{IPv6Address(0x20010000 << 96 | 0x4136E378 << 64 | number ^ 0xFFFFFFFF)}]",
        f"[2001:470::5efe:{address}]",
    ]


@requirement("WEB-2")
@given(_inside_addresses(), st.data(), st.sampled_from(["http", "https"]), st.sampled_from(["", ":80", ":8080"]))
def test_no_spelling_of_a_private_address_passes(
    address: IPv4Address, data: st.DataObject, scheme: str, port: str
) -> None:
    spelling = data.draw(st.sampled_from(_spellings(address)))

    assert explain_fetch(f"{scheme}://{spelling}{port}/").behavior is Behavior.DENY
    assert explain_fetch("https://example.com/", redirect_to=f"{scheme}://{spelling}{port}/").behavior is Behavior.DENY


@requirement("WEB-2")
@given(st.integers(0, 2**128 - 1).map(IPv6Address))
def test_an_ipv6_address_beyond_global_unicast_is_public_only_where_it_carries_a_public_one(
    address: IPv6Address,
) -> None:
    if reach_of(address) is AddressReach.PUBLIC and address not in IPv6Network("2000::/3"):
        assert address.ipv4_mapped or address in IPv6Network("64:ff9b::/96")
