"""A desk with a session in a folder of its own, and the official client in the same process."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from mcp import Client
from mcp.types import (
    CallToolResult,
    ElicitRequestFormParams,
    ElicitRequestParams,
    ElicitResult,
    ErrorData,
    TextContent,
)

from ferrule.app.build import Settings, open_session
from ferrule.core.tool import AnyTool
from ferrule.engine.session import Session
from ferrule.server.caller import Callers
from ferrule.server.client_person import ClientPerson
from ferrule.server.desk import Desk
from ferrule.server.sources import PromptSource, ResourceSource

HANG = 30.0
"""Seconds: a generous bound on a hang, never a measure."""
LEGACY, MODERN = "legacy", "2026-07-28"
ERAS = (LEGACY, MODERN)


class Office:
    """A desk, and the sessions that were opened for its clients."""

    def __init__(
        self,
        folder: Path,
        *tools: AnyTool,
        prompts: PromptSource | None = None,
        resources: ResourceSource | None = None,
        one_client: bool = False,
        callers: Callers | None = None,
        answer_seconds: float = HANG,
        builtin: bool = True,
        **settings: Any,
    ) -> None:
        self._settings = Settings(cwd=str(folder), state_folder=folder / ".ferrule-state", **settings)
        self._tools = tools
        self._builtin = builtin
        self.sessions: list[Session] = []
        self.desk = Desk(
            self._open,
            callers=callers,
            prompts=prompts,
            resources=resources,
            one_client=one_client,
            answer_seconds=answer_seconds,
        )

    def _open(self, person: ClientPerson) -> Session:
        session = open_session(
            self._settings, tools=self._tools, person=person, approver_answers=True, builtin=self._builtin
        )
        self.sessions.append(session)
        return session

    @asynccontextmanager
    async def client(self, era: str = LEGACY, **options: Any) -> AsyncGenerator[Client]:
        async with Client(self.desk.server(), mode=era, read_timeout_seconds=HANG, **options) as client:
            yield client
        await self.desk.close()


def text(result: CallToolResult) -> str:
    return "\n".join(block.text for block in result.content if isinstance(block, TextContent))


class Person:
    """Answers every form the same way, and remembers them; satisfies the official client's elicitation callback."""

    def __init__(self, answer: ElicitResult | ErrorData) -> None:
        self._answer = answer
        self.forms: list[ElicitRequestFormParams] = []

    @property
    def asked(self) -> list[str]:
        return [form.message for form in self.forms]

    async def __call__(self, context: Any, params: ElicitRequestParams) -> ElicitResult | ErrorData:
        assert isinstance(params, ElicitRequestFormParams)
        self.forms.append(params)
        return self._answer


def filled(**content: Any) -> ElicitResult:
    return ElicitResult(action="accept", content=content)
