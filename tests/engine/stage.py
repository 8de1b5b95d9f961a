"""What the engine's tests are played on: plain tools, a plain world, and a clock that moves when nothing else can."""

from __future__ import annotations

import asyncio
import posixpath
import selectors
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn, TypeVar

from ferrule.core.calls import ToolCall, ToolOutcome
from ferrule.core.content import plain_text
from ferrule.core.context import ToolContext
from ferrule.core.effects import Effects
from ferrule.core.events import Event
from ferrule.core.inputs import PathText, ToolInput
from ferrule.core.ports import AfterCall, Approver, Judge, Paths
from ferrule.core.state import SessionState
from ferrule.core.tool import AnyTool, Tool
from ferrule.core.verdicts import Verdict
from ferrule.engine.budget import Budget
from ferrule.engine.bus import Bus
from ferrule.engine.executor import Executor
from ferrule.engine.gate import Gate
from ferrule.engine.pipeline import Pipeline
from ferrule.engine.pool import Registry
from ferrule.engine.session import Session
from ferrule.testing import Answering, FixedJudge, Recorder, allow, deny

CWD = "/project"


# Tools


class Given(ToolInput):
    path: PathText | None = None
    text: str = ""


Body = Callable[[Given, ToolContext], Awaitable[Any]]


async def nothing(input: Given, ctx: ToolContext) -> str:
    return "done"


class Act(Tool[Given, Any]):
    """Does what its `body` does; states `effects`, a value or a function of the input."""

    description = "Do what the test wants done."
    input_model = Given

    def __init__(
        self,
        name: str = "Act",
        body: Body = nothing,
        *,
        effects: Effects | Callable[[Given, ToolContext], Effects] = Effects.of(),  # noqa: B008 - immutable
        time_limit: float | None = None,
    ) -> None:
        self.name = name
        self.time_limit = time_limit
        self._body = body
        self._stated = effects

    def effects(self, input: Given, ctx: ToolContext) -> Effects:
        return self._stated(input, ctx) if callable(self._stated) else self._stated

    async def call(self, input: Given, ctx: ToolContext) -> Any:
        return await self._body(input, ctx)


class Opinionated(Act):
    """An `Act` that judges its own calls."""

    def __init__(self, *args: Any, says: Callable[[Given], Verdict | None], **more: Any) -> None:
        super().__init__(*args, **more)
        self._says = says

    async def opinion(self, input: Given, ctx: ToolContext) -> Verdict | None:
        return self._says(input)


def raising(error: BaseException) -> Body:
    async def body(input: Given, ctx: ToolContext) -> NoReturn:
        raise error

    return body


def returning(value: Any) -> Body:
    async def body(input: Given, ctx: ToolContext) -> Any:
        return value

    return body


async def echo(input: Given, ctx: ToolContext) -> str:
    return input.text


def call(name: str = "Act", id: str = "1", /, **arguments: Any) -> ToolCall:
    return ToolCall(id, name, arguments)


def text_of(outcome: ToolOutcome) -> str:
    return plain_text(outcome.content)


# The engine


class PlainPaths:
    """A world without links."""

    def anchor(self, path: str, cwd: str, /) -> str:
        return posixpath.normpath(posixpath.join(cwd, path.replace("~", "/home", 1)))

    def resolve(self, path: str, /) -> tuple[str, tuple[str, ...]]:
        return path, ()

    def is_folder(self, path: str, /) -> bool | None:
        return None

    def through_links(self, folder: str, names: str, /) -> tuple[str, ...] | None:
        return ()

    def notable_entries(self, folder: str, /) -> tuple[str, ...] | None:
        return ()


