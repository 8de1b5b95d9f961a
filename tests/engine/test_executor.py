"""The calls of one message: when each starts, what it sees, and how all of them end."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from inline_snapshot import snapshot

from ferrule.core.calls import Status, ToolCall, ToolOutcome
from ferrule.core.context import ToolContext
from ferrule.core.effects import ChangesState, Effects, ReadsPath, ReadsState, WritesPath
from ferrule.core.events import ToolFinished, ToolRequested
from ferrule.core.ports import Proposal
from ferrule.core.state import MovedTo, StateSet
from ferrule.core.tool import Result, ToolError
from ferrule.core.verdicts import Verdict
from ferrule.host.paths import LocalPaths
from ferrule.testing import Answering, FixedJudge, allow, ask, deny
from ferrule.tools.read import Read
from tests.requirement import requirement

from .stage import Act, Body, Given, Stage, call, nothing, raising, run_virtually, stage, steps, text_of


def reading(input: Given, ctx: ToolContext) -> Effects:
    return Effects.reading(input.path or ctx.cwd)


def writing(input: Given, ctx: ToolContext) -> Effects:
    return Effects.of(WritesPath(input.path or ctx.cwd))


async def for_ever(input: Given, ctx: ToolContext) -> None:
    await asyncio.Event().wait()


class Held:
    """A body that says it has begun and goes on when it is let."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.let = asyncio.Event()

    async def __call__(self, input: Given, ctx: ToolContext) -> str:
        self.begun.set()
        await self.let.wait()
        return "let go"


async def begun_within(held: Held, turns: int = 20) -> bool:
    await steps(turns)
    return held.begun.is_set()


# State


@requirement("SCHED-3")
async def test_undeclared_changes_of_state_are_made_in_the_models_order_whatever_finished_first() -> None:
    gates = {name: asyncio.Event() for name in "123"}

    async def body(input: Given, ctx: ToolContext) -> Result[None]:
        await gates[ctx.call_id].wait()
        return Result(None, changes=(StateSet("last", ctx.call_id),))

    at = stage(Act(body=body))
    executor = at.executor()
    seen: list[Any] = []
    async with asyncio.timeout(5), executor:
        for id in "123":
            executor.submit(call("Act", id))
        executor.message_complete()
        for id in "321":
            gates[id].set()
            await steps(10)
            seen.append(at.session.state.values.get("last"))
        await executor.drain()

    assert seen == [None, None, "3"]


@requirement("SCHED-3", "CON-17")
async def test_changes_made_inside_of_a_call_keep_the_place_of_the_outermost() -> None:
    let = asyncio.Event()

    async def slow(input: Given, ctx: ToolContext) -> Result[None]:
        await let.wait()
        return Result(None, changes=(StateSet("last", "first"),))

    async def outer(input: Given, ctx: ToolContext) -> None:
        await ctx.invoke("Inner", {})
        let.set()

    async def inner(input: Given, ctx: ToolContext) -> Result[None]:
        return Result(None, changes=(StateSet("last", "second"),))

    at = stage(Act("Slow", slow), Act("Outer", outer), Act("Inner", inner))
    async with asyncio.timeout(5):
        await at.run(call("Slow", "1"), call("Outer", "2"))

    assert at.session.state.values == {"last": "second"}


async def moves(input: Given, ctx: ToolContext) -> Result[str]:
    await asyncio.sleep(0)
    assert input.path is not None
    return Result("moved", changes=(MovedTo(input.path),))


async def where(input: Given, ctx: ToolContext) -> str:
    return f"{ctx.cwd} {input.path}"


MOVE = Act("Move", moves, effects=Effects.of(ChangesState("cwd")))


