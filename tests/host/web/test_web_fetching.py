"""Fetching from real servers on loopback, which a rule opens for these tests."""

from __future__ import annotations

import asyncio
import gzip
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from ferrule.host.http.tls import Tls
from ferrule.host.web.fetching import Body, Fetcher, FetchFailed, Moved
from tests.host.http.http_serving import CHUNKED, Asked, Served, chunk, serving, trusting, whole
from tests.requirement import requirement

Answer = Callable[[Asked, asyncio.StreamWriter], Awaitable[None]]


def opened(host: str) -> bool:
    """A rule for the hosts that these tests serve."""
    return host in ("127.0.0.1", "localhost", "printer.lan")


def fetcher(**more: Any) -> Fetcher:
    return Fetcher(**{"local_hosts": opened, "environ": {}, **more})


@dataclass
class Names:
    """A resolver that gives each answer once, the last for ever."""

    answers: Sequence[Sequence[str]]
    asked: list[tuple[str, int]] = field(default_factory=list[tuple[str, int]])

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        answer = self.answers[min(len(self.asked), len(self.answers) - 1)]
        self.asked.append((host, port))
        return answer


def routes(**pages: bytes) -> Answer:
    async def answer(asked: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(pages[asked.line.split()[1].strip("/") or "root"])

    return answer


@asynccontextmanager
async def endless(first: bytes, more: bytes) -> AsyncGenerator[Served]:
    async def answer(asked: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(first)
        while True:
            writer.write(more)
            await writer.drain()

    async with serving(answer) as served:
        yield served


@requirement("WEB-1")
async def test_a_page_comes_whole_with_its_type() -> None:
    async with serving(whole(b"<p>hi", "Content-Type: text/html; charset=utf-8")) as served:
        body = await fetcher().fetch(str(served.url("/a?b=c")))

    assert body == Body(str(served.url("/a?b=c")), 200, "text/html; charset=utf-8", b"<p>hi")
    assert served.asked[0].line == "GET /a?b=c HTTP/1.1"
    assert served.asked[0].header("host") == f"127.0.0.1:{served.port}"


@requirement("WEB-2")
async def test_without_a_rule_no_connection_is_made_to_this_machine() -> None:
    async with serving(whole(b"secret")) as served:
        for url in (str(served.url()), f"http://localhost:{served.port}/", f"http://[::ffff:127.0.0.1]:{served.port}/"):
            with pytest.raises(FetchFailed, match="Only a rule"):
                await Fetcher(environ={}).fetch(url)

        assert served.connections == 0


@requirement("WEB-2")
async def test_a_public_name_that_resolves_to_this_machine_is_not_connected_to() -> None:
    async with serving(whole(b"secret")) as served:
        names = Names([["127.0.0.1"]])
        with pytest.raises(FetchFailed, match="leads to 127"):
            await Fetcher(resolve=names, environ={}).fetch(f"https://evil.example.com:{served.port}/")

        assert served.connections == 0


@requirement("WEB-2")
async def test_the_connection_goes_to_the_address_that_was_checked() -> None:
    """The name is resolved once, and by nobody else: no other resolver knows it, and a second answer is never seen."""
    async with serving(whole(b"first")) as served:
        names = Names([["127.0.0.1"], ["127.0.0.2"]])
        body = await fetcher(resolve=names).fetch(f"http://printer.lan:{served.port}/")

    assert isinstance(body, Body)
    assert body.data == b"first"
    assert names.asked == [("printer.lan", served.port)]
    assert served.asked[0].header("host") == f"printer.lan:{served.port}"


@requirement("WEB-2")
async def test_each_hop_is_resolved_and_judged_anew() -> None:
    async with serving(routes(root=whole(b"", "Location: /b", status="302 Found"), b=whole(b"never"))) as served:
        names = Names([["127.0.0.1"], ["169.254.169.254"]])
        with pytest.raises(FetchFailed, match="leads to 169"):
            await fetcher(resolve=names).fetch(f"http://localhost:{served.port}/")

        assert [asked.line.split()[1] for asked in served.asked] == ["/"]


@requirement("WEB-1")
async def test_the_certificate_is_checked_for_the_name_and_not_for_the_address() -> None:
    async with serving(whole(b"safe"), secure=True) as served:
        trusted = fetcher(resolve=Names([["127.0.0.1"]]), tls=Tls(trusting))
        body = await trusted.fetch(f"https://localhost:{served.port}/")
        with pytest.raises(FetchFailed, match="No secure connection"):
            await fetcher(resolve=Names([["127.0.0.1"]])).fetch(f"https://localhost:{served.port}/")

    assert isinstance(body, Body)
    assert body.data == b"safe"


async def test_an_address_that_does_not_answer_gives_way_to_the_next() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.2", 0))  # nobody listens there
        async with serving(whole(b"second")) as served:
            names = Names([["127.0.0.2", "127.0.0.1"]])
            body = await fetcher(resolve=names).fetch(f"http://localhost:{served.port}/")

    assert isinstance(body, Body)
    assert body.data == b"second"


@requirement("WEB-1")
async def test_a_redirect_within_the_host_is_followed_on_the_same_connection() -> None:
    pages = routes(root=whole(b"", "Location: /b", status="301 Moved Permanently"), b=whole(b"there"))
    async with serving(pages) as served:
        body = await fetcher().fetch(str(served.url()))

    assert isinstance(body, Body)
    assert (body.url, body.data) == (str(served.url("/b")), b"there")
    assert served.connections == 1


@requirement("WEB-1")
async def test_a_redirect_to_another_host_is_handed_back() -> None:
    answer = whole(b"", "Location: https://example.org/new", status="302 Found")
    async with serving(answer) as served:
        moved = await fetcher().fetch(str(served.url("/old")))

    assert moved == Moved(
        str(served.url("/old")), 302, "https://example.org/new", "it leads to another host, example.org"
    )


@requirement("WEB-1")
async def test_redirects_in_a_circle_end() -> None:
    async with serving(whole(b"", "Location: /", status="302 Found")) as served:
        with pytest.raises(FetchFailed, match="redirects more than 5 times"):
            await fetcher().fetch(str(served.url()))

        assert len(served.asked) == 6


@requirement("WEB-2")
async def test_a_redirect_inside_is_refused_by_its_name() -> None:
    async with serving(whole(b"", "Location: http://169.254.169.254/latest", status="302 Found")) as served:
        with pytest.raises(FetchFailed, match="redirects to http://169"):
            await fetcher().fetch(str(served.url()))


@requirement("WEB-1")
@pytest.mark.parametrize(
    ("status", "words"),
    [
        ("404 Not Found", "answered 404 Not Found. The page does not exist"),
        ("403 Forbidden", "not open to everyone"),
        ("500 Oops", "try again later"),
        ("302 Found", "answered 302 Found."),
        ("599 Odd", "answered 599."),
    ],
)
async def test_a_status_that_is_no_success_is_named(status: str, words: str) -> None:
    async with serving(whole(b"<p>error page", status=status)) as served:
        with pytest.raises(FetchFailed, match=words.replace(".", r"\.")):
            await fetcher().fetch(str(served.url()))


async def test_a_server_that_wants_a_pause_is_quoted() -> None:
    async with serving(whole(b"", "Retry-After: 7", status="429 Too Many Requests")) as served:
        with pytest.raises(FetchFailed, match="Try again in 7 seconds"):
            await fetcher().fetch(str(served.url()))


@requirement("WEB-1")
async def test_an_empty_answer_is_named() -> None:
    async with serving(whole(b"")) as served:
        with pytest.raises(FetchFailed, match="its answer is empty"):
            await fetcher().fetch(str(served.url()))


@requirement("WEB-1")
async def test_a_body_without_end_is_cut_at_its_limit() -> None:
    async with endless(CHUNKED, chunk(b"x" * 10_000)) as served:
        body = await fetcher(most_bytes=100_000).fetch(str(served.url()))

    assert isinstance(body, Body)
    assert 0 < len(body.data) <= 100_000
    assert body.missing == "it has more than 100,000 bytes"


@requirement("WEB-1")
async def test_a_bomb_is_not_unpacked_beyond_the_limit() -> None:
    bomb = gzip.compress(b"0" * 30_000_000)
    async with serving(whole(bomb, "Content-Encoding: gzip")) as served:
        body = await fetcher(most_bytes=1_000_000).fetch(str(served.url()))

    assert isinstance(body, Body)
    assert len(body.data) <= 1_000_000
    assert body.missing == "it has more than 1,000,000 bytes"


@requirement("WEB-1")
async def test_a_server_that_stays_silent_is_given_up() -> None:
    async def silent(asked: Asked, writer: asyncio.StreamWriter) -> None:
        await asked.reader.read()

    async with serving(silent) as served:
        with pytest.raises(FetchFailed, match=r"no answer within 0\.2 seconds"):
            await fetcher(seconds=0.2).fetch(str(served.url()))


@requirement("WEB-1")
async def test_what_came_before_the_time_was_up_is_kept() -> None:
    async def dripping(asked: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(CHUNKED + chunk(b"beginning"))
        await asked.reader.read()

    async with serving(dripping) as served:
        body = await fetcher(seconds=0.5).fetch(str(served.url()))

    assert isinstance(body, Body)
    assert (body.data, body.missing) == (b"beginning", "its end did not come within 0.5 seconds")


@requirement("WEB-1")
async def test_a_cut_body_is_kept_as_far_as_it_came() -> None:
    async def cut(asked: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
        await writer.drain()
        writer.close()

    async with serving(cut) as served:
        body = await fetcher().fetch(str(served.url()))

    assert isinstance(body, Body)
    assert (body.data, body.missing) == (b"half", "the connection was lost before its end")


async def test_what_is_no_http_is_an_error_in_words() -> None:
    async with serving(b"SSH-2.0-OpenSSH_9.6\r\n\r\n") as served:
        with pytest.raises(FetchFailed, match="could not be fetched"):
            await fetcher().fetch(str(served.url()))


async def test_a_host_that_does_not_exist_is_an_error_in_words() -> None:
    async def unknown(host: str, port: int) -> Sequence[str]:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    with pytest.raises(FetchFailed, match="cannot be found: nowhere"):
        await Fetcher(resolve=unknown, environ={}).fetch("https://nowhere.example.com/")


async def test_a_location_in_other_letters_is_read_as_utf8() -> None:
    async def answer(asked: Asked, writer: asyncio.StreamWriter) -> None:
        if asked.line.startswith("GET / "):
            writer.write("HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation: /ü\r\n\r\n".encode())
        else:
            writer.write(whole(asked.line.encode()))

    async with serving(answer) as served:
        body = await fetcher().fetch(str(served.url()))

    assert isinstance(body, Body)
    assert body.data == b"GET /%C3%BC HTTP/1.1"
