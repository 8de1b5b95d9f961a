"""`ferrule serve --http` as a real process, with the official client and with requests by hand."""

from __future__ import annotations

import asyncio
import json
import re
import signal
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from ..cli.running import HANG
from ..requirement import requirement
from .desks import LEGACY, MODERN, text
from .processes import INITIALIZE, Served, Sleeper, served

TOKEN = "a-token-for-tests"


class Site:
    def __init__(self, url: str, folder: Path) -> None:
        self.url = url
        self.folder = folder
        self.authority = urlsplit(url).netloc

    def post(self, body: Any, **headers: str) -> tuple[int, str]:
        """By hand: the status, and the new session's id, or else what was said."""
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        with self.answered("POST", data, **headers) as response:
            opened = response.getheader("mcp-session-id") if "Mcp_Session_Id" not in headers else None
            return response.status, opened or response.read().decode()

    @contextmanager
    def answered(self, method: str, body: bytes | None = None, **headers: str) -> Generator[HTTPResponse]:
        given = {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "Authorization": f"Bearer {TOKEN}",
            **{name.replace("_", "-"): value for name, value in headers.items()},
        }
        connection = HTTPConnection(self.authority, timeout=HANG)
        try:
            connection.request(method, "/mcp", body, given)
            with connection.getresponse() as response:
                yield response
        finally:
            connection.close()

    @asynccontextmanager
    async def client(self, era: str = "auto", **options: Any) -> AsyncGenerator[Client]:
        headers = {"Authorization": f"Bearer {TOKEN}"}
        async with (
            httpx2.AsyncClient(headers=headers, timeout=HANG) as http,
            Client(streamable_http_client(self.url, http_client=http), mode=era, **options) as client,
        ):
            yield client


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Generator[Site]:
    yield from _site(tmp_path_factory.mktemp("site"))


def _site(folder: Path, *flags: str) -> Generator[Site]:
    (folder / "a.txt").write_text("one\n")
    mode = ("--permission-mode", "bypassPermissions")
    with served(folder, "--http", "127.0.0.1:0", *mode, *flags, FERRULE_SERVE_TOKEN=TOKEN) as server:
        assert server.process.stderr is not None
        while b"listening at " not in (said := server.process.stderr.readline()):
            assert said, "the server ended"
        yield Site(said.decode().split()[-1], folder)


@requirement("MCP-5")
@pytest.mark.parametrize(("era", "version"), [("auto", MODERN), (LEGACY, "2025-11-25")])
async def test_the_official_client_works_in_either_era(site: Site, era: str, version: str) -> None:
    async with site.client(era) as client:
        result = await client.call_tool("Grep", {"pattern": "on.", "output_mode": "content"})

        assert client.protocol_version == version
        assert text(result).endswith("a.txt:1:one")


@requirement("MCP-5")
async def test_a_hundred_calls_at_once_are_all_answered(site: Site) -> None:
    async def ask(number: int) -> str:
        return text(await clients[number % 4].call_tool("Bash", {"command": f"echo number {number}"}))

    async with site.client() as a, site.client(LEGACY) as b, site.client(LEGACY) as c, site.client() as d:
        clients = (a, b, c, d)
        answers = await asyncio.gather(*(ask(number) for number in range(100)))

    assert [answer.split()[:2] for answer in answers] == [["number", str(number)] for number in range(100)]


@requirement("MCP-5")
async def test_each_client_has_a_session_of_its_own(site: Site) -> None:
    (site.folder / "below").mkdir(exist_ok=True)
    async with site.client(LEGACY) as first, site.client(LEGACY) as second:
        await first.call_tool("Bash", {"command": "cd below"})
        where = [text(await client.call_tool("Bash", {"command": "pwd"})).split()[0] for client in (first, second)]

    assert where == [f"{site.folder}/below", str(site.folder)]


@requirement("MCP-5")
@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"Authorization": "Bearer wrong"}, 401),
        ({"Authorization": ""}, 401),
        ({"Host": "evil.example"}, 421),
        ({"Host": "localhost"}, 421),
        ({"Origin": "http://evil.example"}, 403),
        ({"Content_Type": "text/plain"}, 400),
    ],
)
def test_a_request_from_the_wrong_place_is_turned_away(site: Site, headers: dict[str, str], status: int) -> None:
    assert site.post(INITIALIZE, **headers)[0] == status


def test_a_request_that_is_too_long_or_no_json_is_refused(site: Site) -> None:
    assert site.post(b" " * ((16 << 20) + 1))[0] == 413
    assert site.post(b"garbage")[0] == 400
    assert site.post(INITIALIZE, Mcp_Session_Id="unknown")[0] == 404


