"""A prepared conversation: the JSON files of `scripted:FILE` and of the model server for tests, and their player."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError

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
    Usage,
)
from .json_fragments import encode_json
from .scripted import words

SCHEMA_FILE = Path(__file__).with_name("script.schema.json")
MOST_PROBLEMS = 10
FOUND = "$found"
"""`{"$found": REGEX}` in an input is replaced from the last results."""

Seconds: TypeAlias = Annotated[float, Field(ge=0, le=3600)]
StopWord: TypeAlias = Literal["end", "tool_use", "max_tokens", "refusal"]


class BadScript(Exception):
    """A script that cannot be played. The message names the file, the place and the fix."""


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ScriptedCall(_Part):
    name: str = Field(min_length=1, description="The tool to call.")
    input: dict[str, Any] = Field(
        default_factory=dict,
        description='Its arguments. `{"$found": REGEX}` in place of a value is what the expression finds in the last '
        "results: its first group, or the whole match if it has none.",
    )
    id: str | None = Field(default=None, min_length=1, description="Made from the place in the script where missing.")


class ScriptedUsage(_Part):
    input_tokens: int = Field(default=0, ge=0)
    output_tokens: int = Field(default=0, ge=0)
    cache_read_tokens: int = Field(default=0, ge=0)
    cache_write_tokens: int = Field(default=0, ge=0)

    def as_usage(self) -> Usage:
        return Usage(self.input_tokens, self.output_tokens, self.cache_read_tokens, self.cache_write_tokens)


class ScriptedRetry(_Part):
    reason: str = "Overloaded"
    seconds: Seconds = 0.0


class ScriptedError(_Part):
    kind: Literal["key", "request", "overflow", "images", "limit", "overload", "network", "cut", "answer"] = "answer"
    message: str = "The script ends the message here."


class ScriptedFault(_Part):
    """A fault of the model server. One that needs no message replaces one answer."""

    status: int | None = Field(default=None, ge=300, le=599, description="Answer with this status, without a message.")
    retry_after: str | None = Field(default=None, description="The Retry-After header of that answer.")
    body: Any = Field(
        default=None, description="Its body: a string as it is, anything else as JSON; an error if missing."
    )
    close: bool = Field(default=False, description="Close the connection before the answer's first byte.")
    cut_after: int | None = Field(default=None, ge=0, description="Close it after so many bytes of the body.")
    garbage_at: int | None = Field(
        default=None, ge=0, description="Send an event that is not valid JSON before the event with this number."
    )
    slow: Seconds = Field(default=0.0, description="Wait so many seconds before each event.")


class ScriptedTurn(_Part):
    """One message of the model; its parts come in this order."""

    delay: Seconds = Field(default=0.0, description="Seconds before the first word.")
    pause: Seconds = Field(default=0.0, description="Seconds before each word.")
    retries: list[ScriptedRetry] = Field(default_factory=list[ScriptedRetry], description="Tries that fail first.")
    thinking: str = ""
    text: str = ""
    calls: list[ScriptedCall] = Field(default_factory=list[ScriptedCall])
    usage: ScriptedUsage | None = None
    stop: StopWord | None = Field(
        default=None, description='Why the message ends; if missing, "tool_use" after calls, otherwise "end".'
    )
    error: ScriptedError | None = Field(default=None, description="Fail after these parts and do not end.")
    fault: ScriptedFault | None = Field(default=None, description="Only for the model server.")

    @property
    def stop_reason(self) -> StopWord:
        return self.stop or ("tool_use" if self.calls else "end")

    def id_of(self, place: int, call: int) -> str:
        """The id of the call with this number in the turn with this index."""
        return self.calls[call].id or f"call_{place + 1}_{call + 1}"


class Script(_Part):
    """What a model says, message by message."""

    schema_: str | None = Field(default=None, alias="$schema", description="For editors.")
    turns: list[ScriptedTurn] = Field(min_length=1)


def load_script(path: str | Path) -> Script:
    """Raises `BadScript`."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise BadScript(f"{path} cannot be read: {error.strerror}. Name a script with scripted:FILE.") from None
    except UnicodeDecodeError:
        raise BadScript(f"{path} is not UTF-8 text. Save it as UTF-8.") from None
    try:
        value: Any = json.loads(text)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise BadScript(f"{path} is not valid JSON: {error.msg} in {where}. Correct it there.") from None
    except RecursionError:
        raise BadScript(f"{path} is nested too deeply to be a script.") from None
    return check_script(value, str(path))


def check_script(value: Any, name: str) -> Script:
    """`name` is used in error messages."""
    try:
        return Script.model_validate(value)
    except ValidationError as error:
        details = cast(list[dict[str, Any]], error.errors(include_url=False))
        problems = [f"- {_problem(detail)}" for detail in details[:MOST_PROBLEMS]]
        if len(details) > MOST_PROBLEMS:
            problems.append(f"- and {len(details) - MOST_PROBLEMS} more")
        raise BadScript("\n".join((f"{name} is not a valid script:", *problems))) from None


def schema() -> dict[str, Any]:
    """The content of `script.schema.json`."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **Script.model_json_schema()}


def _problem(detail: dict[str, Any]) -> str:
    place = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in detail["loc"]).lstrip(".")
    match detail["type"]:
        case "missing":
            return f"{place} is missing. Add it."
        case "extra_forbidden":
            return f"{place} is unknown. Remove it, or look up its name in docs/models.md."
        case _:
            return f"{place or 'the script'}: {detail['msg']}. Correct it."


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
