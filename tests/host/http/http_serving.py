"""A loopback server that says exactly the bytes a test wants."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from ferrule.host.http.urls import Url

TLS = Path(__file__).parent / "tls"

Answering = Callable[["Asked", asyncio.StreamWriter], Awaitable[None]]


@dataclass
class Asked:
    """One request as it came."""

    head: str
    body: bytes
    connection: int
    reader: asyncio.StreamReader

    @property
    def line(self) -> str:
        return self.head.split("\r\n", 1)[0]

    def header(self, name: str) -> str:
        for line in self.head.split("\r\n")[1:]:
            key, _, value = line.partition(": ")
            if key.lower() == name.lower():
                return value
        return ""


@dataclass
class Served:
    port: int = 0
    scheme: str = "http"
    asked: list[Asked] = field(default_factory=list[Asked])
    connections: int = 0
    hung_up: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when a client closed its connection."""

    def url(self, target: str = "/") -> Url:
        host = "localhost" if self.scheme == "https" else "127.0.0.1"
        return Url.parse(f"{self.scheme}://{host}:{self.port}{target}")


@asynccontextmanager
async def serving(answer: Answering | bytes, *, secure: bool = False) -> AsyncGenerator[Served]:
    """Each request is answered by `answer`, or with those bytes; the connection stays open after it."""
    served = Served(scheme="https" if secure else "http")
    tasks: set[asyncio.Task[None]] = set()

    def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks.add(asyncio.create_task(serve(reader, writer)))

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        served.connections += 1
        number = served.connections
        try:
            while not writer.is_closing():
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                asked = Asked(head.removesuffix("\r\n\r\n"), b"", number, reader)
                asked.body = await reader.readexactly(int(asked.header("content-length") or 0))
                served.asked.append(asked)
                if isinstance(answer, bytes):
                    writer.write(answer)
                else:
                    await answer(asked, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            served.hung_up.set()
        finally:
            writer.close()

    context = server_context() if secure else None
    server = await asyncio.start_server(connected, "127.0.0.1", 0, ssl=context, limit=1 << 22)
    served.port = server.sockets[0].getsockname()[1]
    try:
        yield served
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.sleep(0)  # the loop closes sockets in its next round


def server_context() -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(TLS / "localhost.pem", TLS / "localhost.key")
    return context


def trusting() -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(TLS / "localhost.pem"))


def whole(body: bytes, *headers: str, status: str = "200 OK") -> bytes:
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
LAST = b"0\r\n\r\n"
