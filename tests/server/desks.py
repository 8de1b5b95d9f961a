"""A desk with a session in a folder of its own, and the official client in the same process."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from mcp import Client
from mcp.types import CallToolResult, TextContent

from ferrule.app.build import Settings, open_session
from ferrule.core.ports import Approver
from ferrule.core.tool import AnyTool
from ferrule.engine.session import Session
from ferrule.server.prompts import PromptSource
from ferrule.server.protocol import Desk

HANG = 30.0
"""Seconds: a generous bound on a hang, never a measure."""
LEGACY, MODERN = "legacy", "2026-07-28"
ERAS = (LEGACY, MODERN)


class Office:
    """A desk, and the sessions that were opened for its clients."""

    def __init__(
        self, folder: Path, *tools: AnyTool, prompts: PromptSource | None = None, builtin: bool = True, **settings: Any
    ) -> None:
        self._settings = Settings(cwd=str(folder), state_folder=folder / ".ferrule-state", **settings)
        self._tools = tools
        self._builtin = builtin
        self.sessions: list[Session] = []
        self.desk = Desk(self._open, prompts=prompts)

    def _open(self, approver: Approver) -> Session:
        session = open_session(self._settings, tools=self._tools, approver=approver, builtin=self._builtin)
        self.sessions.append(session)
        return session

    @asynccontextmanager
    async def client(self, era: str = LEGACY, **options: Any) -> AsyncGenerator[Client]:
        async with Client(self.desk.server(), mode=era, read_timeout_seconds=HANG, **options) as client:
            yield client
        await self.desk.close()


def text(result: CallToolResult) -> str:
    return "\n".join(block.text for block in result.content if isinstance(block, TextContent))