@requirement("SCHED-3", "CON-8")
async def test_a_later_call_sees_the_working_directory_an_earlier_one_left() -> None:
    judge = FixedJudge(allow())
    at = stage(MOVE, Act("Where", where, effects=reading), judges=[judge])

    outcomes = await at.run(
        call("Where", "1", path="a"),
        call("Move", "2", path="sub"),
        call("Where", "3", path="a"),
        call("Move", "4", path="deeper"),
        call("Where", "5", path="a"),
    )

    assert [text_of(outcome) for outcome in outcomes] == snapshot(
        [
            "/project /project/a",
            "moved",
            "/project/sub /project/sub/a",
            "moved",
            "/project/sub/deeper /project/sub/deeper/a",
        ]
    )
    judged = {proposal.call.id: proposal.effects for proposal in judge.seen}
    assert judged["3"] == Effects.of(ReadsPath("/project/sub/a", "/project/sub/a"))


@requirement("SCHED-3")
async def test_a_change_that_was_declared_is_there_when_the_next_call_runs() -> None:
    async def sets(input: Given, ctx: ToolContext) -> Result[None]:
        await asyncio.sleep(0)
        return Result(None, changes=(StateSet("todo", input.text),))

    async def gets(input: Given, ctx: ToolContext) -> Any:
        return at.session.state.values.get("todo")

    held = Held()
    at = stage(
        Act("Slow", held),
        Act("Set", sets, effects=Effects.of(ChangesState("todo"))),
        Act("Get", gets, effects=Effects.of(ReadsState("todo"))),
    )
    executor = at.executor()
    async with asyncio.timeout(5), executor:
        for each in (call("Slow", "0"), call("Set", "1", text="a"), call("Get", "2"), call("Set", "3", text="b")):
            executor.submit(each)
        executor.message_complete()
        await steps(20)
        early = executor.outcomes()[2].output
        held.let.set()
        await executor.drain()

    assert early == "a"
    assert at.session.state.values == {"todo": "b"}


class Links(Act):
    """Makes a symbolic link: the text says where to."""

    def __init__(self) -> None:
        super().__init__("Link", self._make, effects=writing)

    async def _make(self, input: Given, ctx: ToolContext) -> None:
        await asyncio.sleep(0)
        os.symlink(input.text, input.path or "")


@requirement("SCHED-3", "SCHED-5")
async def test_a_read_through_a_link_is_judged_on_the_world_the_call_before_it_left(tmp_path: Path) -> None:
    secret = tmp_path / "ssh" / "id_rsa"
    secret.parent.mkdir()
    secret.write_text("the key")
    workspace = tmp_path / "workspace"
    workspace.mkdir()

    class KeepsSecrets:
        def judge(self, proposal: Proposal, /) -> Verdict:
            touched = [touch.real for touch in proposal.effects.reads]
            return deny("it reads a secret") if str(secret) in touched else allow()

    at = stage(Links(), Read(), judges=[KeepsSecrets()], paths=LocalPaths(), cwd=str(workspace))
    made, read = await at.run(
        call("Link", "1", path="d", text=str(secret.parent)), call("Read", "2", file_path="d/id_rsa")
    )

    assert made.status is Status.OK
    assert (read.status, text_of(read)) == (Status.DENIED, "Read was not allowed: it reads a secret.")
    assert read.record is not None
    assert read.record.effects == Effects.of(ReadsPath(f"{workspace}/d/id_rsa", str(secret), (str(workspace / "d"),)))


# While the model still writes


async def started_early(at: Stage, held: Held, *before: ToolCall, name: str = "Held") -> tuple[bool, bool]:
    """Whether the call begins before the message is complete, and whether it does afterwards."""
    executor = at.executor()
    async with asyncio.timeout(5), executor:
        for each in before:
            executor.submit(each)
        executor.submit(call(name, "held"))
        early = await begun_within(held)
        executor.message_complete()
        late = await begun_within(held)
        held.let.set()
        await executor.drain()
    return early, late


@requirement("SCHED-4")
async def test_a_call_that_only_reads_starts_while_the_message_streams() -> None:
    held = Held()

    assert await started_early(stage(Act("Held", held, effects=reading)), held) == (True, True)


