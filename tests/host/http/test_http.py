"""The HTTP client, against a server that says exactly what a test wants."""

from __future__ import annotations

import asyncio
import gzip
import socket
import zlib
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferrule.host.http.bodies import BodyReader
from ferrule.host.http.http_client import HttpClient
from ferrule.host.http.message import HttpError, HttpRequest, Timeouts
from ferrule.host.http.tls import Tls
from ferrule.host.http.urls import BadUrl, Url
from tests.host.http.http_serving import CHUNKED, LAST, Asked, chunk, serving, trusting, whole

GENEROUS = 20.0


async def got(client: HttpClient, request: HttpRequest) -> tuple[int, bytes]:
    async with client.send(request) as response:
        return response.status, await response.read()


async def failure(request: HttpRequest, client: HttpClient | None = None) -> HttpError:
    async with client or HttpClient({}) as client:
        with pytest.raises(HttpError) as caught:
            await got(client, request)
    return caught.value


async def test_a_request_says_what_it_was_given_and_who_asks() -> None:
    async with serving(whole(b"done")) as served, HttpClient({}) as client:
        request = HttpRequest(
            url=served.url("/a/b?q=1"), method="POST", headers=(("X-Mine", "yes"),), body=b"\x00body" * 1000
        )

        assert await got(client, request) == (200, b"done")

    (asked,) = served.asked
    assert asked.line == "POST /a/b?q=1 HTTP/1.1"
    assert asked.header("host") == f"127.0.0.1:{served.port}"
    assert asked.header("x-mine") == "yes"
    assert asked.header("user-agent").startswith("ferrule/")
    assert asked.body == b"\x00body" * 1000


async def test_a_connection_is_used_again_after_a_whole_answer() -> None:
    async with serving(whole(b"x")) as served, HttpClient({}) as client:
        for _ in range(3):
            await got(client, HttpRequest(url=served.url()))

        assert [asked.connection for asked in served.asked] == [1, 1, 1]


async def test_a_connection_is_not_used_again_after_half_an_answer() -> None:
    async with serving(CHUNKED + chunk(b"one") + chunk(b"two")) as served, HttpClient({}) as client:
        for _ in range(2):
            async with client.send(HttpRequest(url=served.url())) as response:
                assert (await anext(aiter(response.chunks()))).startswith(b"one")

        assert [asked.connection for asked in served.asked] == [1, 2]


async def test_an_answer_whose_end_is_on_its_way_can_be_finished() -> None:
    async with serving(CHUNKED + chunk(b"one") + LAST) as served, HttpClient({}) as client:
        for _ in range(2):
            async with client.send(HttpRequest(url=served.url())) as response:
                assert await anext(aiter(response.chunks())) == b"one"
                await response.finish(GENEROUS)

        assert [asked.connection for asked in served.asked] == [1, 1]


async def test_a_connection_with_bytes_nobody_asked_for_is_not_used_again() -> None:
    async with serving(whole(b"x") + b"HTTP/1.1 200 OK\r\n") as served, HttpClient({}) as client:
        for _ in range(2):
            assert await got(client, HttpRequest(url=served.url())) == (200, b"x")

        assert served.connections == 2


async def test_two_requests_at_once_take_two_connections() -> None:
    both = asyncio.Event()

    async def answer(asked: Asked, writer: asyncio.StreamWriter) -> None:
        if len(served.asked) == 2:
            both.set()
        await both.wait()
        writer.write(whole(b"x"))

    async with serving(answer) as served, HttpClient({}) as client, asyncio.timeout(GENEROUS):
        await asyncio.gather(*(got(client, HttpRequest(url=served.url())) for _ in range(2)))

        assert served.connections == 2


@pytest.mark.parametrize(("method", "is_asked_twice"), [("GET", True), ("POST", False)])
async def test_a_kept_connection_that_dies_unanswered_is_replaced_for_what_may_be_asked_twice(
    method: str, is_asked_twice: bool
) -> None:
    async def answer(asked: Asked, writer: asyncio.StreamWriter) -> None:
        if asked.connection == 1 and len(served.asked) == 2:
            writer.close()
        else:
            writer.write(whole(b"x"))

    async with serving(answer) as served, HttpClient({}) as client:
        await got(client, HttpRequest(url=served.url()))
        request = HttpRequest(url=served.url(), method=method)
        if is_asked_twice:
            assert await got(client, request) == (200, b"x")
        else:
            with pytest.raises(HttpError, match="before it answered"):
                await got(client, request)

    assert len(served.asked) == (3 if is_asked_twice else 2)