@requirement("MCP-5")
@pytest.mark.parametrize(
    ("asked", "spoken"),
    [
        *((version, version) for version in ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")),
        *((unknown, "2025-11-25") for unknown in ("1999-01-01", "2026-07-28", "")),
    ],
)
def test_a_client_is_spoken_to_in_the_revision_that_it_asks_for_or_the_last_that_opens_so(
    site: Site, asked: str, spoken: str
) -> None:
    hello = {**INITIALIZE, "params": {**INITIALIZE["params"], "protocolVersion": asked}}
    with site.answered("POST", json.dumps(hello).encode()) as response:
        assert f'"protocolVersion":"{spoken}"' in response.read().decode()


def test_several_messages_at_once_are_refused(site: Site) -> None:
    assert site.post([INITIALIZE, INITIALIZE])[0] == 400


def _event_ids(response: HTTPResponse) -> Generator[str]:
    for line in response:
        if found := re.match(rb"id: (.+?)\r?\n", line):
            yield found[1].decode()


@requirement("MCP-5")
def test_a_client_whose_stream_breaks_off_comes_back_for_the_result(site: Site) -> None:
    version = {"Mcp_Protocol_Version": "2025-11-25"}
    (gate := site.folder / "gate").unlink(missing_ok=True)
    _, session = site.post(INITIALIZE)
    call = {"name": "Bash", "arguments": {"command": f"until test -e {gate}; do sleep 0.05; done; echo through"}}
    request = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
    with site.answered("POST", json.dumps(request).encode(), Mcp_Session_Id=session, **version) as broken:
        last = next(_event_ids(broken))
    gate.touch()

    with site.answered("GET", Mcp_Session_Id=session, Last_Event_ID=last, **version) as resumed:
        result = next(line for line in resumed if b'"id":1' in line)
    assert b"through" in result


@requirement("MCP-5")
def test_what_one_client_was_sent_is_not_sent_to_another_that_comes_back(site: Site) -> None:
    version = {"Mcp_Protocol_Version": "2025-11-25"}
    sessions, first = [site.post(INITIALIZE)[1] for _ in range(2)], ""
    for number, session in enumerate(sessions):
        call = {"name": "Bash", "arguments": {"command": f"echo secret {number}"}}
        request = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
        with site.answered("POST", json.dumps(request).encode(), Mcp_Session_Id=session, **version) as response:
            first = first or next(_event_ids(response))
            assert f"secret {number}" in response.read().decode()

    with site.answered("GET", Mcp_Session_Id=sessions[1], Last_Event_ID=first, **version) as resumed:
        assert "secret 0" not in resumed.read().decode()


def test_the_token_is_not_in_the_environment_of_commands(site: Site) -> None:
    call = {"name": "Bash", "arguments": {"command": "env"}}
    _, session = site.post(INITIALIZE)

    _, said = site.post({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}, Mcp_Session_Id=session)

    assert "PATH=" in said
    assert TOKEN not in said


def _printed(server: Served) -> tuple[str, str]:
    """The line before the address, and the address."""
    assert server.process.stderr is not None
    return server.process.stderr.readline().decode(), server.process.stderr.readline().decode().split()[-1]


def test_a_server_on_loopback_that_was_given_no_token_makes_one_and_lets_nobody_in_without(tmp_path: Path) -> None:
    with served(tmp_path, "--http", "0") as server:
        line, url = _printed(server)
        token = line.split()[-1]
        site = Site(url, tmp_path)

        assert site.post(INITIALIZE)[0] == 401
        assert site.post(INITIALIZE, Authorization=f"Bearer {token}")[0] == 200
        assert len(token) >= 40


def test_each_start_makes_another_token(tmp_path: Path) -> None:
    with served(tmp_path, "--http", "0") as one, served(tmp_path, "--http", "0") as other:
        assert _printed(one)[0] != _printed(other)[0]


def test_a_server_can_be_told_to_do_without_a_token_on_loopback(tmp_path: Path) -> None:
    with served(tmp_path, "--http", "0", "--no-token") as server:
        assert server.process.stderr is not None
        site = Site(server.process.stderr.readline().decode().split()[-1], tmp_path)

        assert site.post(INITIALIZE, Authorization="")[0] == 200


@requirement("MCP-5")
@pytest.mark.slow
@pytest.mark.parametrize("background", [True, False])
def test_the_session_of_a_client_that_vanished_ends_with_what_it_started(tmp_path: Path, background: bool) -> None:
    sleeper = Sleeper(tmp_path)
    for site in _site(tmp_path, "--idle-timeout", "3"):
        _, session = site.post(INITIALIZE)
        call = {"name": "Bash", "arguments": {"command": sleeper.command, "run_in_background": background}}
        request = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
        with site.answered("POST", json.dumps(request).encode(), Mcp_Session_Id=session):
            sleeper.started()

        assert sleeper.has_ended()
        assert site.post(request, Mcp_Session_Id=session)[0] == 404


@pytest.mark.slow
def test_a_signal_ends_the_server_in_silence_while_a_client_listens(tmp_path: Path) -> None:
    with served(tmp_path, "--http", "0", "--no-token") as server:
        assert server.process.stderr is not None
        site = Site(server.process.stderr.readline().decode().split()[-1], tmp_path)
        _, session = site.post(INITIALIZE)
        listening = HTTPConnection(site.authority, timeout=HANG)
        listening.request("GET", "/mcp", headers={"Accept": "text/event-stream", "Mcp-Session-Id": session})
        assert listening.getresponse().status == 200
        server.process.terminate()

        assert server.process.wait(HANG) == 128 + signal.SIGTERM
        assert server.process.stderr.read() == b""
        listening.close()