@requirement("SCHED-4")
@pytest.mark.parametrize("effects", [Effects(), Effects.of(ChangesState("todo")), writing])
async def test_a_call_that_changes_something_waits_until_the_message_is_complete(effects: Any) -> None:
    held = Held()

    assert await started_early(stage(Act("Held", held, effects=effects)), held) == (False, True)


@requirement("SCHED-4")
async def test_a_read_that_conflicts_with_an_earlier_write_waits_for_it() -> None:
    held = Held()
    at = stage(Act("Held", held, effects=reading), Act("Write", effects=writing))

    assert await started_early(at, held, call("Write", "w")) == (False, True)


@requirement("SCHED-4")
async def test_nobody_is_asked_before_the_message_is_complete() -> None:
    held, approver = Held(), Answering(allow())
    at = stage(Act("Held", held, effects=reading), judges=[FixedJudge(ask())], approver=approver)

    assert await started_early(at, held) == (False, True)
    assert len(approver.asked) == 1


@requirement("SCHED-4", "SCHED-3")
async def test_a_call_that_turns_out_to_write_when_its_turn_has_come_waits_for_the_message_too() -> None:
    """It only read as first stated; by the time of its second statement the world has changed."""
    held, stated = Held(), list[Effects]()

    def changing(input: Given, ctx: ToolContext) -> Effects:
        stated.append(Effects.reading("/a") if not stated else Effects.of(WritesPath("/a")))
        return stated[-1]

    assert await started_early(stage(Act("Held", held, effects=changing)), held) == (False, True)


@requirement("SCHED-4", "PIPE-4")
async def test_a_message_given_up_keeps_what_had_finished_and_runs_nothing_else() -> None:
    ran: list[str] = []

    async def body(input: Given, ctx: ToolContext) -> str:
        ran.append(ctx.call_id)
        return "read"

    executor = stage(Act("Look", body, effects=reading), Act("Write", body, effects=writing)).executor()
    async with executor:
        executor.submit(call("Look", "1"))
        executor.submit(call("Write", "2"))
        await steps(20)

    first, second = executor.outcomes()
    assert ran == ["1"]
    assert (first.status, text_of(first)) == (Status.OK, "read")
    assert (second.status, text_of(second)) == (
        Status.CANCELLED,
        snapshot("The call was interrupted before it started. Nothing was done."),
    )


# The limit


@requirement("SCHED-2")
async def test_no_more_than_the_limit_run_at_once_and_the_next_starts_when_one_ends() -> None:
    held = [Held() for _ in range(3)]
    at = stage(*(Act(f"Held{index}", each) for index, each in enumerate(held)), limit=2)
    executor = at.executor()
    async with asyncio.timeout(5), executor:
        for index in range(3):
            executor.submit(call(f"Held{index}", str(index)))
        executor.message_complete()
        await steps(20)
        at_first = [each.begun.is_set() for each in held]
        held[1].let.set()
        third = await begun_within(held[2])
        for each in held:
            each.let.set()
        await executor.drain()

    assert at_first == [True, True, False]
    assert third


# Interrupts


@requirement("PIPE-4", "PIPE-5")
async def test_an_interrupt_ends_what_runs_and_says_what_never_started() -> None:
    cleaned = asyncio.Event()

    async def body(input: Given, ctx: ToolContext) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            cleaned.set()

    at = stage(Act("Run", body, effects=writing), Act("Done"))
    executor = at.executor()
    async with asyncio.timeout(5), executor:
        for each in (call("Done", "1"), call("Run", "2", path="/a"), call("Run", "3", path="/a")):
            executor.submit(each)
        executor.message_complete()
        await steps(20)
        await executor.interrupt()

    assert cleaned.is_set()
    assert [(outcome.status, text_of(outcome)) for outcome in executor.outcomes()] == snapshot(
        [
            (Status.OK, "done"),
            (Status.CANCELLED, "The call was interrupted while it ran. What it did up to then may remain."),
            (Status.CANCELLED, "The call was interrupted before it started. Nothing was done."),
        ]
    )


