"""Test doubles for the ports, each with one plain behaviour."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from ..core.calls import Status, ToolCall, ToolOutcome
from ..core.content import View
from ..core.context import Facts, ToolContext
from ..core.effects import Effects
from ..core.events import Event
from ..core.model import ModelEvent, Request, Turn
from ..core.ports import Proposal
from ..core.verdicts import Behavior, Verdict
from ..providers.scripted import ScriptedModel


class RecordingModel(ScriptedModel):
    """`requests` holds each request with the history as it was then."""

    def __init__(self, *messages: Sequence[ModelEvent]) -> None:
        super().__init__(messages)
        self.requests: list[tuple[Request, tuple[Turn, ...]]] = []

    @asynccontextmanager
    async def stream(self, request: Request, /) -> AsyncGenerator[AsyncIterator[ModelEvent]]:
        self.requests.append((request, tuple(request.history)))
        async with super().stream(request) as events:
            yield events


EventT = TypeVar("EventT")


def allow(reason: str = "a test allows it", **more: Any) -> Verdict:
    return Verdict(behavior=Behavior.ALLOW, source="rule", reason=reason, **more)


def ask(reason: str = "a test wants to be asked", **more: Any) -> Verdict:
    return Verdict(behavior=Behavior.ASK, source="rule", reason=reason, **more)


def deny(reason: str = "a test denies it", **more: Any) -> Verdict:
    return Verdict(behavior=Behavior.DENY, source="rule", reason=reason, **more)


@dataclass
class Recorder:
    """Keeps every event it is given; satisfies `Emit`."""

    events: list[Event] = field(default_factory=list[Event])

    def __call__(self, event: Event, /) -> None:
        self.events.append(event)

    def kinds(self) -> list[str]:
        return [type(event).__name__ for event in self.events]

    def of(self, kind: type[EventT]) -> list[EventT]:
        return [event for event in self.events if isinstance(event, kind)]


@dataclass
class FixedJudge:
    """Says the same of every call, and remembers what it was shown."""

    verdict: Verdict | None
    seen: list[Proposal] = field(default_factory=list[Proposal])

    def judge(self, proposal: Proposal, /) -> Verdict | None:
        self.seen.append(proposal)
        return self.verdict


@dataclass
class Answering:
    """An approver that always gives the same answer, and remembers the questions."""

    verdict: Verdict
    asked: list[Proposal] = field(default_factory=list[Proposal])

    async def approve(self, proposal: Proposal, verdict: Verdict, /) -> Verdict:
        self.asked.append(proposal)
        return self.verdict


@dataclass
class NoPort:
    """The engine's end of a call that no engine runs: progress is kept, nested calls are refused."""

    cancelled: bool = False
    effects: Effects | None = None
    verdict: Verdict | None = None
    kept: Any = None
    place: Any = None
    reported: list[View] = field(default_factory=list[View])

    def report(self, view: View, /) -> None:
        self.reported.append(view)

    async def invoke(self, name: str, arguments: Mapping[str, Any], /) -> ToolOutcome:
        call = ToolCall("nested", name, arguments)
        return ToolOutcome.refused(call, Status.INVALID, "A bare context has no engine to call other tools through.")


def bare_context(cwd: Path | str, *, port: NoPort | None = None, facts: Facts | None = None) -> ToolContext:
    """A context for calling a tool's methods directly."""
    return ToolContext("call-1", str(cwd), facts or Facts(workspace=str(cwd)), port or NoPort())