async def test_a_connection_that_was_closed_while_idle_is_not_tried() -> None:
    async def answer(asked: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(whole(b"x"))
        writer.close()
        await writer.wait_closed()
        closed.set()

    async with serving(answer) as served, HttpClient({}) as client:
        for _ in range(2):
            closed = asyncio.Event()
            assert await got(client, HttpRequest(url=served.url(), method="POST")) == (200, b"x")
            async with asyncio.timeout(GENEROUS):
                await closed.wait()
            await asyncio.sleep(0)  # the loop's next round sees the end

        assert served.connections == 2


async def test_the_body_comes_piece_by_piece_while_the_server_still_writes() -> None:
    seen = asyncio.Event()

    async def answer(asked: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(CHUNKED + chunk(b"first"))
        await seen.wait()
        writer.write(chunk(b"second") + LAST)

    async with (
        asyncio.timeout(GENEROUS),
        serving(answer) as served,
        HttpClient({}) as client,
        client.send(HttpRequest(url=served.url())) as response,
    ):
        chunks = aiter(response.chunks())
        assert await anext(chunks) == b"first"
        seen.set()
        assert await anext(chunks) == b"second"


async def test_any_status_is_an_answer_and_no_redirect_is_followed() -> None:
    moved = whole(b"", "Location: /there", status="302 Found")
    async with (
        serving(moved) as served,
        HttpClient({}) as client,
        client.send(HttpRequest(url=served.url())) as response,
    ):
        assert (response.status, response.headers.get("LOCATION")) == (302, "/there")

    assert len(served.asked) == 1


async def test_interim_answers_are_passed_over() -> None:
    async with serving(b"HTTP/1.1 103 Early Hints\r\n\r\n" * 3 + whole(b"x")) as served, HttpClient({}) as client:
        assert await got(client, HttpRequest(url=served.url())) == (200, b"x")


@pytest.mark.parametrize(
    ("encoding", "packed"),
    [
        ("gzip", gzip.compress(b"hello " * 50_000)),
        ("gzip", gzip.compress(b"hello " * 20_000) + gzip.compress(b"hello " * 30_000) + b"\0\0"),
        ("deflate", zlib.compress(b"hello " * 50_000)),
        ("deflate", zlib.compress(b"hello " * 50_000)[2:-4]),
        ("identity", b"hello " * 50_000),
    ],
)
async def test_a_compressed_body_is_unpacked(encoding: str, packed: bytes) -> None:
    async with serving(whole(packed, f"Content-Encoding: {encoding}")) as served, HttpClient({}) as client:
        assert await got(client, HttpRequest(url=served.url())) == (200, b"hello " * 50_000)


@given(
    text=st.binary(max_size=300_000).map(lambda seed: seed * 50),
    cuts=st.lists(st.integers(1, 5000), min_size=1, max_size=20),
    raw=st.booleans(),
)
def test_unpacking_does_not_depend_on_where_the_pieces_end(text: bytes, cuts: list[int], raw: bool) -> None:
    packed = zlib.compress(text)[2:-4] if raw else gzip.compress(text)
    reader = BodyReader("deflate" if raw else "gzip", most=1 << 30, host="h")
    found = bytearray()
    at = 0
    while at < len(packed):
        size = cuts[at % len(cuts)]
        found += b"".join(reader.feed(packed[at : at + size]))
        at += size
    reader.end()

    assert bytes(found) == text


async def test_a_body_over_the_limit_is_refused_even_where_it_is_small_on_the_wire() -> None:
    bomb = whole(gzip.compress(bytes(5_000_000)), "Content-Encoding: gzip")
    async with serving(bomb) as served:
        error = await failure(HttpRequest(url=served.url(), most_body=100_000))

    assert (error.kind, str(error)) == (
        "too_large",
        f"The answer of 127.0.0.1:{served.port} has more than 100,000 bytes.",
    )


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (b"HTTP/1.1 200 OK\r\n" + b"X-Long: " + b"a" * 100_000, "too_large"),
        (b"HTTP/1.1 100 Continue\r\n\r\n" * 30, "protocol"),
        (b"220 smtp.example.org ESMTP\r\n\r\n", "protocol"),
        (CHUNKED + b"zz\r\nhello\r\n", "protocol"),
        (whole(b"no gzip at all", "Content-Encoding: gzip"), "protocol"),
        (whole(b"x", "Content-Encoding: br"), "protocol"),
        (whole(gzip.compress(b"hello", mtime=0)[:-6], "Content-Encoding: gzip"), "closed"),
    ],
)
async def test_what_cannot_be_taken_fails_with_its_kind(answer: bytes, kind: str) -> None:
    async with serving(answer) as served:
        assert (await failure(HttpRequest(url=served.url()))).kind == kind