@requirement("PIPE-5", "PIPE-4")
async def test_one_call_is_cancelled_and_its_neighbours_go_on() -> None:
    held = Held()
    at = stage(Act("Run", for_ever, effects=writing), Act("Held", held))
    executor = at.executor()
    async with asyncio.timeout(5), executor:
        for each in (call("Run", "1", path="/a"), call("Held", "2"), call("Run", "3", path="/b")):
            executor.submit(each)
        executor.message_complete()
        await steps(20)
        executor.cancel("1")
        executor.cancel("3")
        executor.cancel("nobody")
        held.let.set()
        outcomes = await executor.drain()

    assert [outcome.status for outcome in outcomes] == [Status.CANCELLED, Status.OK, Status.CANCELLED]


@requirement("PIPE-4", "PIPE-5")
async def test_a_call_cancelled_before_its_first_step_ends_like_any_other() -> None:
    at = stage(Act(effects=writing))
    executor = at.executor()
    async with asyncio.timeout(5), executor:
        executor.submit(call("Act", "1", path="/a"))
        executor.submit(call("Act", "2", path="/a"))
        executor.cancel("1")
        outcomes = await executor.drain()

    assert [outcome.status for outcome in outcomes] == [Status.CANCELLED, Status.OK]
    assert [event.outcome.call.id for event in at.seen.of(ToolFinished)] == ["1", "2"]


@requirement("PIPE-4", "PIPE-5", "SCHED-1")
async def test_whoever_waited_for_a_cancelled_call_runs() -> None:
    at = stage(Act("Run", for_ever, effects=writing), Act("Next", effects=writing))
    executor = at.executor()
    async with asyncio.timeout(5), executor:
        executor.submit(call("Run", "1", path="/a"))
        executor.submit(call("Next", "2", path="/a"))
        executor.message_complete()
        await steps(20)
        executor.cancel("1")
        outcomes = await executor.drain()

    assert [outcome.status for outcome in outcomes] == [Status.CANCELLED, Status.OK]


class Stubborn:
    """A body that ignores every cancellation until it is released."""

    def __init__(self, then: Callable[[ToolContext], Any] = lambda _: None) -> None:
        self.release = asyncio.Event()
        self.ended = asyncio.Event()
        self.result: Any = None
        self._then = then

    async def __call__(self, input: Given, ctx: ToolContext) -> str:
        while not self.release.is_set():
            try:
                await self.release.wait()
            except asyncio.CancelledError:
                continue
        answer = self._then(ctx)
        self.result = await answer if asyncio.iscoroutine(answer) else answer
        self.ended.set()
        return "at last"


@requirement("PIPE-4", "PIPE-5")
async def test_a_tool_that_will_not_stop_is_left_behind_and_said_so() -> None:
    stubborn = Stubborn()
    at = stage(Act("Stubborn", stubborn, effects=writing), Act("Next", effects=writing))
    executor = at.executor(grace=0.01)
    async with asyncio.timeout(5):
        async with executor:
            executor.submit(call("Stubborn", "1", path="/a"))
            executor.message_complete()
            await steps(20)
        left = executor.outcomes()
        follower = await at.run_one(call("Next", "2", path="/a"))

        stubborn.release.set()
        await stubborn.ended.wait()
        await steps(20)

    assert [(outcome.status, text_of(outcome)) for outcome in left] == snapshot(
        [(Status.CANCELLED, "The call was interrupted and did not stop. It may still be running.")]
    )
    assert follower.status is Status.OK
    assert executor.outcomes() == left
    assert [event.outcome.call.id for event in at.seen.of(ToolFinished)] == ["1", "2"]


