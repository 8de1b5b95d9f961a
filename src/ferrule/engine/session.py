"""A running conversation: owns the history, the state, the gate and the event stream."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from ..core.calls import ToolCall, ToolOutcome
from ..core.content import Text
from ..core.context import Facts
from ..core.events import TurnEnded, TurnStarted
from ..core.model import AssistantTurn, ModelProvider, Prefix, Request, Turn, UserTurn
from ..core.ports import Note, NoteSource, Said, TurnHooks
from ..core.state import SessionState
from .bus import Bus, Subscription
from .executor import Executor
from .faults import end
from .gate import Gate
from .loop import Turnstile, run_turn
from .pipeline import Pipeline
from .pool import Registry, ToolPool

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
    history: list[Turn] = field(default_factory=list[Turn])
    agent: str = "main"
    note_sources: tuple[NoteSource, ...] = ()
    closing: tuple[Callable[[], Awaitable[None]], ...] = ()
    """What has to be done when nobody works in the session any more."""
    agents: tuple[str, ...] = ()
    """The kinds of agents that calls of this session may start."""
    turn: int = 0
    model: str = ""
    """The name of the model that was asked last."""
    is_answering: bool = False
    hooks: TurnHooks | None = None
    has_started: bool = False
    """Whether `hooks` know of it."""
    _opening: tuple[str, ...] = ()
    """What they said at its start, until a prompt is let in."""
    _facts: Facts | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """End what still runs for it. A session that ran no command has nothing to end."""
        try:
            if self.hooks is not None and self.has_started:
                self.has_started = False
                await self.hooks.session_ended(self.state.cwd)
        finally:
            for step in self.closing:
                await step()

    async def run(self, calls: Iterable[ToolCall]) -> list[ToolOutcome]:
        """Carry out the calls of one message; one outcome each, in their order."""
        async with self.executor() as executor:
            executor.message_complete()
            for call in calls:
                executor.submit(call)
            return await executor.drain()

    def ask(self, prompt: str, model: ModelProvider) -> Asking:
        """Put a prompt to the model and watch the turn.

        >>> async def example(session: Session, model: ModelProvider) -> None:
        ...     async with session.ask("hello", model) as events:
        ...         async for envelope in events:
        ...             print(envelope.event)

        Leaving the block early interrupts the turn; the history stays well-formed.
        """
        return Asking(self, prompt, model)

    def executor(self) -> Executor:
        """For the calls of one message, with the tools and the facts of this moment."""
        pool = self.registry.pool
        facts = self._current_facts(pool)
        return Executor(self.pipeline, pool=pool, gate=self.gate, state=self.state, facts=facts)

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
            model=self.model,
            workspace=self.workspace,
            added_directories=self.state.added_directories,
            conversation=Prefix(self.history),
            tools=pool.specs,
            agents=self.agents,
        )
        return self._facts

    def _request(self) -> Request:
        pool = self.registry.pool
        return Request(self.history, pool.offered(self.state.found_tools), pool.cache_after)

    async def _notes(self) -> list[Note]:
        notes: list[Note] = []
        for source in self.note_sources:
            try:
                notes += await source.notes(self.agent)
            except Exception:  # a source of notes is somebody else's code: the turn goes on without its note
                log.exception("%s could not say what changed", type(source).__name__)
        return notes

    async def answer(self, prompt: str, model: ModelProvider) -> None:
        """One whole turn, told as events. What `ask` runs in a task of its own."""
        emit = self.pipeline.emit
        ended = TurnEnded("interrupted")
        self.turn += 1
        self.state.stopped = False
        self.model = model.name
        emit(TurnStarted(prompt))
        try:
            ended = await self._answered(prompt, model)
        except Exception as error:  # the turn's exit: whoever watches is told, and the session lives on
            log.exception("the turn failed")
            ended = TurnEnded("error", f"{type(error).__name__}: {error}")
        finally:
            emit(ended)

    async def _answered(self, prompt: str, model: ModelProvider) -> TurnEnded:
        said = await self._let_in(prompt)
        if said.blocks or said.stops:
            return TurnEnded("stopped", said.stops) if said.stops else TurnEnded("blocked", said.blocks)
        context, self._opening = (*self._opening, *said.context), ()
        self.history.append(UserTurn((Text(prompt), *(Text(str(Note("hook", text))) for text in context))))
        at = Turnstile(
            history=self.history,
            model=model,
            request=self._request,
            executor=self.executor,
            emit=self.pipeline.emit,
            notes=self._notes,
            stopped=lambda: self.state.stopped,
        )
        blocked = 0
        while True:
            ended = await run_turn(at)
            if self.hooks is None or ended.reason != "end" or self.state.stopped:
                return ended
            said = await self.hooks.stopping(self.state.cwd, _last_words(self.history), blocked=blocked)
            if said.stops or not said.blocks:
                return TurnEnded("stopped", said.stops) if said.stops else ended
            blocked += 1
            self.history.append(UserTurn.saying(str(Note("hook", said.blocks))))

    async def _let_in(self, prompt: str) -> Said:
        """What the hooks say of a prompt, and of the session before its first one."""
        if self.hooks is None:
            return Said()
        if not self.has_started:
            self.has_started = True
            said = await self.hooks.session_started(self.state.cwd, model=self.model)
            self._opening = said.context
            if said.stops:
                return said
        return await self.hooks.prompt_submitted(self.state.cwd, prompt)


def _last_words(history: Sequence[Turn]) -> str:
    last = history[-1] if history else None
    return last.text if isinstance(last, AssistantTurn) else ""


class Asking:
    """One turn in progress. A context manager and not a generator: whoever enters it also leaves it."""

    def __init__(self, session: Session, prompt: str, model: ModelProvider) -> None:
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
        self._task = asyncio.create_task(self._session.answer(self._prompt, self._model))
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
