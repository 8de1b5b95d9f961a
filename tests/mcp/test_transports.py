"""Servers over HTTP, and in this very process."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from ferrule.core.calls import Status
from ferrule.mcp.config import InProcess, Remote, in_process
from ferrule.mcp.server_connection import ServerConnection
from ferrule.mcp.server_context import ServerTrouble
from tests.host.processes.forking import Forks, forks
from tests.mcp.running import HANG, config, connected, run, session, text_of, words
from tests.requirement import requirement

ROOT = Path(__file__).parent.parent.parent
PACKAGED = f"""
import os, sys
sys.path.insert(0, {str(ROOT)!r})
import uvicorn.lifespan.on, uvicorn.loops.auto, uvicorn.protocols.http.auto, uvicorn.protocols.websockets.auto
from tests.mcp.servers.packaged import make

def run(kind, port):
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 1)
    os.dup2(silence, 2)
    make().run(kind, host="127.0.0.1", port=int(port))
"""


@pytest.fixture(scope="module")
def servers() -> Generator[Forks]:
    with forks(PACKAGED) as servers:
        yield servers


@contextmanager
def serving(servers: Forks, kind: str, port: int) -> Generator[None]:
    servers.start(kind, str(port))
    try:
        yield
    finally:
        servers.kill()


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


async def listens(port: int) -> None:
    async with asyncio.timeout(HANG):
        while True:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                await asyncio.sleep(0.02)
            else:
                writer.close()
                return


async def answered(server: ServerConnection, tool: str, arguments: Mapping[str, Any]) -> str:
    """Once it is up again: until then every call is refused at once."""
    async with asyncio.timeout(HANG):
        while True:
            try:
                return await text_of(server, tool, arguments)
            except ServerTrouble:
                await asyncio.sleep(0.02)


@requirement("MCP-1", "MCP-2")
@pytest.mark.parametrize(("kind", "path"), [("streamable-http", "mcp"), ("sse", "sse")])
async def test_a_server_over_http_is_used_and_found_again_when_it_was_started_anew(
    tmp_path: Path, servers: Forks, kind: str, path: str
) -> None:
    port = free_port()
    remote = Remote("sse" if kind == "sse" else "http", f"http://127.0.0.1:{port}/{path}")
    async with connected(tmp_path, remote) as server:
        with pytest.raises(ServerTrouble, match="is down"):
            await server.ready()
        with serving(servers, kind, port):
            await listens(port)
            assert await answered(server, "add", {"a": 2, "b": 3}) == "5"
            assert await text_of(server, "count", {"to": 3}) == "counted"
            assert [one.uri for one in await server.resources()] == ["note://today"]
        with pytest.raises(ServerTrouble):
            await text_of(server, "add", {"a": 1, "b": 1})
        with serving(servers, kind, port):
            await listens(port)
            assert await answered(server, "add", {"a": 1, "b": 1}) == "2"


@requirement("MCP-1")
async def test_a_server_object_runs_in_this_process(tmp_path: Path) -> None:
    from tests.mcp.servers.packaged import make

    async with session(tmp_path, *in_process(**{"my.own": make()})) as (running, servers):
        await servers.wait_until_known(HANG)
        added = await run(running, "mcp__my_own__add", {"a": "2", "b": 40})  # numbers as models write them
        odd = await run(running, "mcp__my_own__odd_name_with_signs")
        broken = await run(running, "mcp__my_own__broken")

    assert (words(added), words(odd)) == ("42", "odd")
    assert (broken.status, "Error executing tool broken" in words(broken)) == (Status.FAILED, True)


@requirement("MCP-1")
async def test_progress_of_a_server_object_is_heard(tmp_path: Path) -> None:
    from tests.mcp.servers.packaged import make

    heard: list[float] = []

    async def listen(progress: float, total: float | None, message: str | None) -> None:
        heard.append(progress)

    async with connected(tmp_path, InProcess(make())) as server:
        await server.call("count", {"to": 3}, listen)

    assert heard == [1, 2, 3]


@requirement("MCP-1")
async def test_a_server_that_wants_a_sign_in_says_so_where_nobody_can(tmp_path: Path) -> None:
    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Knows the addresses that a sign-in goes through, and lets nobody in."""
        request = (await reader.readuntil(b"\r\n\r\n")).decode()
        path, host = request.split()[1], f"http://127.0.0.1:{port}"
        status, body, more = "404 Not Found", "", ""
        if path.startswith("/.well-known/oauth-protected-resource"):
            status, body = "200 OK", f'{{"resource": "{host}/mcp", "authorization_servers": ["{host}"]}}'
        elif path.startswith("/.well-known/oauth-authorization-server"):
            status = "200 OK"
            body = (
                f'{{"issuer": "{host}", "authorization_endpoint": "{host}/authorize", "token_endpoint": "{host}/token",'
                f' "registration_endpoint": "{host}/register", "response_types_supported": ["code"],'
                ' "code_challenge_methods_supported": ["S256"]}'
            )
        elif path == "/register":
            status, body = "201 Created", '{"client_id": "x", "redirect_uris": ["http://127.0.0.1/callback"]}'
        elif path == "/mcp":
            status, more = "401 Unauthorized", "WWW-Authenticate: Bearer\r\n"
        head = f"HTTP/1.1 {status}\r\n{more}Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        writer.write(f"{head}Connection: close\r\n\r\n{body}".encode())
        await writer.drain()
        writer.close()

    listener = await asyncio.start_server(refuse, "127.0.0.1", 0)
    port = listener.sockets[0].getsockname()[1]
    async with listener, connected(tmp_path, Remote("http", f"http://127.0.0.1:{port}/mcp"), name="web") as server:
        with pytest.raises(ServerTrouble, match="ferrule mcp test web"):
            await server.ready()


@requirement("MCP-1")
async def test_headers_are_sent_also_those_that_a_command_prints(tmp_path: Path) -> None:
    seen: list[str] = []

    async def note(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append((await reader.readuntil(b"\r\n\r\n")).decode().lower())
        writer.write(b"HTTP/1.1 500 Broken\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        await writer.drain()
        writer.close()

    listener = await asyncio.start_server(note, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}/mcp"
    helper = """printf '{"Authorization": "Bearer abc"}'"""
    async with listener, connected(tmp_path, Remote("http", url, {"X-Team": "blue"}, helper)) as server:
        with pytest.raises(ServerTrouble):
            await server.ready()

    assert "authorization: bearer abc" in seen[0]
    assert "x-team: blue" in seen[0]


async def test_a_command_that_prints_no_headers_is_named(tmp_path: Path) -> None:
    async with connected(tmp_path, Remote("http", "http://127.0.0.1:9/", headers_helper="echo no")) as server:
        with pytest.raises(ServerTrouble, match="`headersHelper` did not print a JSON object"):
            await server.ready()
    assert config(Remote("sse", "http://a.test/")).kind == "sse"
