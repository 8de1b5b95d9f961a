"""Runs the calls of one assistant message while it is still being written.

A call that only reads starts the moment it is complete; one that changes
something, and every question to a person, waits until the message is whole.
Outcomes come in the order of the calls, and there is one for each at any time.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import Coroutine, Mapping
from dataclasses import replace
from types import TracebackType
from typing import Any, Self

from ..core.calls import CallRecord, Refusal, Status, ToolCall, ToolOutcome
from ..core.content import View
from ..core.context import Facts, ToolContext
from ..core.effects import Effects
from ..core.events import ToolFinished, ToolProgressed, ToolRequested, ValueChanged
from ..core.state import SessionState, StateChange, StateSet
from ..core.verdicts import Verdict
from .error_outcomes import GRACE, outcome_of_error
from .gate import Deadlock, Gate, Ticket
from .pipeline import Pipeline
from .pool import ToolPool
from .preparing import PreparedCall

MAX_DEPTH = 16

NOT_STARTED = "The call was interrupted before it started. Nothing was done."
INTERRUPTED = "The call was interrupted while it ran. Changes it had already made may remain."
DEADLOCK = "{} would wait for a call that waits for it. Call it outside of the other one."
LEFT_BEHIND = "The call was interrupted and did not stop. It may still be running."


class Executor:
    """Submit calls as they arrive, `drain` when the message is whole. Leaving the block ends whatever still runs."""

    def __init__(
        self,
        pipeline: Pipeline,
        *,
        pool: ToolPool,
        gate: Gate,
        state: SessionState,
        facts: Facts,
        parent: Ticket | None = None,
        grace: float = GRACE,
    ) -> None:
        self.pipeline = pipeline
        self.pool = pool
        self.gate = gate
        self.state = state
        self.facts = facts
        self._parent = parent
        self._grace = grace
        self._lives: list[_Life] = []
        self._unfinished = 0
        self._settled = 0
        self.is_complete = False
        self._completed: asyncio.Event | None = None
        self._all_done: asyncio.Future[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._unfinished:
            await self.interrupt()

    def submit(self, call: ToolCall) -> None:
        """Give the call its place in the order; it starts as soon as it may."""
        life = _Life(self, call, self.facts, self._parent)
        self._lives.append(life)
        self._unfinished += 1
        self._loop = asyncio.get_running_loop()
        if life.begin():
            life.task = _start_eagerly(life.live(), self._loop)
        else:
            self.settle(life)

    def cancel(self, call_id: str) -> None:
        """Interrupt one call; the others continue."""
        for life in self._lives:
            if life.call.id == call_id and not life.settled:
                self._stop(life)

    async def interrupt(self) -> None:
        """End every call, and wait for their clean-up, but not for ever."""
        for life in self._lives:
            if not life.settled:
                self._stop(life)
        tasks = [life.task for life in self._lives if life.task and not life.task.done()]
        try:
            if tasks:
                await asyncio.wait(tasks, timeout=self._grace)
        finally:  # the wait may be cancelled; there is still one outcome for each call
            for life in self._lives:
                self.settle(life, ToolOutcome.refused(life.call, Status.CANCELLED, LEFT_BEHIND))

    def message_complete(self) -> None:
        """The model has finished the message: calls that change something may start."""
        self.is_complete = True
        if self._completed is not None:
            self._completed.set()

    async def drain(self) -> list[ToolOutcome]:
        """The message is whole; wait for every call of it."""
        self.message_complete()
        if self._unfinished:
            self._all_done = asyncio.get_running_loop().create_future()
            await self._all_done
        outcomes = self.outcomes()
        budget = self.pipeline.budget
        if budget.holds_all(outcomes):
            return outcomes
        shared = await budget.share(outcomes)
        for whole, outcome in zip(outcomes, shared, strict=True):
            if outcome is not whole:
                self.pipeline.cut(self.facts.agent, outcome.call.id)
        return shared

    def outcomes(self) -> list[ToolOutcome]:
        """One for each call in the order they were submitted; valid at every moment."""
        return [life.outcome for life in self._lives]

    async def until_complete(self) -> None:
        if not self.is_complete:
            self._completed = self._completed or asyncio.Event()
            await self._completed.wait()

    def elsewhere(self) -> asyncio.AbstractEventLoop | None:
        """The loop of these calls, for a caller in its own thread; `None` on the loop itself."""
        try:
            return None if asyncio.get_running_loop() is self._loop else self._loop
        except RuntimeError:
            return self._loop

    def settle(self, life: _Life, outcome: ToolOutcome | None = None) -> None:
        """A call is over, with its own outcome or with this one. Only the first time has an effect."""
        if life.settled:
            return
        life.finish(outcome)
        self._unfinished -= 1
        self._apply_in_order()
        if not self._unfinished and self._all_done is not None and not self._all_done.done():
            self._all_done.set_result(None)

    def apply(self, change: StateChange) -> None:
        self.state.apply(change)
        if isinstance(change, StateSet):
            self.pipeline.emit(ValueChanged(change.key, change.value))

    def _stop(self, life: _Life) -> None:
        life.stop()
        if life.task is not None:
            life.task.cancel()
        if not life.entered:
            self.settle(life)  # a task cancelled before its first step never runs, not even its `finally`

    def _apply_in_order(self) -> None:
        """Undeclared changes of state take effect in the model's order, whatever finished first."""
        while self._settled < len(self._lives) and self._lives[self._settled].settled:
            for change in self._lives[self._settled].held_back:
                self.apply(change)
            self._settled += 1


