"""Who is turned away from the HTTP server before the protocol is spoken."""

from __future__ import annotations

import pytest

from ferrule.server.request_guard import RequestGuard

from ..requirement import requirement

LOCAL = RequestGuard(host="127.0.0.1", port=8000)
OPEN = RequestGuard(host="0.0.0.0", port=8000, token="correct horse".replace(" ", "-"), names=("Tools.example.org",))


def _status(guard: RequestGuard, **headers: str | list[str]) -> int | None:
    given = [
        (name.encode(), value.encode("latin-1"))
        for name, values in headers.items()
        for value in ([values] if isinstance(values, str) else values)
    ]
    turned = guard.turns_away(given)
    return turned.status if turned else None


@requirement("MCP-5")
@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:8000", None),
        ("localhost:8000", None),
        ("LOCALHOST:8000", None),
        ("[::1]:8000", None),
        ("localhost:8001", 421),
        ("localhost", 421),
        ("evil.example:8000", 421),
        ("127.0.0.1.evil.example:8000", 421),
        ("localhost:8000@evil.example", 421),
        ("localhost:8000, evil.example", 421),
        ("192.168.1.5:8000", 421),
        ("[::1:8000", 421),
        ("localhost:99999", 421),
        ("localhost:8000/", 421),
        ("", 421),
    ],
)
def test_a_local_server_is_meant_by_its_local_names_only(host: str, status: int | None) -> None:
    assert _status(LOCAL, host=host) == status


def test_a_request_names_its_host_once() -> None:
    assert _status(LOCAL) == 421
    assert _status(LOCAL, host=["localhost:8000", "localhost:8000"]) == 421


@requirement("MCP-5")
@pytest.mark.parametrize(
    ("origin", "status"),
    [
        ("http://localhost:3000", None),
        ("https://127.0.0.1", None),
        ("http://evil.example", 403),
        ("http://localhost.evil.example:8000", 403),
        ("null", 403),
        ("file://", 403),
        ("chrome-extension://localhost", 403),
        ("http://localhost:3000 http://evil.example", 403),
    ],
)
def test_a_page_from_elsewhere_is_turned_away(origin: str, status: int | None) -> None:
    assert _status(LOCAL, host="localhost:8000", origin=origin) == status


@requirement("MCP-5")
@pytest.mark.parametrize(
    ("authorization", "status"),
    [
        ("Bearer correct-horse", None),
        ("bearer correct-horse", None),
        ("Bearer correct-hors", 401),
        ("Bearer ", 401),
        ("Basic correct-horse", 401),
        ("correct-horse", 401),
        ("Bearer \xe9", 401),
    ],
)
def test_only_the_token_opens_a_server_that_has_one(authorization: str, status: int | None) -> None:
    assert _status(OPEN, host="10.0.0.1:8000", authorization=authorization) == status
    assert _status(OPEN, host="10.0.0.1:8000") == 401


@pytest.mark.parametrize(
    ("host", "status"),
    [("tools.example.org", None), ("10.0.0.1:8000", None), ("localhost:8000", None), ("other.example.org:8000", 421)],
)
def test_a_server_for_every_address_is_meant_by_addresses_and_by_the_names_it_was_given(
    host: str, status: int | None
) -> None:
    assert _status(OPEN, host=host, authorization="Bearer correct-horse") == status
