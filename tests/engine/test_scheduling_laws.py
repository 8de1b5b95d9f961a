"""SCHED-1 as laws: the outcome is that of running one by one, the time that of the longest chain of conflicts."""

from __future__ import annotations

import asyncio
import posixpath
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from ferrule.core.calls import Status, ToolCall
from ferrule.core.context import ToolContext
from ferrule.core.effects import (
    MODE,
    Change,
    ChangesState,
    Effects,
    Opaque,
    ReachesHost,
    ReadsPath,
    ReadsState,
    Touch,
    WritesPath,
)
from ferrule.core.inputs import PathText, ToolInput
from ferrule.core.state import MovedTo
from ferrule.core.tool import Result, Tool
from tests.drawing import examples
from tests.requirement import requirement

from .stage import Baton, run_virtually, stage

CELLS = ("/a", "/a/b", "/a/b/c", "/a/d", "/ab", "/e", "/e/f", "state:todo", "state:mode", "host:x.org", "host:y.org")
PATHS = tuple(cell for cell in CELLS if cell.startswith("/"))


# A simulated store: what a call declares is what it reads and writes


@dataclass(frozen=True)
class Plan:
    """One call: its touches in the order it makes them, and how long it dawdles before each."""

    touches: tuple[Touch, ...]
    dawdles: tuple[int, ...] = ()

    def steps_before(self, index: int) -> int:
        return self.dawdles[index % len(self.dawdles)] if self.dawdles else 0


def covered(touch: Touch) -> tuple[list[str], bool]:
    """The cells a touch is about, and whether it writes them. The tests' own definition of the contract."""
    match touch:
        case ReadsPath(path):
            return [cell for cell in PATHS if (cell + "/").startswith(path + "/")], False
        case WritesPath(path):
            return [cell for cell in PATHS if (cell + "/").startswith(path + "/")], True
        case ReachesHost(host, sends):
            return [f"host:{host}"], sends
        case ReadsState(key):
            return [f"state:{key}"], False
        case ChangesState(key):
            return [f"state:{key}"], True
        case Opaque():
            return list(CELLS), True
        case _:
            raise AssertionError(touch)


def performed(name: str, plan: Plan, store: dict[str, str], saw: list[str]) -> Iterator[int]:
    """Read and write as declared, one cell at a time; yields how often to wait before the next one."""
    for index, touch in enumerate(plan.touches):
        cells, writes = covered(touch)
        for cell in cells:
            yield plan.steps_before(index)
            saw.append(f"{cell}={store.get(cell, '')}")
            if writes:
                store[cell] = f"{name}:{hash_of(saw)}"


def hash_of(saw: Sequence[str]) -> str:
    return format(sum(ord(char) * 31**place for place, char in enumerate("|".join(saw))) % 2**64, "x")


class Number(ToolInput):
    number: int


class Touches(Tool[Number, str]):
    name = "Touches"
    description = "Carry out one of the drawn plans."
    input_model = Number

    def __init__(self, plans: Sequence[Plan], baton: Baton) -> None:
        self.store: dict[str, str] = {}
        self.saw: list[list[str]] = [[] for _ in plans]
        self._plans = plans
        self._baton = baton

    def effects(self, input: Number, ctx: ToolContext) -> Effects:
        return Effects.of(*self._plans[input.number].touches)

    async def call(self, input: Number, ctx: ToolContext) -> str:
        index = input.number
        for waits in performed(str(index), self._plans[index], self.store, self.saw[index]):
            for _ in range(waits):
                await self._baton.step()
        return f"result {index}"


def one_by_one(plans: Sequence[Plan]) -> tuple[dict[str, str], list[list[str]]]:
    store: dict[str, str] = {}
    saw: list[list[str]] = []
    for index, plan in enumerate(plans):
        saw.append([])
        for _ in performed(str(index), plan, store, saw[index]):
            pass
    return store, saw


def numbered(name: str, plans: Sequence[Any]) -> list[ToolCall]:
    return [ToolCall(str(index), name, {"number": index}) for index in range(len(plans))]


touches = st.one_of(
    st.sampled_from(PATHS).map(ReadsPath),
    st.builds(WritesPath, st.sampled_from(PATHS), st.sampled_from(Change)),
    st.sampled_from(["todo", "notes"]).map(ReadsState),
    st.sampled_from(["todo", "notes"]).map(ChangesState),
    st.builds(ReachesHost, st.sampled_from(["x.org", "y.org"]), st.booleans()),
    st.just(Opaque()),
)
plans = st.builds(
    Plan,
    st.lists(touches, max_size=3).map(tuple),
    st.lists(st.integers(0, 2), max_size=3).map(tuple),
)
orders = st.lists(st.integers(0, 7), max_size=40)