@dataclass
class Stage:
    """A session whose events are kept."""

    session: Session
    seen: Recorder

    async def run(self, *calls: ToolCall) -> list[ToolOutcome]:
        return await self.session.run(calls)

    async def run_one(self, call: ToolCall) -> ToolOutcome:
        (outcome,) = await self.session.run([call])
        return outcome

    def executor(self, **more: Any) -> Executor:
        session = self.session
        facts = session.executor().facts
        return Executor(
            session.pipeline, pool=session.registry.pool, gate=session.gate, state=session.state, facts=facts, **more
        )


@dataclass
class Options:
    judges: Sequence[Judge] = field(default_factory=lambda: [FixedJudge(allow())])
    approver: Approver = field(default_factory=lambda: Answering(deny("nobody is there")))
    after: Sequence[AfterCall] = ()
    paths: Paths = field(default_factory=PlainPaths)
    limit: int = 10
    budget: Budget = field(default_factory=Budget)
    time_limits: Mapping[str, float] = field(default_factory=dict[str, float])
    cwd: str = CWD
    watch: Callable[[Event], None] = lambda _: None


def stage(*tools: AnyTool, **options: Any) -> Stage:
    """A session with just these tools, where everything is allowed unless the test says otherwise."""
    chosen = Options(**options)
    bus, seen = Bus(), Recorder()
    publish = bus.emitter()

    def emit(event: Event, /) -> None:
        chosen.watch(event)
        seen(event)
        publish(event)

    pipeline = Pipeline(
        paths=chosen.paths,
        approver=chosen.approver,
        emit=emit,
        judges=chosen.judges,
        after=chosen.after,
        budget=chosen.budget,
        time_limits=chosen.time_limits,
    )
    session = Session(
        id="session-1",
        workspace=chosen.cwd,
        registry=Registry(tools),
        pipeline=pipeline,
        state=SessionState(chosen.cwd),
        bus=bus,
        gate=Gate(chosen.limit),
    )
    return Stage(session, seen)


async def steps(count: int) -> None:
    """Let everything else take `count` turns of the event loop."""
    for _ in range(count):
        await asyncio.sleep(0)


# The clock

ResultT = TypeVar("ResultT")


class Stuck(Exception):
    """Every task waits for another one, and no timer is set."""


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop whose clock stands still while anything can run and jumps to the next timer when nothing can.

    Time in it is exact and costs nothing, and a deadlock is an exception
    instead of a hang. `when_idle` is asked before that: if it makes something
    runnable it says so, and the loop goes on.
    """

    def __init__(self) -> None:
        self.now = 0.0
        self.when_idle: Callable[[], bool] = lambda: False
        super().__init__(_NeverWaiting(self))

    def time(self) -> float:
        return self.now


class _NeverWaiting(selectors.DefaultSelector):
    def __init__(self, loop: VirtualLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if ready or timeout == 0 or self._loop.when_idle():
            return ready
        if timeout is None:
            raise Stuck
        self._loop.now += timeout
        return ready


def run_virtually(
    work: Coroutine[Any, Any, ResultT], *, when_idle: Callable[[], bool] | None = None
) -> tuple[ResultT, float]:
    """The result, and how much virtual time it took."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        loop = runner.get_loop()
        assert isinstance(loop, VirtualLoop)
        if when_idle is not None:
            loop.when_idle = when_idle
        result = runner.run(work)
        loop.when_idle = lambda: False
        return result, loop.now


class Baton:
    """Steps of several tasks, of which the test decides who goes on next.

    A task awaits `step`; when nothing else can run, the next of the drawn
    `choices` says which of the waiting tasks is released.
    """

    def __init__(self, choices: Sequence[int]) -> None:
        self._choices = list(reversed(choices))
        self._waiting: list[asyncio.Future[None]] = []

    async def step(self) -> None:
        self._waiting.append(asyncio.get_running_loop().create_future())
        await self._waiting[-1]

    def release_one(self) -> bool:
        self._waiting = [future for future in self._waiting if not future.done()]
        if not self._waiting:
            return False
        choice = self._choices.pop() if self._choices else 0
        self._waiting.pop(choice % len(self._waiting)).set_result(None)
        return True
