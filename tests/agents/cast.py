"""A model that plays another script for each conversation, told apart by its first prompt."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from ferrule.app.build import Settings, open_session
from ferrule.core.calls import ToolCall
from ferrule.core.content import plain_text
from ferrule.core.model import ModelEvent, ModelFacts, Request, ResultTurn, UserTurn
from ferrule.engine.session import Session
from ferrule.permissions.modes import Mode
from ferrule.providers.scripted import ScriptedModel


class Cast:
    name = "cast"
    facts = ModelFacts(input_price=1.0, output_price=1.0)

    def __init__(self, **roles: Sequence[Sequence[ModelEvent]]) -> None:
        """Each role is played where the first prompt of the conversation begins with its name."""
        self._roles = roles
        self._playing: dict[str, ScriptedModel] = {}
        self.requests: list[tuple[str, Request]] = []

    @asynccontextmanager
    async def stream(self, request: Request, /) -> AsyncGenerator[AsyncIterator[ModelEvent]]:
        first = request.history[0]
        assert isinstance(first, UserTurn)
        prompt = plain_text(first.content)
        role = next(role for role in self._roles if prompt.startswith(role))
        model = self._playing.setdefault(prompt, ScriptedModel(self._roles[role]))
        self.requests.append((prompt, request))
        async with model.stream(request) as events:
            yield events


def hire(id: str, prompt: str, **more: Any) -> ToolCall:
    return ToolCall(id, "Agent", {"description": "a task", "prompt": prompt, **more})


def opened(folder: Path, **more: Any) -> Session:
    given = {"mode": Mode.BYPASS, **more.pop("settings", {})}
    settings = Settings(cwd=str(folder), state_folder=folder.parent / f"{folder.name}-state", **given)
    return open_session(settings, **more)


async def played(session: Session, model: Cast, prompt: str = "main") -> list[str]:
    """What the results of the first conversation said."""
    async with session.ask(prompt, model) as events:
        _ = [envelope async for envelope in events]
    return results(session)


async def until(condition: Callable[[], bool]) -> None:
    """A file that a process makes sends no word, so it is looked for."""
    async with asyncio.timeout(20):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.01)


def results(session: Session) -> list[str]:
    turns = [turn for turn in session.history if isinstance(turn, ResultTurn)]
    return [plain_text(result.content) for turn in turns for result in turn.results]