@requirement("PIPE-5", "CON-17")
async def test_a_tool_that_was_left_behind_can_call_nobody_any_more() -> None:
    async def invokes(ctx: ToolContext) -> ToolOutcome:
        return await ctx.invoke("Next", {})

    stubborn = Stubborn(invokes)
    at = stage(Act("Stubborn", stubborn), Act("Next"))
    executor = at.executor(grace=0.01)
    async with asyncio.timeout(5):
        async with executor:
            executor.submit(call("Stubborn", "1"))
            executor.message_complete()
            await steps(20)
        stubborn.release.set()
        await stubborn.ended.wait()

    assert stubborn.result.status is Status.CANCELLED
    assert [event.call.name for event in at.seen.of(ToolRequested)] == ["Stubborn"]


@requirement("PIPE-4", "PIPE-5")
async def test_an_interrupt_that_is_itself_interrupted_still_leaves_one_outcome_for_each_call() -> None:
    stubborn = Stubborn()
    at = stage(Act("Stubborn", stubborn))

    async def message() -> None:
        async with at.executor(grace=60) as executor:
            executor.submit(call("Stubborn", "1"))
            await executor.drain()

    async with asyncio.timeout(5):
        running = asyncio.create_task(message())
        await steps(20)
        running.cancel()
        await steps(20)
        running.cancel()
        await asyncio.wait([running])
        finished = [event.outcome.status for event in at.seen.of(ToolFinished)]
        stubborn.release.set()
        await stubborn.ended.wait()
        await steps(5)

    assert finished == [Status.CANCELLED]
    assert len(at.seen.of(ToolFinished)) == 1


@requirement("PIPE-5")
async def test_a_cancelled_call_is_told_so_in_its_thread() -> None:
    seen: list[bool] = []

    async def body(input: Given, ctx: ToolContext) -> None:
        seen.append(ctx.cancelled)
        try:
            await asyncio.Event().wait()
        finally:
            seen.append(ctx.cancelled)

    executor = stage(Act(body=body)).executor()
    async with asyncio.timeout(5), executor:
        executor.submit(call())
        executor.message_complete()
        await steps(20)
        executor.cancel("1")
        await executor.drain()

    assert seen == [False, True]


async def nests(input: Given, ctx: ToolContext) -> str:
    outcome = await ctx.invoke("Write", {"path": "/a"})
    return outcome.status


async def dawdles(input: Given, ctx: ToolContext) -> str:
    for _ in range(3):
        await asyncio.sleep(0)
    return "dawdled"


async def swallows(input: Given, ctx: ToolContext) -> str:
    try:
        await steps(6)
    except asyncio.CancelledError:
        return "swallowed"
    return "finished"


async def fails(input: Given, ctx: ToolContext) -> str:
    await asyncio.sleep(0)
    raise ValueError("v")


class SlowJudge:
    async def judge(self, proposal: Proposal, /) -> Verdict:
        await asyncio.sleep(0)
        return allow()


class LateStep:
    async def after(self, proposal: Proposal, outcome: ToolOutcome, /) -> None:
        await asyncio.sleep(0)


def mixed_stage() -> Stage:
    bodies: dict[str, tuple[Body, Any]] = {
        "Read": (dawdles, reading),
        "Write": (dawdles, writing),
        "Unknown": (dawdles, Effects()),
        "Nest": (nests, Effects.of()),
        "Swallow": (swallows, writing),
        "Fail": (fails, writing),
        "Timed": (dawdles, writing),
        "Move": (moves, Effects.of(ChangesState("cwd"))),
        "Instant": (nothing, Effects.of()),
    }
    tools = [Act(name, body, effects=effects) for name, (body, effects) in bodies.items()]
    return stage(*tools, judges=[SlowJudge(), SlowJudge()], after=[LateStep()], time_limits={"Timed": 1000.0}, limit=3)


