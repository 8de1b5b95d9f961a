"""Tools that misbehave: each fault becomes one clear outcome."""

from __future__ import annotations

import asyncio
from typing import Any, NoReturn

import pytest
from inline_snapshot import snapshot

from ferrule.core.calls import Status
from ferrule.core.content import Line, View
from ferrule.core.context import ToolContext
from ferrule.core.effects import ChangesState, Effects
from ferrule.core.events import ToolFinished
from ferrule.core.state import MovedTo, StateSet, ToolsFound
from ferrule.core.tool import Result, ToolError
from ferrule.engine.error_outcomes import contain_exit, in_own_task
from ferrule.testing import FixedJudge, allow
from tests.requirement import requirement

from .stage import Act, Given, call, echo, raising, returning, stage, steps, text_of

# Tools that misbehave


@requirement("PIPE-7", "PIPE-2")
@pytest.mark.parametrize("limit", [None, 60.0])
async def test_an_unexpected_exception_is_short_for_the_model_and_whole_in_the_log(
    limit: float | None, caplog: pytest.LogCaptureFixture
) -> None:
    def deep() -> NoReturn:
        raise ValueError("the sum was 3")

    async def body(input: Given, ctx: ToolContext) -> NoReturn:
        deep()

    outcome = await stage(Act(body=body, time_limit=limit)).run_one(call())

    assert (outcome.status, text_of(outcome)) == (
        Status.BROKEN,
        snapshot("Act failed unexpectedly: ValueError: the sum was 3. This is a bug in the tool."),
    )
    assert "Traceback" in caplog.text
    assert "in deep" in caplog.text


class Odd(BaseException):
    pass


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


class UnspeakableToolError(ToolError):
    def __str__(self) -> str:
        raise RuntimeError("no words")


@requirement("PIPE-2", "PIPE-4")
@pytest.mark.parametrize("limit", [None, 60.0])
@pytest.mark.parametrize(
    ("error", "status", "words"),
    [
        (Odd("o"), Status.BROKEN, "Odd: o"),
        (SystemExit(3), Status.BROKEN, "SystemExit: 3"),
        (asyncio.CancelledError(), Status.BROKEN, "CancelledError"),
        (StopAsyncIteration(), Status.BROKEN, "StopAsyncIteration"),
        (MemoryError(), Status.FAILED, "needs more memory than is available"),
        (RecursionError("too deep"), Status.BROKEN, "RecursionError: too deep"),
        (Unspeakable(), Status.BROKEN, "Unspeakable"),
        (ValueError("x" * 10_000), Status.BROKEN, "ValueError: xxx"),
        (ToolError("The disk is full."), Status.FAILED, "The disk is full."),
        (ToolError(), Status.FAILED, "did not say why"),
        (UnspeakableToolError(), Status.FAILED, "did not say why"),
        (ExceptionGroup("g", [ToolError("One."), ToolError("Two.")]), Status.FAILED, "One.\nTwo."),
        (ExceptionGroup("g", [ToolError("One."), ValueError("two")]), Status.BROKEN, "ValueError: two"),
        (BaseExceptionGroup("g", [asyncio.CancelledError()]), Status.BROKEN, "cancelled from inside"),
    ],
)
async def test_whatever_a_tool_raises_becomes_one_outcome(
    error: BaseException, status: Status, words: str, limit: float | None
) -> None:
    at = stage(Act(body=raising(error), time_limit=limit))

    outcome = await at.run_one(call())

    assert outcome.status is status
    assert words in text_of(outcome)
    assert len(text_of(outcome)) < 700
    assert len(at.seen.of(ToolFinished)) == 1


@requirement("PIPE-2")
async def test_a_tool_error_inside_the_tools_own_task_group_counts_as_its_own() -> None:
    async def body(input: Given, ctx: ToolContext) -> None:
        async def fails() -> None:
            raise ToolError("The file is locked.")

        async with asyncio.TaskGroup() as group:
            group.create_task(fails())
            group.create_task(asyncio.Event().wait())

    async with asyncio.timeout(5):
        outcome = await stage(Act(body=body)).run_one(call())

    assert (outcome.status, text_of(outcome)) == (Status.FAILED, "The file is locked.")


@requirement("PIPE-2", "CON-9")
async def test_an_output_of_the_wrong_type_breaks_the_call_and_nothing_else() -> None:
    class Typed(Act):
        output_model = int

    class Unpackaged(Act):
        def to_model(self, output: Any) -> Any:
            return output

    at = stage(
        Typed("Typed", returning("three")),
        Unpackaged("NoTuple", returning("t")),
        Unpackaged("NoBlock", returning((1,))),
    )

    typed, no_tuple, no_block = await at.run(call("Typed"), call("NoTuple"), call("NoBlock"))

    assert [outcome.status for outcome in (typed, no_tuple, no_block)] == [Status.BROKEN] * 3
    assert "ValidationError" in text_of(typed)
    assert "gave str where a tuple of blocks belongs" in text_of(no_tuple)
    assert "gave int where a block belongs" in text_of(no_block)


@requirement("CON-10", "PIPE-2")
@pytest.mark.parametrize(
    "result",
    [
        Result("r", changes=("moved",)),  # type: ignore[arg-type]
        Result("r", changes=None),  # type: ignore[arg-type]
        Result("r", changes=(MovedTo("sub"),)),
        Result("r", changes=(ToolsFound((3,)),)),  # type: ignore[arg-type]
        Result("r", changes=(StateSet([], 1),)),  # type: ignore[arg-type]
        Result("r", messages=(3,)),  # type: ignore[arg-type]
        Result("r", messages="one text"),  # type: ignore[arg-type]
    ],
)
async def test_a_result_with_impossible_extras_is_broken_and_changes_nothing(result: Result[str]) -> None:
    at = stage(Act(body=returning(result)))

    outcome = await at.run_one(call())

    assert outcome.status is Status.BROKEN
    assert (outcome.changes, outcome.messages, at.session.state.cwd) == ((), (), "/project")


