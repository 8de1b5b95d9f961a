"""Connections, sessions and servers for tests."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from ferrule import ToolCall, ToolOutcome
from ferrule.app.build import Settings, open_session
from ferrule.core.content import plain_text
from ferrule.core.ports import Questioner
from ferrule.engine.session import Session
from ferrule.mcp.callbacks import SignIn
from ferrule.mcp.config import ServerConfig, Stdio, Transport
from ferrule.mcp.server_connection import ServerConnection
from ferrule.mcp.server_context import Around, Timing
from ferrule.mcp.servers import McpServers, ServerLimits
from ferrule.permissions.modes import Mode

RAW = Path(__file__).parent / "servers" / "raw.py"
HANG = 60.0
"""Seconds: a generous bound on a hang, never a measure."""
QUICK = Timing(begin_after=0, first_pause=0.05, longest_pause=0.2)


def raw(*faults: str, env: Mapping[str, str] | None = None) -> Stdio:
    return Stdio(sys.executable, ("-S", str(RAW), *faults), env)


def config(transport: Transport, name: str = "raw", **terms: Any) -> ServerConfig:
    return ServerConfig(name=name, part=terms.pop("part", name), transport=transport, **terms)


@asynccontextmanager
async def connected(
    folder: Path,
    transport: Transport,
    *,
    questioner: Questioner | None = None,
    sign_in: SignIn | None = None,
    roots: tuple[str, ...] = ("file:///project",),
    timing: Timing = QUICK,
    **terms: Any,
) -> AsyncGenerator[ServerConnection]:
    around = Around(state_folder=folder, timing=timing, questioner=questioner, sign_in=sign_in, roots=roots)
    connection = ServerConnection(config(transport, **terms), around, lambda connection, kind: None)
    try:
        yield connection
    finally:
        await connection.close()


@asynccontextmanager
async def session(
    folder: Path, *servers: ServerConfig, limits: ServerLimits | None = None, timing: Timing = QUICK, **settings: Any
) -> AsyncGenerator[tuple[Session, McpServers]]:
    """Nothing is forbidden in it, unless the settings say so."""
    chosen: dict[str, Any] = {"mode": Mode.BYPASS, "state_folder": folder / "state", **settings}
    held = McpServers(servers, Around(state_folder=folder / "state", timing=timing), limits)
    async with open_session(Settings(cwd=str(folder), **chosen), mcp=held) as session:
        yield session, held


async def run(session: Session, name: str, arguments: Mapping[str, Any] | None = None) -> ToolOutcome:
    (outcome,) = await session.run([ToolCall("call-1", name, arguments or {})])
    return outcome


def words(outcome: ToolOutcome) -> str:
    return plain_text(outcome.content)


async def text_of(connection: ServerConnection, tool: str, arguments: Mapping[str, Any] | None = None) -> str:
    result = await connection.call(tool, arguments or {}, nothing)
    return "\n".join(part["text"] for part in result["content"])


async def nothing(progress: float, total: float | None, message: str | None) -> None:
    """For calls whose progress does not matter."""


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(HANG):
        while not holds():  # noqa: ASYNC110 - anything may be what is waited for
            await asyncio.sleep(0.005)
