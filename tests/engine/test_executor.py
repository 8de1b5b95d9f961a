"""The calls of one message: when each starts, and that each has one outcome."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from inline_snapshot import snapshot

from ferrule.core.calls import Status, ToolCall
from ferrule.core.context import ToolContext
from ferrule.core.effects import ChangesState, Effects, WritesPath
from ferrule.core.events import ToolFinished
from ferrule.core.tool import ToolError
from ferrule.testing import Answering, FixedJudge, allow, ask
from tests.requirement import requirement

from .bodies import Held, begun_within, reading, writing
from .stage import Act, Given, Stage, call, raising, stage, steps, text_of


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
