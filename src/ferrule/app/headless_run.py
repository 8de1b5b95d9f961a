"""A conversation without a person: prompts in, events to whoever watches, one answer for each prompt."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

from .._version import __version__
from ..agents.caps import report_wait
from ..core.calls import Refusal, Status, ToolOutcome
from ..core.context import ToolContext
from ..core.effects import Effects
from ..core.events import (
    Envelope,
    Event,
    MessageEnded,
    MessageStarted,
    NoteAdded,
    TextStreamed,
    ToolFinished,
    TurnEnded,
)
from ..core.model import ModelFacts, StopReason, Usage
from ..core.tool import Tool
from ..engine.message_history import CUT_ANSWER
from ..engine.session import Session
from ..engine.spending import subtract_usage
from ..output.run_answer import Denial, Ending, RunAnswer, Spent
from ..output.stream_json import STOP_REASONS, StreamJson
from ..providers.asked_model import AskedModel
from .slash_commands import LocalAnswer, NotExpanded, Prepare, PreparedPrompt, PromptContent

if TYPE_CHECKING:
    from jsonschema.protocols import Validator


PROTOCOL_VERSION = "2.1.197"
"""The version of Claude Code whose lines and control protocol these are; its SDKs look at it."""
NAME = "StructuredOutput"
MOST_TRIES = 5
"""Invalid or missing answers before the run is aborted."""
_MOST_NAMED = 5
_DATA = frozenset({"const", "enum", "default", "examples"})
"""Keys of a schema whose values are not schemas."""


class SchemaError(ValueError):
    """A schema that answers cannot be validated against. The message says why."""


class StructuredOutput(Tool[Mapping[str, Any], str]):
    """Keeps the last answer that fits."""

    name = NAME
    title = "Answer"
    description = (
        "Give your final answer to the request, in the shape that this tool's schema requires.\n\n"
        "Do all other work first. Then call this once, as the last thing; whoever asked reads only what you give here. "
        "If the call is refused, correct the fields it names and call again."
    )
    hint = "give the final answer"

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._schema = schema
        self._validator = _validator(schema)
        self.answer: Any = None
        self.given = False
        self.refused = 0

    def begin(self) -> None:
        """Forget the answer to the prompt before."""
        self.answer, self.given, self.refused = None, False, 0

    def input_schema(self) -> Mapping[str, Any]:
        return self._schema

    def parse(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        faults = sorted(self._validator.iter_errors(arguments), key=lambda fault: list(map(str, fault.absolute_path)))
        if not faults:
            return arguments
        self.refused += 1
        words = "; ".join(f"{_place(fault.absolute_path)}: {fault.message}" for fault in faults[:_MOST_NAMED])
        raise Refusal(Status.INVALID, f"The answer does not fit its schema: {words}. Correct it and call {NAME} again.")

    def effects(self, input: Mapping[str, Any], ctx: ToolContext) -> Effects:
        return Effects.of()

    async def call(self, input: Mapping[str, Any], ctx: ToolContext) -> str:
        self.answer, self.given = input, True
        return "The answer was accepted."


def read_schema(text: str) -> Mapping[str, Any]:
    """Raises `SchemaError`. The text is JSON; tools take objects, so the schema must be one of an object."""
    try:
        schema = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise SchemaError(f"it is not valid JSON: {error or type(error).__name__}") from None
    if not isinstance(schema, dict):
        raise SchemaError('it must be a JSON object, such as {"type": "object", "properties": {}}')
    if schema.get("type", "object") != "object":  # pyright: ignore[reportUnknownMemberType]
        raise SchemaError('its `type` must be "object"; put any other value into a property')
    return {"type": "object", **schema}


def _validator(schema: Mapping[str, Any]) -> Validator:
    from jsonschema.exceptions import SchemaError as BadSchema
    from jsonschema.validators import validator_for
    from referencing import Registry

    plain = dict(schema)
    kind = validator_for(plain)
    try:
        kind.check_schema(plain)
    except BadSchema as error:
        raise SchemaError(f"{_place(error.absolute_path)}: {error.message}") from None
    if reference := _leads_nowhere(plain):
        raise SchemaError(f"its `$ref` {reference} cannot be resolved. Put what it names into the schema")
    return kind(plain, registry=Registry())  # an empty registry: a reference elsewhere is an error, never a request


def _leads_nowhere(schema: dict[str, Any]) -> str | None:
    """The first reference that does not resolve inside the schema, so answers could not be validated."""
    from referencing import Registry, Resource
    from referencing.exceptions import Unresolvable
    from referencing.jsonschema import DRAFT202012

    resource = Resource[Any].from_contents(schema, default_specification=DRAFT202012)
    base = resource.id() or ""
    resolver = Registry[Any]().with_resource(base, resource).resolver(base)
    for reference in _references(schema):
        try:
            resolver.lookup(reference)
        except Unresolvable:
            return reference
    return None


def _references(part: Any) -> Iterator[str]:
    """Those with the base of the whole schema; a part with its own `$id` has another."""
    match part:
        case list():
            for one in cast(list[Any], part):
                yield from _references(one)
        case dict():
            for key, value in cast(dict[str, Any], part).items():
                if key == "$ref" and isinstance(value, str):
                    yield value
                elif key not in _DATA and not (isinstance(value, dict) and "$id" in value):
                    yield from _references(value)
        case _:
            pass


def _place(path: Any) -> str:
    return ".".join(map(str, path)) or "the whole"


def lines_of(
    session_id: str, model: Callable[[], str], *, partial: bool = False, parent: str | None = None
) -> StreamJson:
    """`parent` is the call that an agent other than the main one is for."""
    return StreamJson(session_id, model=model, partial=partial, parent=parent, shape=shape_if_known)


def shape_if_known(outcome: ToolOutcome) -> Mapping[str, Any] | None:
    """See `tool_responses.shape`, which knows the outputs of several tools and so is loaded late."""
    from .tool_responses import shape

    return shape(outcome)


def init_line(
    stream: StreamJson,
    session: Session,
    *,
    model: str,
    key_source: str,
    mode: str,
    servers: Sequence[dict[str, str]] = (),
    commands: Iterable[str] = (),
    skills: Iterable[str] = (),
    plugins: Sequence[dict[str, str]] = (),
    output_style: str = "default",
) -> dict[str, Any]:
    """`servers` are `{"name": ..., "status": ...}`, `plugins` are `{"name": ..., "path": ...}`."""
    return stream.line(
        "system",
        subtype="init",
        cwd=session.workspace,
        tools=[tool.name for tool in session.registry.pool],
        mcp_servers=list(servers),
        model=model,
        permissionMode=mode,
        slash_commands=list(commands),
        apiKeySource=key_source,
        output_style=output_style,
        agents=list(session.agents),
        skills=list(skills),
        plugins=list(plugins),
        claude_code_version=PROTOCOL_VERSION,
        ferrule_version=__version__,
    )


Watch: TypeAlias = Callable[[Envelope], Awaitable[None]]
WatchLast: TypeAlias = Callable[[Envelope], None]

_MISSING = f"You have not called {NAME} yet. Call it now with your final answer; it is the only thing that is read."


@dataclass(slots=True)
class _Heard:
    """The events of one prompt so far."""

    text: list[str] = field(default_factory=list[str])
    is_continued: bool = False
    """Whether the next message is the rest of an answer that was cut off."""
    denials: list[Denial] = field(default_factory=list[Denial])
    stopped: StopReason | None = None
    ended: TurnEnded | None = None
    turns: int = 0

    def hear(self, envelope: Envelope) -> None:
        if envelope.agent != "main":
            self._hear_agent(envelope.event)
            return
        match envelope.event:
            case NoteAdded(CUT_ANSWER.kind):
                self.is_continued = True
            case MessageStarted():
                if not self.is_continued:
                    self.text.clear()
                self.is_continued = False
            case TextStreamed(text):
                self.text.append(text)
            case MessageEnded(reason, turn):
                self.stopped = reason if turn is not None else None
                self.turns += turn is not None
            case ToolFinished(outcome) if outcome.status is Status.DENIED:
                self.note_denial(outcome)
            case TurnEnded() as ended:
                self.ended = ended
            case _:
                pass

    def _hear_agent(self, event: Event) -> None:
        """An agent's refusals belong to the prompt; its text is for whoever started it."""
        match event:
            case ToolFinished(outcome) if outcome.status is Status.DENIED:
                self.note_denial(outcome)
            case _:
                pass

    def note_denial(self, outcome: ToolOutcome) -> None:
        verdict = outcome.record.verdict if outcome.record else None
        known = (verdict.reason, verdict.allowed_by) if verdict else ("", ())
        self.denials.append(Denial(outcome.call, *known))