@pytest.mark.parametrize(
    "said", [b"", b"HTTP/1.1 200", whole(b"hello")[:-1], CHUNKED + chunk(b"one"), CHUNKED + b"5\r\nhe"]
)
async def test_an_answer_that_ends_too_early_says_so(said: bytes) -> None:
    async def answer(asked: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(said)
        writer.close()

    async with serving(answer) as served:
        assert (await failure(HttpRequest(url=served.url()))).kind == "closed"


async def test_a_reset_connection_says_so() -> None:
    async def answer(asked: Asked, writer: asyncio.StreamWriter) -> None:
        plug: socket.socket = writer.get_extra_info("socket")
        plug.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        writer.transport.abort()

    async with serving(answer) as served:
        assert (await failure(HttpRequest(url=served.url()))).kind == "closed"


@pytest.mark.parametrize(
    ("said", "limits", "words"),
    [
        (b"", Timeouts(first_byte=0.05), "gave no answer within 0.05 seconds"),
        (b"HTTP/1.1 200 OK\r\n", Timeouts(first_byte=0.05), "gave no answer within 0.05 seconds"),
        (CHUNKED + chunk(b"one"), Timeouts(idle=0.05), "sent nothing for 0.05 seconds"),
    ],
)
async def test_silence_has_an_end(said: bytes, limits: Timeouts, words: str) -> None:
    async with serving(said) as served:
        error = await failure(HttpRequest(url=served.url(), timeouts=limits))

    assert error.kind == "timeout"
    assert words in str(error)


async def test_a_closed_port_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]

    error = await failure(HttpRequest(url=Url.parse(f"http://127.0.0.1:{port}/")))

    assert (error.kind, str(error)) == ("connect", f"No connection to 127.0.0.1:{port}: Connection refused.")


async def test_a_cancelled_exchange_closes_its_socket() -> None:
    begun = asyncio.Event()

    async def answer(asked: Asked, writer: asyncio.StreamWriter) -> None:
        begun.set()

    async with asyncio.timeout(GENEROUS), serving(answer) as served, HttpClient({}) as client:
        task = asyncio.create_task(got(client, HttpRequest(url=served.url())))
        await begun.wait()
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()
        await served.hung_up.wait()


async def test_a_given_address_is_the_one_connected_to() -> None:
    async with serving(whole(b"x")) as served, HttpClient({}) as client:
        named = replace(served.url("/a"), host="no-such-host.invalid")

        assert await got(client, HttpRequest(url=named, address="127.0.0.1")) == (200, b"x")

    assert served.asked[0].header("host") == f"no-such-host.invalid:{served.port}"


async def test_https_is_checked_against_the_name() -> None:
    async with serving(whole(b"x"), secure=True) as served, HttpClient({}, tls=Tls(trusting)) as client:
        assert await got(client, HttpRequest(url=served.url())) == (200, b"x")
        assert await got(client, HttpRequest(url=served.url(), address="127.0.0.1")) == (200, b"x")
        other = replace(served.url(), host="other.invalid")
        assert (await failure(HttpRequest(url=other, address="127.0.0.1"), client)).kind == "tls"

        assert (await failure(HttpRequest(url=served.url()))).kind == "tls"


async def test_a_header_cannot_smuggle_another() -> None:
    async with serving(whole(b"x")) as served:
        for value in ("b\r\nX-C: d", "ü"):
            error = await failure(HttpRequest(url=served.url(), headers=(("X-A", value),)))
            assert error.kind == "url"

    assert served.asked == []


@pytest.mark.parametrize(
    "text",
    [
        "ftp://example.org/",
        "http:///path",
        "http://user:secret@example.org/",
        "http://example.org:0/",
        "http://example.org:99999/",
        "http://exa mple.org/",
        "http://example.org/\r\nX: y",
        "http://example.org\\@other.org/",
        "http://[::1/",
        "http://ex%61mple.org/",
        "http://0x7f.1/",
        "http://127.1/",
        "http://a..b/",
        "http://exa\u200bmple.org/",
        "http://example.org?@other.org/",
        "//example.org",
        "",
    ],
)
def test_what_is_no_plain_url_is_refused(text: str) -> None:
    with pytest.raises(BadUrl):
        Url.parse(text)


def test_a_url_is_written_as_it_is_asked_for() -> None:
    assert (
        str(Url.parse("HTTPS://Bücher.Example:443/ä?ö=%20#part")) == "https://xn--bcher-kva.example/%C3%A4?%C3%B6=%20"
    )
    assert Url.parse("http://[::1]:8080").authority == "[::1]:8080"
    assert Url.parse("http://[::ffff:10.0.0.1]/").host == Url.parse("http://10.0.0.1./").host == "10.0.0.1"
