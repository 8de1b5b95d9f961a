"""The model that plays a script file."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from typing import Any, cast

from ..core.calls import ToolCall
from ..core.content import plain_text
from ..core.model import (
    CallDelta,
    CallReady,
    ModelError,
    ModelEvent,
    ModelFacts,
    Request,
    ResultTurn,
    Retrying,
    Stopped,
    Thought,
    ThoughtDelta,
    ThoughtReady,
    Turn,
)
from .json_fragments import encode_json
from .script import FOUND, BadScript, Script, ScriptedTurn
from .scripted import words


class ScriptFileModel:
    """Answers each request with the next turn of the script."""

    facts = ModelFacts()

    def __init__(self, script: Script, name: str = "scripted") -> None:
        """Raises `BadScript` for a script with faults, which only the model server supports."""
        for place, turn in enumerate(script.turns):
            if turn.fault is not None:
                raise BadScript(
                    f"{name}: turns[{place}].fault is for the model server. Use `error` or `retries` instead."
                )
        self.name = name
        self._turns = script.turns
        self._next = 0

    async def close(self) -> None:
        """Nothing to close."""

    @asynccontextmanager
    async def stream(self, request: Request, /) -> AsyncGenerator[AsyncIterator[ModelEvent]]:
        if self._next >= len(self._turns):
            raise ModelError(f"The script was asked for turn {self._next + 1} and has {len(self._turns)}.", "request")
        place = self._next
        self._next += 1
        async with aclosing(_play(self._turns[place], place, last_results(request.history))) as events:
            yield events


async def _play(turn: ScriptedTurn, place: int, results: str) -> AsyncGenerator[ModelEvent]:
    for attempt, retry in enumerate(turn.retries, start=2):
        yield Retrying(attempt, len(turn.retries) + 1, retry.seconds, retry.reason)
        await asyncio.sleep(retry.seconds)
    await asyncio.sleep(turn.delay)
    if turn.thinking:
        yield ThoughtDelta(turn.thinking)
        yield ThoughtReady(Thought(turn.thinking))
    for word in words(turn.text):
        if turn.pause:
            await asyncio.sleep(turn.pause)
        yield word
    for number, scripted in enumerate(turn.calls):
        call = ToolCall(turn.id_of(place, number), scripted.name, fill_found(scripted.input, results))
        yield CallDelta(call.id, call.name)
        yield CallDelta(call.id, call.name, encode_json(call.arguments).decode())
        yield CallReady(call)
    if turn.usage:
        yield turn.usage.as_usage()
    if turn.error:
        raise ModelError(turn.error.message, turn.error.kind)
    yield Stopped(turn.stop_reason)


def last_results(history: Sequence[Turn]) -> str:
    """The text of the last results, including additions."""
    for turn in reversed(history):
        if isinstance(turn, ResultTurn):
            return "\n".join((*(plain_text(result.content) for result in turn.results), *turn.messages))
    return ""


def fill_found(value: Any, results: str) -> Any:
    """With every `{"$found": REGEX}` replaced by what it finds.

    >>> fill_found({"task_id": {"$found": "task (\\\\w+)"}}, "Started task b7.")
    {'task_id': 'b7'}
    """
    if isinstance(value, Mapping):
        inner = cast(Mapping[str, Any], value)
        if set(inner) == {FOUND}:
            return _find(str(inner[FOUND]), results)
        return {key: fill_found(part, results) for key, part in inner.items()}
    if isinstance(value, list):
        return [fill_found(part, results) for part in cast(list[Any], value)]
    return value


def _find(pattern: str, results: str) -> str:
    try:
        match = re.search(pattern, results)
    except re.error as error:
        raise ModelError(
            f'The script has "{pattern}" under {FOUND}, which is not a valid regular expression: {error}.', "request"
        ) from None
    if match is None:
        raise ModelError(f'The script looks for "{pattern}" in the last results, which do not contain it.', "request")
    return match[1] if match.re.groups else match[0]
