"""What a call knows of its place, and calls inside of calls."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest
from inline_snapshot import snapshot

from ferrule.core.calls import Status, ToolOutcome
from ferrule.core.content import Block
from ferrule.core.context import ToolContext
from ferrule.core.effects import Effects, WritesPath
from ferrule.core.events import ToolFinished, ToolStarted
from ferrule.core.ports import Proposal
from ferrule.core.tool import ToolError
from ferrule.core.verdicts import Verdict
from ferrule.engine.executor import MAX_DEPTH
from ferrule.testing import allow, deny
from tests.requirement import requirement

from .stage import Act, Body, Given, call, echo, raising, stage, text_of


@requirement("CON-17")
async def test_a_call_knows_where_it_stands() -> None:
    known: list[ToolContext] = []

    async def body(input: Given, ctx: ToolContext) -> None:
        known.append(ctx)

    at = stage(Act(body=body))
    at.session.state.added_directories = ("/other",)
    at.session.turn = 3
    await at.run_one(call("Act", "call-7"))

    (ctx,) = known
    assert (ctx.call_id, ctx.cwd, ctx.depth, ctx.cancelled) == ("call-7", "/project", 0, False)
    facts = ctx.facts
    assert (facts.session_id, facts.turn, facts.agent, facts.workspace) == ("session-1", 3, "main", "/project")
    assert (facts.added_directories, facts.chain) == (("/other",), ())
    assert [spec.name for spec in facts.tools] == ["Act"]
    assert list(facts.conversation) == []


def invoking(name: str, **arguments: Any) -> Body:
    async def body(input: Given, ctx: ToolContext) -> ToolOutcome:
        return await ctx.invoke(name, arguments)

    return body


class Outer(Act):
    def to_model(self, output: ToolOutcome) -> tuple[Block, ...]:
        return output.content


@requirement("CON-17")
async def test_a_nested_call_goes_through_the_same_pipeline_and_leaves_its_chain() -> None:
    at = stage(Outer("Outer", invoking("Inner", text="hi")), Act("Inner", echo))

    outcome = await at.run_one(call("Outer", "7"))

    nested = outcome.output
    assert (nested.call.id, nested.call.name, text_of(outcome)) == ("7.1", "Inner", "hi")
    assert nested.record.chain == ("7",)
    assert nested.record.depth == 1
    assert at.seen.kinds() == [
        *("ToolRequested", "ToolStarted", "PermissionDecided"),
        *("ToolRequested", "ToolStarted", "PermissionDecided", "ToolFinished"),
        "ToolFinished",
    ]


@requirement("CON-17")
async def test_a_nested_call_is_judged_like_any_other() -> None:
    class NotInner:
        def judge(self, proposal: Proposal, /) -> Verdict:
            return deny("not that one") if proposal.tool.name == "Inner" else allow()

    at = stage(Outer("Outer", invoking("Inner")), Act("Inner"), judges=[NotInner()])

    outcome = await at.run_one(call("Outer"))

    assert outcome.status is Status.OK
    assert outcome.output.status is Status.DENIED


@requirement("CON-17", "PIPE-2")
async def test_a_nested_call_that_goes_wrong_is_an_outcome_and_no_exception() -> None:
    at = stage(
        Outer("Unknown", invoking("Nope")),
        Outer("Wrong", invoking("Inner", text=3)),
        Outer("Breaks", invoking("Inner")),
        Act("Inner", raising(ValueError("v"))),
    )

    outcomes = await at.run(call("Unknown"), call("Wrong"), call("Breaks"))

    assert [outcome.output.status for outcome in outcomes] == [Status.INVALID, Status.INVALID, Status.BROKEN]


@requirement("CON-17", "PIPE-6")
async def test_calls_nested_without_end_are_cut_off_and_on_record() -> None:
    async def body(input: Given, ctx: ToolContext) -> ToolOutcome:
        return await ctx.invoke("Act", {})

    at = stage(Outer(body=body))

    outcome = await at.run_one(call())

    assert text_of(outcome) == snapshot("Calls are nested more than 16 deep.")
    finished = [event.outcome for event in at.seen.of(ToolFinished)]
    assert len(finished) == MAX_DEPTH + 2
    assert all(each.record is not None for each in finished)
    assert len(finished[0].record.chain) == MAX_DEPTH + 1  # type: ignore[union-attr]


@requirement("CON-17", "SCHED-1")
async def test_two_nesting_calls_that_would_wait_for_each_other_are_told_and_end() -> None:
    both = asyncio.Barrier(2)

    def nesting(path: str) -> Body:
        async def body(input: Given, ctx: ToolContext) -> ToolOutcome:
            await both.wait()
            return await ctx.invoke("Write", {"path": path})

        return body

    def writes(input: Given, ctx: ToolContext) -> Effects:
        return Effects.of(WritesPath(input.path or "/"))

    at = stage(
        Outer("ReadsA", nesting("/b"), effects=Effects.reading("/a")),
        Outer("ReadsB", nesting("/a"), effects=Effects.reading("/b")),
        Act("Write", effects=writes),
    )

    async with asyncio.timeout(5):
        outcomes = await at.run(call("ReadsA", "1"), call("ReadsB", "2"))

    statuses = sorted(outcome.output.status for outcome in outcomes)
    refused = next(outcome.output for outcome in outcomes if outcome.output.status is Status.FAILED)
    assert statuses == [Status.FAILED, Status.OK]
    assert text_of(refused) == snapshot(
        "Write would wait for a call that waits for it. Call it outside of the other one."
    )


@requirement("CON-17", "PIPE-5")
async def test_a_nested_call_knows_that_the_call_around_it_is_to_end() -> None:
    inside, seen = asyncio.Event(), list[bool]()

    async def body(input: Given, ctx: ToolContext) -> None:
        inside.set()
        try:
            await asyncio.Event().wait()
        finally:
            seen.append(ctx.cancelled)

    at = stage(Outer("Outer", invoking("Inner")), Act("Inner", body))
    executor = at.executor()
    async with asyncio.timeout(5), executor:
        executor.submit(call("Outer", "1"))
        executor.message_complete()
        await inside.wait()
        executor.cancel("1")
        (outcome,) = await executor.drain()

    assert seen == [True]
    assert outcome.status is Status.CANCELLED
    assert [event.outcome.status for event in at.seen.of(ToolFinished)] == [Status.CANCELLED, Status.CANCELLED]


async def test_what_a_person_interrupts_is_not_kept_from_them() -> None:
    from ferrule.engine.error_outcomes import outcome_of_error

    with pytest.raises(KeyboardInterrupt):
        outcome_of_error(call(), KeyboardInterrupt())


async def test_the_log_is_silent_about_what_goes_well(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "ferrule")

    at = stage(Act(body=raising(ToolError("The disk is full."))), Act("Fine"))
    await at.run(call(), call("Fine"))

    assert not caplog.records
    assert len(at.seen.of(ToolStarted)) == 2