@requirement("SCHED-1", "SCHED-6", "PIPE-4")
@given(st.lists(plans, max_size=7), orders, st.integers(1, 4))
@examples(80)
def test_calls_side_by_side_leave_and_see_what_they_would_one_by_one(
    drawn: list[Plan], order: list[int], limit: int
) -> None:
    baton = Baton(order)
    tool = Touches(drawn, baton)
    at = stage(tool, limit=limit)

    outcomes, _ = run_virtually(at.session.run(numbered("Touches", drawn)), when_idle=baton.release_one)

    assert (tool.store, tool.saw) == one_by_one(drawn)
    assert [outcome.output for outcome in outcomes] == [f"result {index}" for index in range(len(drawn))]


# A simulated file system with links and a working directory

FOLDERS = ("/", "/t", "/u", "/t/s")
LINKS = ("/l", "/t/m", "/u/n")
FILES = ("/x", "/t/x", "/u/x", "/t/s/x")


@dataclass
class World:
    """Files, links and nothing else; answers `Paths`."""

    files: dict[str, str] = field(default_factory=dict[str, str])
    links: dict[str, str] = field(default_factory=lambda: {"/l": "/t", "/u/n": "/t/s"})

    def anchor(self, path: str, cwd: str, /) -> str:
        return posixpath.normpath(posixpath.join(cwd, path))

    def resolve(self, path: str, /) -> tuple[str, tuple[str, ...]]:
        followed: list[str] = []
        done, ahead = "", [part for part in reversed(path.split("/")) if part]
        while ahead:
            step = f"{done}/{ahead.pop()}"
            if step in self.links and len(followed) < 8:
                followed.append(step)
                done, ahead = "", ahead + [part for part in reversed(self.links[step].split("/")) if part]
            else:
                done = step
        return done or "/", tuple(followed)

    def is_folder(self, path: str, /) -> bool | None:
        return None

    def through_links(self, folder: str, names: str, /) -> tuple[str, ...] | None:
        return ()

    def notable_entries(self, folder: str, /) -> tuple[str, ...] | None:
        return ()

    def real(self, path: str) -> str:
        return self.resolve(path)[0]

    def place(self, path: str) -> str:
        """Where the last part of the path stands, whether it is a link or not."""
        folder, name = posixpath.split(path)
        return posixpath.join(self.real(folder), name)


@dataclass(frozen=True)
class Deed:
    """One call on the world. The path is as the model would write it."""

    kind: str
    path: str
    target: str = ""
    dawdles: int = 0
    change: Change = Change.DELETES
    """How a change is stated, where there is a choice."""


def done_to(world: World, deed: Deed, name: str, cwd: str, saw: list[str]) -> Iterator[None]:
    """What the deed does, looking at links at the moment it acts, as a kernel does."""
    path = world.anchor(deed.path, cwd)
    for _ in range(deed.dawdles):
        yield
    saw.append(f"{path} is {world.real(path)}")
    match deed.kind:
        case "read":
            saw.append(world.files.get(world.real(path), ""))
        case "list":
            real = world.real(path).rstrip("/")
            saw.extend(f"{file}={text}" for file, text in sorted(world.files.items()) if file.startswith(f"{real}/"))
            saw.extend(f"{link}>{to}" for link, to in sorted(world.links.items()) if link.startswith(f"{real}/"))
        case "write":
            before = world.files.get(world.real(path), "")
            yield
            world.files[world.real(path)] = f"{name}({before[:40]})"
        case "point":
            world.links[world.place(path)] = deed.target
        case "drop":
            saw.append(world.links.pop(world.place(path), ""))
        case "move":
            saw.append(f"at {path}")
        case _:
            raise AssertionError(deed.kind)


class Deeds(ToolInput):
    number: int
    path: PathText