mixed_calls = st.lists(
    st.tuples(
        st.sampled_from(
            ["Read", "Write", "Unknown", "Nest", "Swallow", "Fail", "Timed", "Move", "Instant", "Nope", "Broken"]
        ),
        st.sampled_from(["/a", "/b", "a"]),
    ),
    max_size=5,
)


@requirement("PIPE-4", "PIPE-5")
@given(mixed_calls, st.integers(0, 60), st.booleans(), st.sampled_from(["interrupt", "cancel one", "cancel the task"]))
@settings(max_examples=250)
def test_interrupted_at_any_step_every_call_has_one_outcome_in_order(
    drawn: list[tuple[str, str]], turns: int, whole: bool, how: str
) -> None:
    at = mixed_stage()
    calls = [
        ToolCall.from_text(str(index), "Write", "{") if name == "Broken" else call(name, str(index), path=path)
        for index, (name, path) in enumerate(drawn)
    ]
    executor = at.executor()

    async def message() -> None:
        async with executor:
            for each in calls:
                executor.submit(each)
                await asyncio.sleep(0)
            if whole:
                await executor.drain()
            else:
                await asyncio.Event().wait()

    async def interrupted() -> None:
        running = asyncio.create_task(message())
        await steps(turns)
        if how == "interrupt":
            await executor.interrupt()
        elif how == "cancel one" and calls:
            executor.cancel(str(turns % len(calls)))
            await steps(turns)
        running.cancel()
        await asyncio.wait([running])

    run_virtually(interrupted())

    requested = [event.call.id for event in at.seen.of(ToolRequested)]
    finished = [event.outcome for event in at.seen.of(ToolFinished)]
    outcomes = executor.outcomes()
    assert [outcome.call.id for outcome in outcomes] == [each.id for each in calls[: len(outcomes)]]
    assert sorted(requested) == sorted(outcome.call.id for outcome in finished)
    assert len(set(requested)) == len(requested)
    assert all(outcome in finished for outcome in outcomes)
    assert all(outcome.content and outcome.record for outcome in outcomes)


@requirement("SCHED-1", "PIPE-5")
@given(mixed_calls, st.integers(0, 60))
@settings(max_examples=100)
def test_after_an_interrupt_at_any_step_the_gate_is_free_for_the_next_message(
    drawn: list[tuple[str, str]], turns: int
) -> None:
    at = mixed_stage()

    async def interrupted() -> list[ToolOutcome]:
        calls = [call(name, str(index), path=path) for index, (name, path) in enumerate(drawn)]
        running = asyncio.create_task(at.session.run(calls))
        await steps(turns)
        running.cancel()
        await asyncio.wait([running])
        return await at.run(*(call("Unknown", str(index)) for index in range(4)))

    outcomes, _ = run_virtually(interrupted())

    assert [outcome.status for outcome in outcomes] == [Status.OK] * 4


@requirement("PIPE-4")
async def test_there_is_an_outcome_for_each_call_at_every_moment() -> None:
    held = Held()
    executor = stage(Act("Held", held), Act("Waits", effects=Effects.of(ChangesState("x")))).executor()
    moments: list[list[Status]] = []
    async with asyncio.timeout(5), executor:
        executor.submit(call("Held", "1"))
        executor.submit(call("Waits", "2"))
        moments.append([outcome.status for outcome in executor.outcomes()])
        executor.message_complete()
        await steps(20)
        moments.append([outcome.status for outcome in executor.outcomes()])
        held.let.set()
        moments.append([outcome.status for outcome in await executor.drain()])

    assert moments == [
        [Status.CANCELLED, Status.CANCELLED],
        [Status.CANCELLED, Status.OK],
        [Status.OK, Status.OK],
    ]


@requirement("PIPE-4")
async def test_a_message_without_calls_is_over_at_once() -> None:
    assert await stage(Act()).run() == []


