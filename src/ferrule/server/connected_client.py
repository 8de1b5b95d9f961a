"""One connected client: its session, its calls, and their progress."""

from __future__ import annotations

import asyncio
import itertools
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import Any, Final, TypeAlias

from mcp import types
from mcp.shared.subscriptions import (
    PromptsListChanged,
    ResourcesListChanged,
    ResourceUpdated,
    ServerEvent,
    ToolsListChanged,
)

from ..core.calls import ToolCall, ToolOutcome
from ..core.content import Terminal, View
from ..core.events import Event, ListChanged, Missed, ToolFinished, ToolProgressed
from ..engine.bus import Subscription
from ..engine.error_outcomes import GRACE
from ..engine.pool import ToolPool
from ..engine.session import Session
from ..output.plain import clean, summary
from ..permissions.approvals import AnswerScope
from .caller import Caller, Callers
from .client_person import ClientPerson
from .mcp_results import result_on_wire, tool_on_wire
from .resources import Resources
from .sources import PromptSource

OpenSession: TypeAlias = Callable[[ClientPerson], Session]
"""The person answers for the client: they approve calls, and may answer the questions of AskUserQuestion."""
Tell: TypeAlias = Callable[[ServerEvent], Awaitable[None]]
Report: TypeAlias = Callable[[float, str], Awaitable[None]]
"""The progress of a call: a growing number, and text."""

MOST_REPORTS: Final = 32
"""Pending reports for a slow caller; the newest are kept."""

SETTLING: Final = 5.0
"""Seconds to wait for the tools of other servers before they are listed for the first time."""

_CHANGED: Final[Mapping[str, ServerEvent]] = {
    "tools": ToolsListChanged(),
    "prompts": PromptsListChanged(),
    "resources": ResourcesListChanged(),
}


class _Reporting:
    """Reports progress to one caller at its own pace: nobody else waits for a slow one."""

    def __init__(self, report: Report) -> None:
        self.finished = asyncio.Event()
        self._report = report
        self._views: deque[View] = deque(maxlen=MOST_REPORTS)
        self._told = 0
        self._telling: asyncio.Task[None] | None = None

    def add(self, view: View) -> None:
        self._views.append(view)
        if self._telling is None or self._telling.done():
            self._telling = asyncio.create_task(self._tell())

    async def _tell(self) -> None:
        while self._views:
            self._told += 1
            await self._report(self._told, _last_line(self._views.popleft()))

    async def flush(self) -> None:
        await self.finished.wait()
        if self._telling is not None:
            await asyncio.wait((self._telling,))

    def give_up(self) -> None:
        if self._telling is not None:
            self._telling.cancel()


class Client:
    """Opened on the event loop it works on, and closed with all that it started."""

    def __init__(
        self,
        open_session: OpenSession,
        tell: Tell,
        prompts: PromptSource,
        callers: Callers,
        reaches: Sequence[AnswerScope],
    ) -> None:
        """`reaches` is how long an answer of its person may last."""
        self.session = open_session(ClientPerson(callers, reaches))
        self._callers = callers
        self.resources = Resources()
        self._tell = tell
        self._prompts = prompts
        self._told_prompts: Sequence[types.Prompt] | None = None
        self._numbers = itertools.count(1)
        self._running: set[asyncio.Task[list[ToolOutcome]]] = set()
        self._reporting: dict[str, _Reporting] = {}
        self._listed: tuple[ToolPool, list[types.Tool]] | None = None
        self._leaving = ExitStack()
        events = self._leaving.enter_context(self.session.bus.subscribe())
        self._watching = asyncio.create_task(self._watch(events))
        for begin in self.session.opening:
            begin()

    async def tools(self) -> list[types.Tool]:
        """In the pool's order, which is the same in every run."""
        if self._listed is None:
            await self.session.settled(SETTLING)
        pool = self.session.registry.pool
        if self._listed is None or self._listed[0] is not pool:
            self._listed = pool, [tool_on_wire(tool) for tool in pool]
        return self._listed[1]

    def prompts(self) -> Sequence[types.Prompt]:
        self._told_prompts = self._prompts.prompts()
        return self._told_prompts

    def input_schema(self, name: str) -> Mapping[str, Any] | None:
        found = self.session.registry.pool.get(name)
        return found[0].spec.input_schema if found else None

    async def call(
        self, name: str, arguments: Mapping[str, Any], *, caller: Caller, report: Report
    ) -> types.CallToolResult:
        """Cancelling this ends the call without waiting for its clean-up."""
        call = ToolCall(f"mcp-{next(self._numbers)}", name, arguments)
        found = self.session.registry.pool.get(name)
        reporting = self._reporting[call.id] = _Reporting(report)
        if self._watching.done():
            reporting.finished.set()
        try:
            with self._callers.making(caller, self.session.id, call.id):
                outcome = await self._carry_out(call)
            await reporting.flush()  # what is said of a call must not come after its result
        finally:
            reporting.give_up()
            del self._reporting[call.id]
        return result_on_wire(found[0] if found else None, outcome)

    async def _carry_out(self, call: ToolCall) -> ToolOutcome:
        """In a separate task: the protocol's cancellation is repeated at every await, and clean-up needs some."""
        task = asyncio.create_task(self.session.run([call]))
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        try:
            await asyncio.wait((task,))
        except asyncio.CancelledError:
            task.cancel()
            raise
        (outcome,) = task.result()
        return outcome

    async def close(self) -> None:
        running = tuple(self._running)
        for task in running:
            task.cancel()
        if running:
            await asyncio.wait(running, timeout=2 * GRACE)
        self._leaving.close()
        self._watching.cancel()
        await asyncio.wait((self._watching,))
        await self.session.close()

    async def _watch(self, events: Subscription) -> None:
        try:
            async for envelope in events:
                await self._on_event(envelope.event)
        finally:  # no call may wait for what nobody will see
            self._unwatch()

    async def _on_event(self, event: Event) -> None:
        match event:
            case ToolProgressed(call_id, view):
                if reporting := self._reporting.get(_outermost(call_id)):
                    reporting.add(view)
            case ToolFinished(outcome):
                if reporting := self._reporting.get(outcome.call.id):
                    reporting.finished.set()
                await self._tell_of(outcome)
            case ListChanged(kind):
                await self._tell(_CHANGED[kind])
            case Missed():  # the end of any call may be among it
                self._unwatch()
            case _:
                pass

    def _unwatch(self) -> None:
        for reporting in self._reporting.values():
            reporting.finished.set()

    async def _tell_of(self, outcome: ToolOutcome) -> None:
        longer, changed = self.resources.note(outcome)
        if longer:
            await self._tell(ResourcesListChanged())
        for uri in changed:
            await self._tell(ResourceUpdated(uri))
        if _may_have_changed_files(outcome) and self._told_prompts is not None:
            before = self._told_prompts
            if self.prompts() != before:
                await self._tell(PromptsListChanged())


def _may_have_changed_files(outcome: ToolOutcome) -> bool:
    record = outcome.record
    return record is not None and (record.effects is None or not record.effects.read_only)


def _last_line(view: View) -> str:
    """One line: the last one of a command's output, otherwise a summary."""
    if isinstance(view, Terminal) and view.output.strip():
        return clean(view.output.rstrip().rpartition("\n")[2])
    return summary(view)


def _outermost(call_id: str) -> str:
    return call_id.partition(".")[0]
