"""A running conversation: owns the history, the state, the gate and the event stream."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import AbstractContextManager, AsyncExitStack
from dataclasses import dataclass, field
from types import TracebackType
from typing import Literal, Self, TypeAlias

from ..core.calls import ToolCall, ToolOutcome
from ..core.content import Block, Text, plain_text
from ..core.context import Facts, Prefix
from ..core.events import Event, PrefixMoved, TurnEnded, TurnStarted
from ..core.model import AssistantTurn, Effort, ModelError, ModelProvider, Request, StopReason, Turn, Usage, UserTurn
from ..core.ports import Note, NoteSource, TurnHooks, TurnWords
from ..core.state import SessionState
from .bus import Bus, Subscription
from .compaction import Compaction, adopt, compact, make_room
from .error_outcomes import end
from .executor import Executor
from .gate import Gate, Ticket
from .loop import run_turn
from .message_history import MessageHistory, last_answer
from .pipeline import Pipeline
from .pool import Registry, ToolPool
from .shortening import without_turns
from .spending import NOTHING, Spending, TurnLimits
from .transcript import Transcript

Prompt: TypeAlias = str | tuple[Block, ...] | UserTurn


def turn_of(prompt: Prompt) -> UserTurn:
    match prompt:
        case str():
            return UserTurn.saying(prompt)
        case UserTurn():
            return prompt
        case _:
            return UserTurn(prompt)


class Asking:
    """One turn in progress. A context manager, not a generator: whatever enters it also leaves it."""

    def __init__(self, session: Session, prompt: Prompt, model: ModelProvider) -> None:
        self._session = session
        self._prompt = prompt
        self._model = model
        self._subscribed: AbstractContextManager[Subscription] = session.bus.subscribe()
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Subscription:
        if self._session.is_answering:
            raise RuntimeError("This session is already answering a prompt. Wait for it, or open another session.")
        subscription = self._subscribed.__enter__()
        self._session.is_answering = True
        self._task = asyncio.create_task(self._session.converse(self._prompt, self._model))
        self._session.running = self._task
        self._task.add_done_callback(lambda _: subscription.close())
        return subscription

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if self._task is not None and not self._task.done():
                await end(self._task, grace=10.0)
        finally:
            self._session.is_answering = False
            self._subscribed.__exit__(kind, error, trace)


log = logging.getLogger(__name__)


@dataclass(slots=True, kw_only=True)
class Session:
    id: str
    workspace: str
    registry: Registry
    pipeline: Pipeline
    state: SessionState
    bus: Bus = field(default_factory=Bus)
    gate: Gate = field(default_factory=Gate)
    conversation: MessageHistory = field(default_factory=MessageHistory)
    compaction: Compaction = field(default_factory=Compaction)
    agent: str = "main"
    chain: tuple[str, ...] = ()
    """The calls that this session is carried out inside of, outermost first."""
    place: Ticket | None = None
    """The innermost of them in the order of calls."""
    system: str = ""
    """The system prompt. It stays the same, so that what follows can be cached."""
    max_tokens: int | None = None
    """How long one message may be; the model's own limit if `None`."""
    thinking_tokens: int | None = None
    effort: Effort | None = None
    is_planning: Callable[[], bool] = bool
    limits: TurnLimits = field(default_factory=TurnLimits)
    spending: Spending = field(default_factory=Spending)
    note_sources: tuple[NoteSource, ...] = ()
    opening: tuple[Callable[[], None], ...] = ()
    """What starts in the background when somebody begins to work in the session."""
    settling: tuple[Callable[[float], Awaitable[None]], ...] = ()
    """Ways to wait for it, each for at most that many seconds."""
    closing: tuple[Callable[[], Awaitable[None]], ...] = ()
    """What to do when nobody works in the session any more."""
    wait_for_report: Callable[[float], Awaitable[bool]] | None = None
    """Waits at most that many seconds for the next agent in the background: whether there is something to tell."""
    patience: Callable[[], float] = lambda: 0.0
    """How long the end of a turn waits for them: zero where somebody can be told later."""
    agents: tuple[str, ...] = ()
    """The kinds of agents that calls of this session may start."""
    transcript_path: str = ""
    """Where the transcript is; empty for a session that keeps none."""
    turn: int = 0
    model: str = ""
    """The name of the model that was asked last."""
    provider: ModelProvider | None = None
    """That model itself."""
    is_answering: bool = False
    running: asyncio.Task[None] | None = None
    """The turn in progress, if `ask` started it."""
    hooks: TurnHooks | None = None
    has_started: bool = False
    """Whether `hooks` know of it."""
    started_by: Literal["startup", "resume"] = "startup"
    """What they are given as its source."""
    _opening: tuple[str, ...] = ()
    """What they said at its start, until a prompt is accepted."""
    _facts: Facts | None = None
    _untold: tuple[Note, ...] = ()
    _last_request: Request | None = None

    @property
    def history(self) -> list[Turn]:
        return self.conversation.turns

    @property
    def transcript(self) -> Transcript | None:
        return self.conversation.transcript

    async def __aenter__(self) -> Self:
        for step in self.opening:
            step()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """End all that still runs for it, whatever one step raises. One that ran no command has nothing to end."""
        async with AsyncExitStack() as last:
            for step in reversed(self.closing):
                last.push_async_callback(step)
            if self.hooks is not None and self.has_started:
                self.has_started = False
                await self.hooks.session_ended(self.state.cwd)

    async def settled(self, seconds: float) -> None:
        """Wait for tools that are not known yet, such as those of a server that is starting, but at most this long."""
        for step in self.settling:
            await step(seconds)

    async def run(self, calls: Iterable[ToolCall]) -> list[ToolOutcome]:
        """Carry out the calls of one message; one outcome each, in their order."""
        async with self.executor() as executor:
            executor.message_complete()
            for call in calls:
                executor.submit(call)
            return await executor.drain()

    def ask(self, prompt: Prompt, model: ModelProvider) -> Asking:
        """Put a prompt to the model and watch the turn, and the turns of prompts that are queued meanwhile.

        >>> async def example(session: Session, model: ModelProvider) -> None:
        ...     async with session.ask("hello", model) as events:
        ...         async for envelope in events:
        ...             print(envelope.event)

        Leaving the block early interrupts the turn; the history stays well-formed.
        """
        return Asking(self, prompt, model)

    def interrupt(self) -> bool:
        """End the running turn: what runs is cancelled, and the results say so. False if nothing runs."""
        if self.running is None or self.running.done():
            return False
        return self.running.cancel()

    def note(self, note: Note) -> None:
        """Tell the model something before its next message."""
        self._untold = (*self._untold, note)

    async def compact(self, model: ModelProvider, instructions: str = "", *, entirely: bool = False) -> bool:
        """Shorten the conversation now, `entirely` to nothing but a summary.

        False if little would be gained, a hook prevents it, or the model writes no summary.
        """
        if self.is_answering:
            raise RuntimeError("This session is answering a prompt. Wait for it, then compact.")
        extent = "entirely" if entirely else "older"
        return await compact(self, model, "manual", instructions=instructions, extent=extent)

    def clear(self, model: ModelProvider) -> None:
        """Forget the conversation so far. Files that were read there count as not read."""
        if self.history:
            before = self.compaction.meter.measure(self.plain_request())
            adopt(self, model, without_turns(), "manual", before=before)

    def executor(self) -> Executor:
        """For the calls of one message, with the tools and the facts of this moment."""
        pool = self.registry.pool
        facts = self._current_facts(pool)
        return Executor(self.pipeline, pool=pool, gate=self.gate, state=self.state, facts=facts, parent=self.place)

    async def converse(self, prompt: Prompt, model: ModelProvider) -> None:
        """The turn, then those that were queued. What `ask` runs in a task of its own."""
        try:
            ended = await self.answer(prompt, model)
            while self.state.queue and ended.reason in ("end", "max_tokens", "refusal"):
                queued, *rest = self.state.queue
                self.state.queue = tuple(rest)
                ended = await self.answer(queued, model)
        except asyncio.CancelledError:
            self.state.queue = ()  # an interrupt must not start the next one instead
            raise

    async def answer(self, prompt: Prompt, model: ModelProvider) -> TurnEnded:
        """One whole turn, reported as events."""
        ended = TurnEnded("interrupted")
        self.turn += 1
        self.state.stopped = False
        self.model, self.provider = model.name, model
        asked = turn_of(prompt)
        self.emit(TurnStarted(plain_text(asked.content)))
        try:
            ended = await self._answer(asked, model)
        except Exception as error:  # the turn's exit: watchers are notified, and the session continues
            log.exception("the turn failed")
            ended = TurnEnded("error", f"{type(error).__name__}: {error}")
        finally:
            try:
                if self.transcript:
                    await self.transcript.end_turn(ended.reason, ended.error)
            finally:  # the wait for the disk may be cancelled
                self.emit(ended)
        return ended

    async def _answer(self, asked: UserTurn, model: ModelProvider) -> TurnEnded:
        said = await self._let_in(plain_text(asked.content))
        if said.blocks or said.stops:
            return TurnEnded("stopped", said.stops) if said.stops else TurnEnded("blocked", said.blocks)
        context, self._opening = (*self._opening, *said.context), ()
        told = (Text(str(Note("hook", text))) for text in context)
        self.conversation.add_prompt(UserTurn((*asked.content, *told)) if context else asked)
        blocked = 0
        while True:
            ended = await run_turn(self, model)
            if self.hooks is None or ended.reason != "end" or self.state.stopped:
                return ended
            said = await self.hooks.stopping(self.state.cwd, last_answer(self.history), blocked=blocked)
            if said.stops or not said.blocks:
                return TurnEnded("stopped", said.stops) if said.stops else ended
            blocked += 1
            self.conversation.add_prompt(UserTurn.saying(str(Note("hook", said.blocks))))

    async def _let_in(self, prompt: str) -> TurnWords:
        """What the hooks say of a prompt, and of the session before its first one."""
        if self.hooks is None:
            return TurnWords()
        if not self.has_started:
            self.has_started = True
            said = await self.hooks.session_started(self.state.cwd, source=self.started_by, model=self.model)
            self._opening = said.context
            if said.stops:
                return said
        return await self.hooks.prompt_submitted(self.state.cwd, prompt)

    async def wait_for_news(self) -> bool:
        seconds = self.patience()
        return self.wait_for_report is not None and seconds > 0 and await self.wait_for_report(seconds)

    def _current_facts(self, pool: ToolPool) -> Facts:
        """Made anew only when one of them has changed."""
        known = self._facts
        if (
            known is not None
            and known.turn == self.turn
            and known.tools is pool.specs
            and len(known.conversation) == len(self.history)
            and known.added_directories is self.state.added_directories
        ):
            return known
        self._facts = Facts(
            session_id=self.id,
            turn=self.turn,
            agent=self.agent,
            chain=self.chain,
            model=self.model,
            workspace=self.workspace,
            added_directories=self.state.added_directories,
            conversation=Prefix(self.history),
            tools=pool.specs,
            agents=self.agents,
        )
        return self._facts

    # What a turn needs: `TurnPort`

    def emit(self, event: Event, /) -> None:
        self.pipeline.emit(event)

    def end_if_due(self, model: ModelProvider, messages: int) -> TurnEnded | None:
        return self.limits.end_if_reached(messages, self.spending, model)

    def is_stopped(self) -> bool:
        return self.state.stopped

    async def end_after_calls(self, outcomes: Sequence[ToolOutcome]) -> TurnEnded | None:
        if self.hooks is None:
            return None
        said = await self.hooks.calls_finished(self.state.cwd, outcomes)
        for text in said.context:
            self.note(Note("hook", text))
        return TurnEnded("stopped", said.stops or said.blocks) if said.stops or said.blocks else None

    def plain_request(self) -> Request:
        pool = self.registry.pool
        return Request(
            self.history,
            pool.specs_for_request(self.state.found_tools),
            pool.cache_after,
            system=self.system,
            max_tokens=self._most_tokens(),
            thinking_tokens=self.thinking_tokens,
            effort=self.effort,
            planning=self.is_planning(),
        )

    def _most_tokens(self) -> int | None:
        """A window that turned out smaller than believed has no room for the longest answer that was believed."""
        windows, model = self.compaction.windows, self.provider
        if model is None or not windows.is_learned(model):
            return self.max_tokens
        longest = windows.facts_of(model).most_output
        return min(self.max_tokens or longest, longest)

    def next_request(self) -> Request:
        self.conversation.sending()
        return self.mark_moved_prefix(self.plain_request())

    def mark_moved_prefix(self, request: Request) -> Request:
        """Report it if what precedes the conversation differs from last time."""
        last, self._last_request = self._last_request, request
        if last is not None and (request.tools != last.tools or request.system != last.system):
            self.emit(PrefixMoved(_what_moved(last, request)))
        return request

    async def collect_notes(self) -> list[Note]:
        notes, self._untold = list(self._untold), ()
        for source in self.note_sources:
            try:
                notes += await source.notes(self.agent)
            except Exception:  # a source of notes is somebody else's code: the turn continues without its note
                log.exception("%s could not say what changed", type(source).__name__)
        return notes

    def record_message(
        self, model: ModelProvider, turn: AssistantTurn | None, stopped: StopReason, usage: Usage
    ) -> None:
        self._add_spending(model, usage)
        self.compaction.note_usage(usage, len(self.history), model, stays=turn is not None)
        if self.transcript is None:
            return
        if turn is not None:
            self.transcript.assistant(turn, model=model.name, stopped=stopped, usage=usage)
        elif usage != NOTHING:
            self.transcript.note_usage(model.name, usage)

    def record_state(self) -> None:
        if self.transcript:
            self.transcript.state(self.state)

    def _add_spending(self, model: ModelProvider, usage: Usage) -> None:
        if usage != NOTHING:
            self.spending.add(model.name, usage, model.facts)

    async def make_room(self, model: ModelProvider, refused: ModelError | None = None) -> bool:
        return await make_room(self, model, refused)

    def replace_turns(self, turns: Sequence[Turn]) -> None:
        self.conversation.replace(turns)
        self._facts = None

    def add_side_spending(self, model: ModelProvider, usage: Usage) -> None:
        """For a message that is not part of the conversation."""
        self._add_spending(model, usage)
        if self.transcript and usage != NOTHING:
            self.transcript.note_usage(model.name, usage)


def _what_moved(last: Request, request: Request) -> Literal["tool_found", "tools_changed", "system_changed"]:
    if request.tools == last.tools:
        return "system_changed"
    return "tool_found" if request.tools[: len(last.tools)] == last.tools else "tools_changed"
