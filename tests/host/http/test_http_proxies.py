"""The HTTP client behind a proxy."""

from __future__ import annotations

import asyncio
import ssl
from base64 import b64encode

import pytest

from ferrule.host.http.http_client import HttpClient
from ferrule.host.http.message import HttpError, HttpRequest
from ferrule.host.http.proxies import Proxy, proxy_for
from ferrule.host.http.tls import Tls
from ferrule.host.http.urls import Url
from tests.host.http.http_serving import Answering, Asked, Served, serving, trusting, whole
from tests.host.http.test_http import got

PROXIES = {"HTTP_PROXY": "http://plain:1", "https_proxy": "http://secure:2"}


async def test_an_http_url_is_asked_for_whole() -> None:
    async with serving(whole(b"x")) as proxy:
        environ = {"http_proxy": f"http://ann:p%40ss@127.0.0.1:{proxy.port}"}
        async with HttpClient(environ) as client:
            assert await got(client, HttpRequest(url=Url.parse("http://example.invalid/a?b"))) == (200, b"x")
            checked = HttpRequest(url=Url.parse("http://example.invalid/a?b"), address="192.0.2.1")
            assert await got(client, checked) == (200, b"x")

    by_name, by_address = proxy.asked
    assert by_name.line == "GET http://example.invalid:80/a?b HTTP/1.1"
    assert by_name.header("proxy-authorization") == f"Basic {b64encode(b'ann:p@ss').decode()}"
    assert by_address.line == "GET http://192.0.2.1:80/a?b HTTP/1.1"
    assert by_address.header("host") == "example.invalid"


async def test_an_https_url_goes_through_a_tunnel_and_is_checked_against_its_own_name() -> None:
    async with serving(whole(b"behind"), secure=True) as target, serving(_tunnel_to(target)) as proxy:
        environ = {"HTTPS_PROXY": f"http://ann:secret@127.0.0.1:{proxy.port}"}
        request = HttpRequest(url=Url("https", "localhost.", target.port, "/"), method="POST", body=b"x" * 300_000)
        async with HttpClient(environ, tls=Tls(_trusting_any_name)) as client:
            assert await got(client, request) == (200, b"behind")
            assert await got(client, request) == (200, b"behind")

    assert [asked.line for asked in proxy.asked] == [f"CONNECT localhost.:{target.port} HTTP/1.1"]
    assert proxy.asked[0].header("proxy-authorization").startswith("Basic ")
    assert [(asked.line, len(asked.body)) for asked in target.asked] == [("POST / HTTP/1.1", 300_000)] * 2
    assert target.asked[0].header("proxy-authorization") == ""


async def test_a_tunnel_to_a_checked_address_names_the_address() -> None:
    async with serving(whole(b"", status="403 Forbidden")) as proxy, HttpClient(_through(proxy)) as client:
        with pytest.raises(HttpError) as caught:
            await got(client, HttpRequest(url=Url.parse("https://example.invalid/"), address="192.0.2.1"))

    assert proxy.asked[0].line == "CONNECT 192.0.2.1:443 HTTP/1.1"
    assert (caught.value.kind, str(caught.value)) == (
        "proxy",
        "The proxy 127.0.0.1 answered 403 for 192.0.2.1:443.",
    )


@pytest.mark.parametrize("text", ["socks5://proxy:1", "http://", "http://proxy:port"])
def test_a_proxy_that_cannot_be_used_is_said(text: str) -> None:
    with pytest.raises(HttpError, match="proxy named in the environment"):
        proxy_for(Url.parse("https://example.org"), {"https_proxy": text})


@pytest.mark.parametrize(
    ("url", "exceptions", "expected"),
    [
        ("http://example.org", "", "plain"),
        ("https://example.org", "", "secure"),
        ("https://example.org", "example.org", None),
        ("https://a.example.org", "other, example.org", None),
        ("https://a.example.org", "*.example.org", None),
        ("https://badexample.org", "example.org", "secure"),
        ("https://example.org", "example.org:444", "secure"),
        ("https://example.org:444", "example.org:444", None),
        ("https://example.org", "*", None),
        ("https://[2001:db8::1]/", "2001:db8::1", None),
        ("https://localhost:8080", "", None),
        ("http://127.0.0.1:8080", "", None),
        ("http://[::1]:8080", "", None),
    ],
)
def test_the_environment_says_which_proxy(url: str, exceptions: str, expected: str | None) -> None:
    found = proxy_for(Url.parse(url), {**PROXIES, "NO_PROXY": exceptions})

    assert (found.host if found else None) == expected


def test_a_proxy_without_a_scheme_or_port_is_taken() -> None:
    assert proxy_for(Url.parse("http://example.org"), {"ALL_PROXY": "proxy"}) == Proxy("proxy", 8080)


def _through(proxy: Served) -> dict[str, str]:
    return {"HTTPS_PROXY": f"http://127.0.0.1:{proxy.port}"}


def _trusting_any_name() -> ssl.SSLContext:
    context = trusting()
    context.check_hostname = False  # "localhost" itself is never asked for through a proxy
    return context


def _tunnel_to(target: Served) -> Answering:
    async def answer(asked: Asked, writer: asyncio.StreamWriter) -> None:
        reader, onward = await asyncio.open_connection("127.0.0.1", target.port)
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")

        async def pump(source: asyncio.StreamReader, drain: asyncio.StreamWriter) -> None:
            try:
                while data := await source.read(65536):
                    drain.write(data)
            finally:
                drain.close()

        async with asyncio.TaskGroup() as group:
            group.create_task(pump(asked.reader, onward))
            group.create_task(pump(reader, writer))

    return answer