@requirement("PIPE-4")
async def test_calls_with_the_same_id_each_get_an_outcome() -> None:
    outcomes = await stage(Act()).run(call("Act", "1"), call("Act", "1"))

    assert [outcome.status for outcome in outcomes] == [Status.OK, Status.OK]


@requirement("SCHED-1", "SCHED-7", "CON-17")
async def test_a_nested_write_and_a_later_write_of_the_same_file_do_not_overlap() -> None:
    running, overlaps = set[str](), list[str]()

    async def write(input: Given, ctx: ToolContext) -> None:
        running.add(ctx.call_id)
        await steps(5)
        if len(running) > 1:
            overlaps.append(ctx.call_id)
        running.discard(ctx.call_id)

    async def agent(input: Given, ctx: ToolContext) -> None:
        await ctx.invoke("Write", {"path": "/a"})

    at = stage(Act("Agent", agent), Act("Write", write, effects=writing))
    executor = at.executor()
    async with asyncio.timeout(5), executor:
        executor.submit(call("Agent", "1"))
        executor.submit(call("Write", "2", path="/a"))
        await steps(20)
        outcomes = await executor.drain()

    assert [outcome.status for outcome in outcomes] == [Status.OK, Status.OK]
    assert not overlaps
    assert [event.outcome.call.id for event in at.seen.of(ToolFinished)] == ["1.1", "1", "2"]


@requirement("SCHED-4")
async def test_a_write_that_waits_for_the_message_keeps_no_lane_from_a_read() -> None:
    read = Held()
    writes = Act("Write", effects=Effects.of(WritesPath("/a")))
    executor = stage(writes, Act("Read", read, effects=Effects.reading("/b")), limit=1).executor()
    async with asyncio.timeout(5), executor:
        executor.submit(call("Write", "1"))
        executor.submit(call("Read", "2"))

        assert await begun_within(read)

        read.let.set()
        outcomes = await executor.drain()

    assert [outcome.status for outcome in outcomes] == [Status.OK, Status.OK]


@requirement("PIPE-6")
async def test_the_record_of_a_call_left_behind_is_closed() -> None:
    let = asyncio.Event()

    async def stubborn(input: Given, ctx: ToolContext) -> str:
        while not let.is_set():
            try:
                await let.wait()
            except asyncio.CancelledError:
                continue
        return "late"

    executor = stage(Act(body=stubborn)).executor(grace=0.01)
    async with asyncio.timeout(5):
        executor.submit(call())
        executor.message_complete()
        await steps(5)
        await executor.interrupt()
        (outcome,) = executor.outcomes()
        assert outcome.record is not None
        stages = list(outcome.record.stages)
        let.set()
        await steps(20)

    assert outcome.record.stages == stages


@requirement("SCHED-2", "SCHED-7", "CON-17")
@pytest.mark.parametrize("whole", [False, True])
async def test_nested_calls_that_wait_for_a_queued_call_do_not_wait_for_ever(whole: bool) -> None:
    async def ask_inside(input: Given, ctx: ToolContext) -> str:
        return str((await ctx.invoke("Read", {})).status)

    at = stage(
        Act("Write", effects=Effects.of(WritesPath("/a"))),
        Act("Read", effects=Effects.reading("/a")),
        Act("Agent", ask_inside),
        limit=2,
    )
    executor = at.executor()
    async with asyncio.timeout(5), executor:
        if whole:
            executor.message_complete()
        for number in range(6):
            executor.submit(call("Write" if number < 2 else "Agent", str(number)))
            await steps(1)
        outcomes = await executor.drain()

    assert [outcome.output for outcome in outcomes] == ["done", "done", "ok", "ok", "ok", "ok"]


@requirement("PIPE-6")
async def test_the_stage_a_call_failed_in_is_on_record() -> None:
    outcome = await stage(Act(body=raising(ToolError("It is full.")))).run_one(call())

    assert outcome.record is not None
    assert [name for name, _ in outcome.record.stages][-2:] == ["call", "settle"]