@requirement("PIPE-4", "CON-10")
async def test_a_change_that_cannot_be_made_holds_up_nobody() -> None:
    impossible = Result("r", changes=(ToolsFound(5),))  # type: ignore[arg-type]
    at = stage(Act("Odd", returning(impossible), effects=Effects.of(ChangesState("found_tools"))), Act())

    async with asyncio.timeout(5):
        outcomes = await at.run(call("Odd", "1"), call("Act", "2"))

    assert [outcome.status for outcome in outcomes] == [Status.BROKEN, Status.OK]


@requirement("PIPE-2", "CON-12")
async def test_views_that_raise_break_their_own_call_at_most(caplog: pytest.LogCaptureFixture) -> None:
    def fails(*_: Any) -> NoReturn:
        raise RuntimeError("cannot draw")

    calls, results, errors = Act("Calls"), Act("Results"), Act("Errors", raising(ToolError("It is full.")))
    calls.show_call, results.show_result, errors.show_error = fails, fails, fails  # type: ignore[method-assign]

    drawn = await stage(calls, results, errors).run(call("Calls"), call("Results"), call("Errors"))

    assert [(outcome.status, text_of(outcome)) for outcome in drawn] == snapshot(
        [
            (Status.BROKEN, "Calls failed unexpectedly: RuntimeError: cannot draw. This is a bug in the tool."),
            (Status.BROKEN, "Results failed unexpectedly: RuntimeError: cannot draw. This is a bug in the tool."),
            (Status.FAILED, "It is full."),
        ]
    )
    assert drawn[2].view == Line("It is full.")


@requirement("CON-12")
async def test_an_error_is_shown_to_people_in_the_tools_own_way() -> None:
    class Drawing(Act):
        def show_error(self, message: str) -> View:
            return Line(f"(!) {message}")

    outcome = await stage(Drawing(body=raising(ToolError("It is full.")))).run_one(call())

    assert (outcome.view, text_of(outcome)) == (Line("(!) It is full."), "It is full.")


@requirement("CON-1", "SCHED-6")
@pytest.mark.parametrize("stated", [lambda *_: 1 / 0, lambda *_: None])
async def test_effects_that_cannot_be_stated_are_unknown(stated: Any) -> None:
    judge = FixedJudge(allow())

    outcome = await stage(Act(effects=stated), judges=[judge]).run_one(call())

    assert outcome.status is Status.OK
    assert judge.seen[0].effects.unknown


# Time limits


async def for_ever(input: Given, ctx: ToolContext) -> None:
    await asyncio.Event().wait()


@requirement("PIPE-8")
async def test_a_call_is_stopped_at_the_tools_own_time_limit() -> None:
    cleaned: list[str] = []

    async def body(input: Given, ctx: ToolContext) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            cleaned.append("up")

    async with asyncio.timeout(5):
        outcome = await stage(Act(body=body, time_limit=0.01)).run_one(call())

    assert (outcome.status, text_of(outcome)) == (
        Status.FAILED,
        snapshot("Act was stopped after 0.01 s, its time limit."),
    )
    assert cleaned == ["up"]


@requirement("PIPE-8")
async def test_a_setting_goes_before_the_tools_own_time_limit() -> None:
    at = stage(Act("Slow", for_ever, time_limit=3600), Act("None", for_ever), time_limits={"Slow": 0.01, "None": 0.01})

    async with asyncio.timeout(5):
        outcomes = await at.run(call("Slow"), call("None"))

    assert [outcome.status for outcome in outcomes] == [Status.FAILED, Status.FAILED]


@requirement("PIPE-8")
async def test_a_call_within_its_limit_keeps_its_result() -> None:
    outcome = await stage(Act(body=echo, time_limit=60)).run_one(call(text="in time"))

    assert (outcome.status, text_of(outcome)) == (Status.OK, "in time")


@requirement("PIPE-8", "PIPE-4")
async def test_a_tool_that_ignores_its_time_limit_is_left_behind_and_said_so(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("ferrule.engine.error_outcomes.end.__defaults__", (0.0,))
    release = asyncio.Event()

    async def body(input: Given, ctx: ToolContext) -> str:
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue
        return "too late"

    try:
        async with asyncio.timeout(5):
            outcome = await stage(Act(body=body, time_limit=0.01)).run_one(call())
    finally:
        release.set()
        await steps(3)

    assert (outcome.status, text_of(outcome)) == (
        Status.FAILED,
        snapshot("Act did not stop at its time limit of 0.01 s. It may still be running."),
    )
    assert "was left behind" in caplog.text


@requirement("PIPE-8", "CON-17")
async def test_work_in_a_thread_is_told_of_the_time_limit() -> None:
    told = asyncio.Event()

    async def body(input: Given, ctx: ToolContext) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            if ctx.cancelled:
                told.set()

    await stage(Act(body=body, time_limit=0.01)).run_one(call())

    assert told.is_set()


@requirement("PIPE-4", "PIPE-5")
async def test_work_that_is_ended_before_its_first_step_leaves_no_warning_behind() -> None:
    async def work() -> str:
        return "never"

    ended = in_own_task(work(), contain_exit)
    ended.cancel()
    await asyncio.wait((ended,))

    assert ended.cancelled()
    assert await in_own_task(work(), contain_exit) == "never"
