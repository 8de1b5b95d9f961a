"""Signing in at a server over real sockets, with a program in the place of the browser."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import re
import time
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from ferrule.cli.sign_in import TerminalSignIn
from ferrule.mcp.config import Remote
from ferrule.mcp.server_context import ServerTrouble, Timing
from tests.cli.running import FERRULE, environment
from tests.mcp.running import HANG, connected, text_of
from tests.mcp.servers.authorization import Authorization, wanting_a_sign_in
from tests.mcp.test_transports import answered, free_port
from tests.requirement import requirement

ADD = {"a": 1, "b": 2}


class Browser(TerminalSignIn):
    """Goes where it is sent, and back with what it gets."""

    def __init__(self, port: int, *, first: float = 0) -> None:
        super().__init__(port)
        self.page = ""
        self._first = first

    async def send_to(self, url: str, /) -> None:
        await super().send_to(url)
        self._visit = asyncio.ensure_future(self._visited(url))

    async def _visited(self, url: str) -> None:
        await asyncio.sleep(self._first)
        self.page = await asyncio.to_thread(visit, url)


def visit(url: str) -> str:
    with urllib.request.urlopen(url, timeout=HANG) as response:
        return response.read().decode()


def remote(wanting: Authorization, **more: Any) -> Remote:
    return Remote("http", f"{wanting.url}/mcp", **more)


def kept(folder: Path) -> tuple[Path, dict[str, Any]]:
    (file,) = (folder / "mcp" / "tokens").iterdir()
    return file, json.loads(file.read_text())


def change(folder: Path, **tokens: Any) -> None:
    file, content = kept(folder)
    file.write_text(json.dumps({**content, "tokens": {**content["tokens"], **tokens}}))


@requirement("MCP-1")
async def test_a_person_signs_in_once_and_what_it_gave_is_private_and_used_again(tmp_path: Path) -> None:
    async with wanting_a_sign_in() as wanting:
        browser = Browser(free_port())
        async with connected(tmp_path, remote(wanting), sign_in=browser) as server:
            assert await text_of(server, "add", ADD) == "3"
        async with connected(tmp_path, remote(wanting)) as without_a_person:
            assert await text_of(without_a_person, "add", ADD) == "3"

    file, _ = kept(tmp_path)
    assert wanting.asked == ["register", "sign-in for read write", "authorization_code"]
    assert browser.page.startswith("Thank you.")
    assert [path.stat().st_mode & 0o777 for path in (file, file.parent)] == [0o600, 0o700]


@requirement("MCP-1")
async def test_a_token_that_has_ended_is_renewed_without_a_person(tmp_path: Path) -> None:
    async with wanting_a_sign_in() as wanting:
        async with connected(tmp_path, remote(wanting), sign_in=Browser(free_port())) as server:
            await server.ready()
        wanting.access.clear()
        change(tmp_path, ends=time.time() - 1)
        async with connected(tmp_path, remote(wanting)) as later:
            assert await text_of(later, "add", ADD) == "3"

        assert wanting.asked[3:] == ["refresh_token"]
        assert kept(tmp_path)[1]["tokens"]["refresh_token"] in wanting.renewals


@requirement("MCP-1")
async def test_a_token_that_ends_while_it_is_used_is_renewed(tmp_path: Path) -> None:
    async with wanting_a_sign_in() as wanting:
        wanting.lasts = 0
        async with connected(tmp_path, remote(wanting), sign_in=Browser(free_port())) as server:
            await server.ready()
            wanting.access.clear()
            assert await text_of(server, "add", ADD) == "3"

    assert wanting.asked.count("register") == 1
    assert wanting.asked[-1] == "refresh_token"


@requirement("MCP-1")
async def test_a_token_that_is_refused_before_its_end_is_renewed_with_the_next_try(tmp_path: Path) -> None:
    async with wanting_a_sign_in() as wanting:
        wanting.lasts = None
        async with connected(tmp_path, remote(wanting), sign_in=Browser(free_port())) as server:
            await server.ready()
        wanting.access.clear()
        async with connected(tmp_path, remote(wanting)) as later:
            with pytest.raises(ServerTrouble, match="renewed on the next try"):
                await later.ready()
            assert await answered(later, "add", ADD) == "3"

    assert wanting.asked[3:] == ["refresh_token"]


@requirement("MCP-1")
async def test_where_nobody_is_there_the_error_says_what_to_do_and_nothing_is_registered(tmp_path: Path) -> None:
    async with wanting_a_sign_in() as wanting:
        slow = Timing(begin_after=0, first_pause=HANG)
        async with connected(tmp_path, remote(wanting), timing=slow, name="web") as server:
            with pytest.raises(ServerTrouble, match=r"a person has to sign in first\. Run `ferrule mcp test web`"):
                await server.ready()
        async with connected(tmp_path, remote(wanting), sign_in=Browser(free_port())) as server:
            assert await text_of(server, "add", ADD) == "3"

    assert wanting.asked.count("register") == 1


@requirement("MCP-1")
async def test_a_token_that_can_not_be_renewed_asks_for_a_person(tmp_path: Path) -> None:
    async with wanting_a_sign_in() as wanting:
        async with connected(tmp_path, remote(wanting), sign_in=Browser(free_port())) as server:
            await server.ready()
        wanting.access.clear()
        wanting.renewals.clear()
        change(tmp_path, ends=1)
        async with connected(tmp_path, remote(wanting), timing=Timing(begin_after=0, first_pause=HANG)) as later:
            with pytest.raises(ServerTrouble, match="a person has to sign in first"):
                await later.ready()


@requirement("MCP-1")
async def test_a_person_who_refuses_is_not_waited_for(tmp_path: Path) -> None:
    async with wanting_a_sign_in() as wanting:
        wanting.consents = False
        browser = Browser(free_port())
        timing = Timing(begin_after=0, first_pause=HANG)
        async with connected(tmp_path, remote(wanting), sign_in=browser, timing=timing) as server:
            with pytest.raises(ServerTrouble, match=r"the sign-in was refused: The person said no\."):
                async with asyncio.timeout(HANG):
                    await server.ready()

    assert "tokens" not in kept(tmp_path)[1]
    assert browser.page.startswith("The sign-in was refused.")


@requirement("MCP-1")
async def test_a_person_may_take_longer_than_a_start(tmp_path: Path) -> None:
    async with wanting_a_sign_in() as wanting:
        async with connected(tmp_path / "warm", remote(wanting), sign_in=Browser(free_port())) as server:
            await server.ready()  # what takes long to load is loaded now
        timing = Timing(begin_after=0, start=2.0)
        browser = Browser(free_port(), first=3.0)
        async with connected(tmp_path, remote(wanting), sign_in=browser, timing=timing) as server:
            assert await text_of(server, "add", ADD) == "3"


@requirement("MCP-1")
async def test_another_port_to_come_back_to_is_registered_anew(tmp_path: Path) -> None:
    async with wanting_a_sign_in() as wanting:
        for _ in range(2):
            async with connected(tmp_path, remote(wanting), sign_in=Browser(free_port())) as server:
                assert await text_of(server, "add", ADD) == "3"
            wanting.access.clear()

    assert wanting.asked.count("register") == 2


@requirement("MCP-1")
async def test_a_client_of_ones_own_and_chosen_scopes_are_used(tmp_path: Path) -> None:
    browser = Browser(free_port())
    async with wanting_a_sign_in() as wanting:
        wanting.clients["mine"] = {"client_id": "mine", "redirect_uris": [browser.address]}
        chosen = remote(wanting, client_id="mine", scopes="read")
        async with connected(tmp_path, chosen, sign_in=browser) as server:
            assert await text_of(server, "add", ADD) == "3"

    assert wanting.asked == ["sign-in for read", "authorization_code"]


async def test_a_stranger_at_the_port_does_not_end_the_sign_in() -> None:
    person = TerminalSignIn(free_port())
    await person.send_to("https://a.test/?state=ours")
    waiting = asyncio.ensure_future(person.answer())

    for stranger in ("/callback?code=theirs&state=other", "/favicon.ico", "/callback?error=x"):
        page = await asyncio.to_thread(visit, person.address.replace("/callback", stranger))
        assert page.startswith("No sign-in is pending")
    await asyncio.to_thread(visit, f"{person.address}?code=right&state=ours")

    assert await waiting == {"code": "right", "state": "ours"}


async def test_a_port_that_is_taken_is_named() -> None:
    first, second = TerminalSignIn(port := free_port()), TerminalSignIn(port)
    await first.send_to("https://a.test/?state=1")

    with pytest.raises(OSError, match=f"cannot listen on http://localhost:{port}/callback"):
        await second.send_to("https://a.test/?state=2")
    waiting = asyncio.ensure_future(first.answer())
    await asyncio.to_thread(visit, f"{first.address}?code=x&state=1")
    await waiting


@requirement("MCP-1")
@pytest.mark.slow
async def test_the_command_line_sends_a_person_to_the_page(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    async with wanting_a_sign_in() as wanting:
        entry: Mapping[str, Any] = {
            "type": "http",
            "url": f"{wanting.url}/mcp",
            "oauth": {"callbackPort": free_port()},
        }
        ours, theirs = pty.openpty()
        process = await asyncio.create_subprocess_exec(
            *FERRULE,
            *("mcp", "test", "web", "--mcp-config", json.dumps({"mcpServers": {"web": entry}})),
            cwd=tmp_path,
            env=environment(tmp_path),
            stdin=theirs,
            stdout=asyncio.subprocess.PIPE,
            stderr=theirs,
        )
        os.close(theirs)
        said = b""
        async with asyncio.timeout(HANG):
            while not (found := re.search(rb"(http://\S+/sign-in\?\S+)\s", said)):
                said += await asyncio.to_thread(os.read, ours, 4096)
            await asyncio.to_thread(visit, found[1].decode())
            out, _ = await process.communicate()
        os.close(ours)

    assert process.returncode == 0
    assert out.decode().startswith("web is up")