class Does(Tool[Deeds, str]):
    name = "Does"
    description = "Do one of the drawn deeds."
    input_model = Deeds

    def __init__(self, deeds: Sequence[Deed], world: World, baton: Baton) -> None:
        self.saw: list[list[str]] = [[] for _ in deeds]
        self._deeds = deeds
        self._world = world
        self._baton = baton

    def effects(self, input: Deeds, ctx: ToolContext) -> Effects:
        deed = self._deeds[input.number]
        match deed.kind:
            case "read" | "list":
                return Effects.reading(input.path)
            case "write" | "point" | "drop":
                return Effects.of(WritesPath(input.path, deed.change))
            case _:
                return Effects.of(ReadsPath(input.path), ChangesState("cwd"))

    async def call(self, input: Deeds, ctx: ToolContext) -> Result[str]:
        deed = self._deeds[input.number]
        for _ in done_to(self._world, deed, str(input.number), ctx.cwd, self.saw[input.number]):
            await self._baton.step()
        return Result("done", changes=(MovedTo(input.path),) if deed.kind == "move" else ())


def deeds_one_by_one(deeds: Sequence[Deed]) -> tuple[World, list[list[str]], str]:
    world, saw, cwd = World(), list[list[str]](), "/"
    for index, deed in enumerate(deeds):
        saw.append([])
        for _ in done_to(world, deed, str(index), cwd, saw[index]):
            pass
        if deed.kind == "move":
            cwd = world.anchor(deed.path, cwd)
    return world, saw, cwd


spots = st.sampled_from(
    (*FILES, *(f"{link}/x" for link in LINKS), "/l/s/x", "/l/m/x", "/t/m/u/n/x", "x", "t/x", "l/x", "m/t/s/x")
)
folders = st.sampled_from((*FOLDERS, *LINKS, "t", "l"))
links = st.sampled_from((*LINKS, "/l/m"))
targets = st.sampled_from(["/", "/t", "/u", "/t/s"])
dawdles = st.integers(0, 2)
deeds = st.one_of(
    st.builds(Deed, st.just("read"), spots, dawdles=dawdles),
    st.builds(
        Deed, st.just("write"), spots, dawdles=dawdles, change=st.sampled_from([Change.REPLACES, Change.CREATES])
    ),
    st.builds(Deed, st.just("list"), folders, dawdles=dawdles),
    st.builds(Deed, st.just("point"), links, targets, dawdles, st.sampled_from([Change.CREATES, Change.DELETES])),
    st.builds(Deed, st.just("drop"), links, dawdles=dawdles, change=st.sampled_from([Change.UNLINKS, Change.DELETES])),
    st.builds(Deed, st.just("move"), folders, dawdles=dawdles),
)

REPLACES, CREATES = Change.REPLACES, Change.CREATES
MADE = [
    Deed("point", "/t/m", "/u", 1, CREATES),
    Deed("write", "/t/m/x", change=REPLACES),
    Deed("read", "/u/x"),
]
"""A link that was not there before leads the second call to what the third one reads."""
STATED_LATE = [
    Deed("move", "t", dawdles=1),
    Deed("point", "/t/m", "/", 2, CREATES),
    Deed("write", "m/t/s/x", change=REPLACES),
    Deed("read", "/t/m/u/n/x"),
]
"""The fourth waits for the new link from the start, the third only when it is known where it works: it comes first."""


@requirement("SCHED-1", "SCHED-3", "SCHED-5")
@given(st.lists(deeds, max_size=6), orders, st.integers(1, 4))
@example([Deed("move", "t", dawdles=1), Deed("write", "x", change=REPLACES), Deed("read", "/t/x")], [], 4)
@example([Deed("point", "/l", "/u", 1), Deed("write", "/l/x", change=REPLACES), Deed("read", "/u/x")], [], 4)
@example([Deed("point", "/l/m", "/u", 1), Deed("list", "/t")], [], 4)
@example(MADE, [], 4)
@example(STATED_LATE, [], 4)
@examples(120)
def test_links_and_the_working_directory_may_move_and_the_outcome_is_still_that_of_one_by_one(
    drawn: list[Deed], order: list[int], limit: int
) -> None:
    baton, world = Baton(order), World()
    tool = Does(drawn, world, baton)
    at = stage(tool, paths=world, cwd="/", limit=limit)
    calls = [ToolCall(str(i), "Does", {"number": i, "path": deed.path}) for i, deed in enumerate(drawn)]

    outcomes, _ = run_virtually(at.session.run(calls), when_idle=baton.release_one)

    assert {outcome.status for outcome in outcomes} <= {Status.OK}
    assert (world, tool.saw, at.session.state.cwd) == deeds_one_by_one(drawn)


# Time


def in_conflict(one: Plan, other: Plan) -> bool:
    """Whether one of the two writes a cell that the other reads or writes."""
    if not one.touches or not other.touches:
        return False
    concerns_all = {Opaque(), ChangesState(MODE)}
    if concerns_all & {*one.touches, *other.touches}:
        return True
    return any(
        (writes or also_writes) and set(cells) & set(other_cells)
        for cells, writes in map(covered, one.touches)
        for other_cells, also_writes in map(covered, other.touches)
    )


