"""What a server is: how it is reached, and on what terms."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import field
from typing import Any, Literal, TypeAlias, assert_never

from ..core.values import named_value, plain_value
from .naming import server_parts


@plain_value
class Stdio:
    """A program that is started, and spoken to over its standard input and output."""

    command: str
    args: tuple[str, ...] = ()
    env: Mapping[str, str] | None = None
    cwd: str | None = None

    def __str__(self) -> str:
        return shlex.join((self.command, *self.args))


@plain_value
class Remote:
    kind: Literal["http", "sse"]
    url: str
    headers: Mapping[str, str] | None = None
    headers_helper: str | None = None
    """A command that prints further headers as JSON."""
    client_id: str | None = None
    callback_port: int | None = None
    scopes: str | None = None

    def __str__(self) -> str:
        return self.url


@plain_value
class InProcess:
    """A server object of the `mcp` package, which runs in this very process."""

    server: Any

    def __str__(self) -> str:
        return "in this process"


@plain_value
class Relayed:
    """A server of the program that started this process, which passes messages on."""

    exchange: Callable[[Mapping[str, Any]], Awaitable[Mapping[str, Any]]] = field(compare=False)
    """Hands over a message of the protocol and returns its answer. Raises `NotRelayed`."""
    inbox: asyncio.Queue[Mapping[str, Any]] = field(compare=False)
    """Messages of the server that answer nothing."""

    def __str__(self) -> str:
        return "in the program that started this one"


class NotRelayed(Exception):
    """A message could not be passed on. The message says why."""


Transport: TypeAlias = Stdio | Remote | InProcess | Relayed


@named_value
class ServerConfig:
    name: str
    transport: Transport
    part: str = ""
    """Its part of the names of its tools."""
    origin: str = ""
    """Where it was configured."""
    timeout: float | None = None
    """Seconds that one call may take without progress."""
    always_load: bool = False
    """Its tools are never deferred."""
    trusted: bool = False
    """What it says about its own tools is trusted."""
    concurrent: bool = False
    """Its calls may run side by side."""

    @property
    def kind(self) -> str:
        match self.transport:
            case Stdio():
                return "stdio"
            case Remote(kind):
                return kind
            case InProcess():
                return "in-process"
            case Relayed():
                return "sdk"
            case _:
                assert_never(self.transport)


def in_process(**servers: Any) -> tuple[ServerConfig, ...]:
    """Server objects by name, for programs that define their own."""
    parts = server_parts(servers)
    return tuple(
        ServerConfig(name=name, transport=InProcess(server), part=parts[name], origin="this program")
        for name, server in servers.items()
    )


def endpoint(transport: Transport) -> Iterator[str]:
    """If it changes, it is another server. Values of variables and headers may be secrets, and are not in it."""
    match transport:
        case Stdio(command, args, env, cwd):
            yield from ("stdio", command, *args, *sorted(env or {}), cwd or "")
        case Remote(kind, url, headers):
            yield from (kind, url, *sorted(headers or {}))
        case InProcess() | Relayed():
            yield "in-process"
        case _:
            assert_never(transport)
