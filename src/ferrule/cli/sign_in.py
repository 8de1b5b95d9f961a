"""A person at a terminal who is sent to a page in the browser and comes back through a port of this machine."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping
from urllib.parse import parse_qsl, urlsplit

from ..mcp.config import Remote, Transport

DEFAULT_PORT = 51789
SECONDS = 300.0
HEAD = "HTTP/1.1 200 OK\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n"
THANKS = "Thank you. You can close this page and go back to the terminal.\n"
REFUSED = "The sign-in was refused. You can close this page and go back to the terminal.\n"
ELSEWHERE = "No sign-in is pending.\n"


class TerminalSignIn:
    """Satisfies `mcp.callbacks.SignIn`."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._state = ""
        self._came: asyncio.Future[Mapping[str, str]] | None = None
        self._server: asyncio.Server | None = None

    @classmethod
    def of(cls, transport: Transport) -> TerminalSignIn | None:
        """`None` for a server without sign-in."""
        return cls(transport.callback_port or DEFAULT_PORT) if isinstance(transport, Remote) else None

    @property
    def address(self) -> str:
        return f"http://localhost:{self._port}/callback"

    async def send_to(self, url: str, /) -> None:
        self._state = dict(parse_qsl(urlsplit(url).query)).get("state", "")
        self._came = asyncio.get_running_loop().create_future()
        try:
            self._server = await asyncio.start_server(self._on_visit, "127.0.0.1", self._port)
        except OSError as error:
            raise OSError(
                f"cannot listen on {self.address} for the sign-in: {error.strerror}. "
                "Stop what uses that port, or set another `oauth.callbackPort`"
            ) from None
        print(f"Open this page to sign in:\n\n  {url}\n", file=sys.stderr, flush=True)

    async def answer(self) -> Mapping[str, str]:
        assert self._came is not None, "the person has been sent there"
        assert self._server is not None, "and something listens for them"
        try:
            async with asyncio.timeout(SECONDS):
                return await self._came
        except TimeoutError:
            return {"error": f"the sign-in was not completed within {SECONDS:g} seconds"}
        finally:
            self._server.close()

    async def _on_visit(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Only the page that they were sent to knows the state; other requests are ignored."""
        parts = (await reader.readline()).split()
        target = urlsplit(parts[1].decode("latin-1") if len(parts) > 1 else "")
        query = dict(parse_qsl(target.query))
        awaited = target.path == "/callback" and query.get("state", "") == self._state
        words = ELSEWHERE if not awaited else THANKS if "code" in query else REFUSED
        writer.write(f"{HEAD}{words}".encode())
        await writer.drain()
        writer.close()
        if awaited and self._came is not None and not self._came.done():
            self._came.set_result(query)