def longest_chain(plans: Sequence[Plan], seconds: Sequence[int]) -> int:
    """When the last call ends if each starts as soon as those before it that it conflicts with have ended."""
    ends: list[int] = []
    for index, plan in enumerate(plans):
        begins = max((ends[before] for before in range(index) if in_conflict(plans[before], plan)), default=0)
        ends.append(begins + seconds[index])
    return max(ends, default=0)


class Takes(Tool[Number, None]):
    name = "Takes"
    description = "Take as long as drawn."
    input_model = Number

    def __init__(self, plans: Sequence[Plan], seconds: Sequence[int]) -> None:
        self.running: set[int] = set()
        self.most_at_once = 0
        self.begun: list[int] = []
        self._plans = plans
        self._seconds = seconds

    def effects(self, input: Number, ctx: ToolContext) -> Effects:
        return Effects.of(*self._plans[input.number].touches)

    async def call(self, input: Number, ctx: ToolContext) -> None:
        self.begun.append(input.number)
        self.running.add(input.number)
        self.most_at_once = max(self.most_at_once, len(self.running))
        assert not any(in_conflict(self._plans[input.number], self._plans[n]) for n in self.running - {input.number})
        await asyncio.sleep(self._seconds[input.number])
        self.running.remove(input.number)


steady_touches = st.one_of(
    st.sampled_from(PATHS).map(ReadsPath),
    st.sampled_from(PATHS).map(lambda path: WritesPath(path, Change.REPLACES)),
    st.sampled_from(["todo", "notes"]).map(ReadsState),
    st.sampled_from(["todo", "notes"]).map(ChangesState),
    st.builds(ReachesHost, st.sampled_from(["x.org", "y.org"]), st.booleans()),
    st.just(Opaque()),
)
timed = st.lists(
    st.tuples(st.builds(Plan, st.lists(steady_touches, max_size=2).map(tuple)), st.integers(1, 9)), max_size=9
)


@requirement("SCHED-1", "SCHED-2")
@given(timed)
@examples(80)
def test_a_message_takes_as_long_as_the_longest_chain_of_conflicting_calls(drawn: list[tuple[Plan, int]]) -> None:
    plans, seconds = [plan for plan, _ in drawn], [time for _, time in drawn]
    at = stage(Takes(plans, seconds), limit=100)

    outcomes, elapsed = run_virtually(at.session.run(numbered("Takes", plans)))

    assert elapsed == longest_chain(plans, seconds)
    assert [outcome.status for outcome in outcomes] == [Status.OK] * len(plans)


@requirement("SCHED-2", "SCHED-1")
@given(timed, st.integers(1, 4))
@examples(60)
def test_never_more_than_the_limit_run_at_once_and_all_come_to_an_end(
    drawn: list[tuple[Plan, int]], limit: int
) -> None:
    plans, seconds = [plan for plan, _ in drawn], [time for _, time in drawn]
    tool = Takes(plans, seconds)

    outcomes, elapsed = run_virtually(stage(tool, limit=limit).session.run(numbered("Takes", plans)))

    assert [outcome.status for outcome in outcomes] == [Status.OK] * len(plans)
    assert tool.most_at_once <= limit
    assert longest_chain(plans, seconds) <= elapsed <= sum(seconds)


@requirement("SCHED-2")
@given(st.lists(st.integers(1, 9), max_size=12), st.integers(1, 4))
def test_what_does_not_conflict_starts_in_order_as_soon_as_a_lane_is_free(seconds: list[int], limit: int) -> None:
    tool = Takes([Plan(())] * len(seconds), seconds)

    _, elapsed = run_virtually(stage(tool, limit=limit).session.run(numbered("Takes", seconds)))

    assert tool.begun == list(range(len(seconds)))
    assert elapsed == queued(seconds, limit)


def queued(seconds: Sequence[int], limit: int) -> int:
    lanes = [0] * limit
    for time in seconds:
        lanes.sort()
        lanes[0] += time
    return max(lanes)


@requirement("SCHED-2")
def test_a_limit_of_zero_means_the_default() -> None:
    tool = Takes([Plan(())] * 12, [1] * 12)

    run_virtually(stage(tool, limit=0).session.run(numbered("Takes", range(12))))

    assert tool.most_at_once == 10