class Headless:
    """One conversation. `watch` is waited for, so a slow reader slows the model and nothing is lost."""

    def __init__(
        self,
        session: Session,
        model: AskedModel,
        *,
        watch: Watch,
        watch_last: WatchLast,
        structured: StructuredOutput | None = None,
        prepare: Prepare | None = None,
    ) -> None:
        """`prepare` turns what was written into what the model reads, or answers it.

        `watch_last` gets the last events after an interrupt, when nothing may be awaited.
        """
        self._session = session
        self._model = model
        self._watch = watch
        self._watch_last = watch_last
        self._structured = structured
        self._prepare = prepare
        self._used_before = Usage()
        self._free = asyncio.Event()
        self._free.set()
        model.ready = self._reader_is_free
        session.patience = self._patience
        if structured is not None:
            model.is_finished = lambda: structured.given or structured.refused >= MOST_TRIES

    async def ask(self, prompt: PromptContent) -> RunAnswer:
        """A cancellation is an interrupt here: it ends the turn, and the answer says so instead of an exception."""
        began, asked = monotonic(), self._model.seconds
        self._used_before = self._session.spending.usage
        heard = _Heard()
        try:
            prepared = await self._prepare(prompt, self._model) if self._prepare else PreparedPrompt(content=prompt)
        except NotExpanded as reason:
            return RunAnswer(ending=Ending.FAILED, errors=(str(reason),), seconds=monotonic() - began)
        except asyncio.CancelledError:
            _forgive()
            return RunAnswer(ending=Ending.FAILED, errors=("Interrupted.",), seconds=monotonic() - began)
        if isinstance(prepared, LocalAnswer):
            return self._answer_locally(prepared.text, monotonic() - began, self._model.seconds - asked)
        prompt = prepared.content
        for outcome in prepared.refused:
            heard.note_denial(outcome)
        if self._structured is None:
            await self._turn(prompt, heard)
        else:
            await self._ask_until_structured(prompt, heard, self._structured)
        return self._answer(heard, monotonic() - began, self._model.seconds - asked)

    async def _ask_until_structured(self, prompt: PromptContent, heard: _Heard, structured: StructuredOutput) -> None:
        structured.begin()
        await self._turn(prompt, heard)
        for _ in range(MOST_TRIES - 1):
            over = heard.ended is None or heard.ended.reason != "end"
            if over or structured.given or structured.refused >= MOST_TRIES:
                return
            await self._turn(_MISSING, heard)

    async def _turn(self, prompt: PromptContent, heard: _Heard) -> None:
        heard.ended = None
        asking = self._session.ask(prompt, self._model)
        events = None
        try:
            async with asking as events:
                async for envelope in events:
                    heard.hear(envelope)
                    await self._show(envelope)
        except asyncio.CancelledError:
            _forgive()
            if events is not None:
                async for envelope in events:  # closed by now: what is there, and no waiting
                    heard.hear(envelope)
                    self._watch_last(envelope)

    def _patience(self) -> float:
        """Seconds that the end of an answer waits for agents in the background."""
        return 0.0 if self._model.is_finished() else report_wait(os.environ)

    async def _reader_is_free(self) -> None:
        """The watcher comes first, so that the model is never far ahead of what is written."""
        await asyncio.sleep(0)
        await self._free.wait()

    async def _show(self, envelope: Envelope) -> None:
        """While this waits, the model's stream is paused."""
        self._free.clear()
        try:
            await self._watch(envelope)
        finally:
            self._free.set()

    def _answer(self, heard: _Heard, seconds: float, api_seconds: float) -> RunAnswer:
        ending, errors = self._ending(heard)
        text = "".join(heard.text)
        structured = self._structured.answer if self._structured is not None else None
        if structured is not None and ending is Ending.SUCCESS:
            text = json.dumps(structured, ensure_ascii=False)
        return RunAnswer(
            ending=ending,
            text=text,
            errors=errors,
            stop_reason=STOP_REASONS[heard.stopped] if heard.stopped else None,
            denials=tuple(heard.denials),
            turns=heard.turns,
            seconds=seconds,
            api_seconds=api_seconds,
            usage=self._usage(),
            spent=self._spending_by_model(),
            structured=structured if ending is Ending.SUCCESS else None,
            terminal_reason=_terminal_reason(ending, heard.ended),
            api_error_status=heard.ended.status if heard.ended else None,
        )

    def _answer_locally(self, text: str, seconds: float, api_seconds: float) -> RunAnswer:
        return RunAnswer(
            ending=Ending.SUCCESS,
            text=text,
            seconds=seconds,
            api_seconds=api_seconds,
            usage=self._usage(),
            spent=self._spending_by_model(),
        )

    def _usage(self) -> Usage:  # of this prompt: its messages, those of agents, summaries and other questions
        return subtract_usage(self._session.spending.usage, self._used_before)

    def _spending_by_model(self) -> dict[str, Spent]:
        facts, spent = self._model.facts_by_name, self._session.spending.by_model.items()
        return {name: Spent(facts=facts.get(name, ModelFacts()), usage=usage, usd=usd) for name, (usage, usd) in spent}

    def _ending(self, heard: _Heard) -> tuple[Ending, tuple[str, ...]]:
        limits = self._session.limits
        match heard.ended:
            case TurnEnded("max_turns" | "max_budget") if self._structured is not None and self._structured.given:
                return Ending.SUCCESS, ()  # there was nothing left to ask the model for
            case TurnEnded("max_turns"):
                return Ending.MAX_TURNS, (f"The turn limit was reached: {limits.max_turns}.",)
            case TurnEnded("max_budget"):
                return Ending.MAX_BUDGET, (f"The budget of {limits.max_budget:g} dollars is spent.",)
            case None | TurnEnded("interrupted"):
                return Ending.FAILED, ("Interrupted.",)
            case TurnEnded("error", error):
                return Ending.FAILED, (error,)
            case TurnEnded("blocked", words):
                return Ending.FAILED, (f"The prompt was blocked. {words}",)
            case TurnEnded("stopped", words) if not heard.turns:
                return Ending.FAILED, (f"The run was stopped. {words}",)  # nothing was asked
            case TurnEnded("refusal"):
                return Ending.FAILED, ("The model refused to answer.",)
            case _ if self._structured is not None and not self._structured.given:
                words = f"The model failed {MOST_TRIES} times to give an answer that fits the schema."
                return Ending.MAX_STRUCTURED, (words,)
            case TurnEnded():
                return Ending.SUCCESS, ()


_LIMITS: Final = {
    Ending.MAX_TURNS: "max_turns",
    Ending.MAX_BUDGET: "budget_exhausted",
    Ending.MAX_STRUCTURED: "structured_output_retry_exhausted",
}
_BY_TURN: Final = {"interrupted": "aborted_streaming", "error": "api_error"}
_BY_HOOK: Final = ("blocked", "stopped")


def _terminal_reason(ending: Ending, ended: TurnEnded | None) -> str:
    if ending in _LIMITS or ended is None:
        return _LIMITS.get(ending, "aborted_tools")
    return "hook_stopped" if ended.reason in _BY_HOOK else _BY_TURN.get(ended.reason, "completed")


def _forgive() -> None:
    """Clear the pending cancellation."""
    task = asyncio.current_task()
    while task is not None and task.cancelling():
        task.uncancel()
