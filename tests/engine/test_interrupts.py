"""The calls of one message when somebody ends one, or all of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot

from ferrule.core.calls import Status, ToolCall, ToolOutcome
from ferrule.core.context import ToolContext
from ferrule.core.effects import ChangesState, Effects
from ferrule.core.events import ToolFinished, ToolRequested
from ferrule.core.ports import Proposal
from ferrule.core.verdicts import Verdict
from ferrule.testing import allow
from tests.drawing import examples
from tests.requirement import requirement

from .bodies import Held, for_ever, moves, reading, writing
from .stage import Act, Body, Given, Stage, call, nothing, run_virtually, stage, steps, text_of


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
            (Status.CANCELLED, "The call was interrupted while it ran. Changes it had already made may remain."),
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
@examples(100)
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