def _start_eagerly(life: Coroutine[Any, Any, None], loop: asyncio.AbstractEventLoop) -> asyncio.Task[None]:
    """A task that has taken its first steps already, where Python can do that: a quick call needs no others."""
    if sys.version_info >= (3, 12):
        return asyncio.Task(life, loop=loop, eager_start=True)
    return loop.create_task(life)


class _Life:
    """One call from its submission to its one outcome. Serves the pipeline and the tool's context as their port."""

    __slots__ = (
        "_executor",
        "_facts",
        "_nested",
        "_outcome",
        "_outer",
        "_parent",
        "_ready",
        "_stopped",
        "_ticket",
        "call",
        "entered",
        "held_back",
        "kept",
        "record",
        "settled",
        "task",
    )

    def __init__(
        self,
        executor: Executor,
        call: ToolCall,
        facts: Facts,
        parent: Ticket | None,
        outer: _Life | None = None,
    ) -> None:
        self.call = call
        self.record = CallRecord(call.id, call.name, facts.agent, facts.chain)
        self.task: asyncio.Task[None] | None = None
        self.entered = False
        self.settled = False
        self.kept: Any = None
        self.held_back: tuple[StateChange, ...] = ()
        self._executor = executor
        self._facts = facts
        self._parent = parent
        self._ticket: Ticket | None = None
        self._ready: PreparedCall | None = None
        self._outcome: ToolOutcome | None = None
        self._nested = 0
        self._outer = outer
        self._stopped = False

    @property
    def outcome(self) -> ToolOutcome:
        """Interrupted, unless a better outcome is known."""
        if self._outcome is not None:
            return self._outcome
        running = self._ticket is not None and self._ticket.running
        return ToolOutcome.refused(self.call, Status.CANCELLED, INTERRUPTED if running else NOT_STARTED)

    def begin(self) -> bool:
        """Parse, state the effects, take a place in the order. False if the call is already answered."""
        executor = self._executor
        executor.pipeline.emit(ToolRequested(self.call))
        if len(self._facts.chain) > MAX_DEPTH:
            return self._refuse(Status.FAILED, f"Calls are nested more than {MAX_DEPTH} deep.")
        ctx = ToolContext(self.call.id, executor.state.cwd, self._facts, self)
        prepared = executor.pipeline.prepare(self.call, executor.pool, ctx)
        self.record.mark("prepare")
        if isinstance(prepared, ToolOutcome):
            self._outcome = prepared
            return False
        try:
            self._ticket = executor.gate.enter(prepared.footprint, self._parent)
        except Deadlock:
            return self._refuse(Status.FAILED, DEADLOCK.format(self.call.name))
        self._ready = prepared
        return True

    def _refuse(self, status: Status, message: str) -> bool:
        self._outcome = ToolOutcome.refused(self.call, status, message)
        return False

    async def live(self) -> None:
        """The body of the call's task."""
        self.entered = True
        try:
            await self.carry_out()
        except asyncio.CancelledError:
            pass  # `outcome` says so; the canceller waits for the task's end, not for its result
        except Exception as error:  # nothing should get here; if it does, it is a bug, not an interrupt
            self._outcome = outcome_of_error(self.call, error)
        finally:
            self._executor.settle(self)

    async def carry_out(self) -> None:
        assert self._ready is not None
        outcome = await self._executor.pipeline.run(self._ready, self)
        if not self.settled:  # one that was left behind has its outcome already
            self._outcome = outcome

    def finish(self, instead: ToolOutcome | None = None) -> None:
        """Apply what the result changes, leave the gate, and say so: exactly once."""
        self.settled = True
        self.kept = None
        executor = self._executor
        outcome = instead or self.outcome
        effects = self.record.effects
        self.record.mark("settle")
        for change in outcome.changes:
            if effects is not None and effects.changes_state(change.key):
                executor.apply(change)
            else:
                self.held_back += (change,)
        if self._ticket is not None:
            executor.gate.leave(self._ticket)
        if outcome.record is None:
            outcome = replace(outcome, record=self.record.copy() if instead else self.record)
        self._outcome = outcome
        executor.pipeline.emit(ToolFinished(self._outcome))

    # The pipeline's port

    async def admit(self, ready: PreparedCall, /) -> PreparedCall:
        executor = self._executor
        ticket = self._ticket
        assert ticket is not None
        while True:
            if not ticket.is_ready():
                await ticket.turn()
            ready = executor.pipeline.restate(ready, executor.state.cwd)
            if not (executor.is_complete or ready.proposal.effects.read_only):
                executor.gate.stand_aside(ticket)
                await self.message_complete()
                executor.gate.stand_by(ticket)
                continue
            self.record.mark("wait")
            try:
                if executor.gate.confirm(ticket, ready.footprint):
                    return ready
            except Deadlock:
                raise Refusal(Status.FAILED, DEADLOCK.format(self.call.name)) from None

    async def message_complete(self) -> None:
        await self._executor.until_complete()

    def stop(self) -> None:
        self._stopped = True

    # The tool's port

    @property
    def cancelled(self) -> bool:
        """Whether this call, or one it was made inside of, is to end."""
        return self._stopped or (self._outer is not None and self._outer.cancelled)

    @property
    def effects(self) -> Effects | None:
        """As they are judged."""
        return self.record.effects

    @property
    def verdict(self) -> Verdict | None:
        return self.record.verdict

    @property
    def place(self) -> Ticket | None:
        return self._ticket

    def report(self, view: View, /) -> None:
        if self.settled:
            return
        if (loop := self._executor.elsewhere()) is None:
            self._executor.pipeline.emit(ToolProgressed(self.call.id, view))
            return
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody is left to notify
            loop.call_soon_threadsafe(self.report, view)

    async def invoke(self, name: str, arguments: Mapping[str, Any], /) -> ToolOutcome:
        self._nested += 1
        call = ToolCall(f"{self.call.id}.{self._nested}", name, arguments)
        if self.settled:
            return ToolOutcome.refused(call, Status.CANCELLED, NOT_STARTED)
        facts = replace(self._facts, chain=(*self._facts.chain, self.call.id))
        nested = _Life(self._executor, call, facts, self._ticket, self)
        try:
            if nested.begin():
                await nested.carry_out()
        finally:
            nested.finish()
            self.held_back += nested.held_back  # in the order of the outermost call, like its own
        return nested.outcome
