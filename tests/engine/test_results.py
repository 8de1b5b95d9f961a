"""After the call: what a result carries, and what later steps may change of it."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from ferrule.core.calls import Status, ToolOutcome
from ferrule.core.content import Line, Text, View
from ferrule.core.context import ToolContext
from ferrule.core.events import Event, ToolProgressed
from ferrule.core.ports import Amendment, Proposal
from ferrule.core.state import Granted, MovedTo, Queued, StateSet, ToolsFound
from ferrule.core.tool import Result, ToolError
from ferrule.engine.budget import Budget
from ferrule.testing import FixedJudge, deny
from tests.requirement import requirement

from .stage import Act, Given, call, echo, raising, returning, stage, text_of

# After the call


class Step:
    """A step after the call that answers with an amendment, now or later, and remembers what it saw."""

    def __init__(self, amendment: Amendment | None = None, *, late: bool = False) -> None:
        self.seen: list[ToolOutcome] = []
        self._amendment = amendment
        self._late = late

    def after(self, proposal: Proposal, outcome: ToolOutcome, /) -> Any:
        async def later() -> Amendment | None:
            await asyncio.sleep(0)
            return self._amendment

        self.seen.append(outcome)
        return later() if self._late else self._amendment


@requirement("PIPE-1")
@pytest.mark.parametrize("late", [False, True])
async def test_a_step_after_the_call_may_change_the_output_and_it_is_checked_and_shown_anew(late: bool) -> None:
    class Typed(Act):
        output_model = str

        def show_result(self, input: Given, output: Any) -> View:
            return Line(f"shown {output}")

    step = Step(Amendment(output="other"), late=late)
    outcome = await stage(Typed(body=returning(Result("first", messages=("m",)))), after=[step]).run_one(call())

    assert (outcome.output, text_of(outcome), outcome.view) == ("other", "other", Line("shown other"))
    assert outcome.messages == ("m",)
    assert text_of(step.seen[0]) == "first"


@requirement("PIPE-1")
async def test_an_output_a_step_changed_is_budgeted_again() -> None:
    steps = [Step(Amendment(output="y" * 500)), Step(Amendment(content=(Text("z" * 600),)))]

    for step in steps:
        outcome = await stage(Act(), after=[step], budget=Budget(limits={"Act": 100})).run_one(call())
        assert "left out" in text_of(outcome)
        assert len(text_of(outcome)) <= 100


@requirement("PIPE-1", "CON-10")
async def test_a_step_may_change_what_the_model_reads_and_add_to_the_conversation() -> None:
    amendment = Amendment(content=(Text("formatted"),), messages=("also this",))

    outcome = await stage(Act(), after=[Step(amendment), Step()]).run_one(call())

    assert (outcome.output, text_of(outcome), outcome.messages) == ("done", "formatted", ("also this",))


@requirement("PIPE-1", "PIPE-2")
@pytest.mark.parametrize(
    "amendment",
    [Amendment(output=3), Amendment(content=("text",)), Amendment(content="text")],  # type: ignore[arg-type]
)
async def test_a_step_that_changes_the_result_into_nonsense_changes_nothing_and_is_named(amendment: Amendment) -> None:
    class Typed(Act):
        output_model = str

    outcome = await stage(Typed(), after=[Step(amendment)]).run_one(call())

    assert (outcome.status, outcome.output) == (Status.OK, "done")
    assert text_of(outcome).startswith("done\n[A step after the call failed: ")


@requirement("PIPE-1", "PIPE-2")
@pytest.mark.parametrize("error", [OSError("no disk"), asyncio.CancelledError("c"), SystemExit(2), BaseException("b")])
@pytest.mark.parametrize("late", [False, True])
async def test_a_step_that_fails_leaves_the_result_and_says_so(
    error: BaseException, late: bool, caplog: pytest.LogCaptureFixture
) -> None:
    class Failing:
        def after(self, proposal: Proposal, outcome: ToolOutcome, /) -> Any:
            async def later() -> None:
                raise error

            if late:
                return later()
            raise error

    following = Step()
    outcome = await stage(Act(), after=[Failing(), following]).run_one(call())

    assert outcome.status is Status.OK
    assert text_of(outcome).startswith(f"done\n[A step after the call failed: {type(error).__name__}")
    assert len(following.seen) == 1
    assert "Traceback" in caplog.text


@requirement("PIPE-1")
async def test_steps_follow_calls_that_ran_well_or_badly_and_no_others() -> None:
    class Picky(Act):
        async def validate(self, input: Given, ctx: ToolContext) -> None:
            if input.text == "breaks":
                raise RuntimeError("broken validation")

    step = Step()
    at = stage(
        Picky(body=echo), Act("Fails", raising(ToolError("f"))), Act("Breaks", raising(ValueError("b"))), after=[step]
    )

    await at.run(call(text="ok"), call("Fails"), call("Breaks"), call(text="breaks"), call("Unknown"), call(text=1))

    assert [outcome.status for outcome in step.seen] == [Status.OK, Status.FAILED, Status.BROKEN]


@requirement("PIPE-1")
async def test_a_denied_call_is_followed_by_no_step() -> None:
    step = Step()

    await stage(Act(), judges=[FixedJudge(deny())], after=[step]).run_one(call())

    assert not step.seen


# What a result carries


@requirement("CON-10", "SCHED-3")
async def test_a_result_carries_data_messages_changes_and_metadata() -> None:
    changes = (MovedTo("/project/sub"), Granted("Read"), Queued("/tests"), ToolsFound(("X",)), StateSet("todo", [1]))
    result = Result({"n": 1}, messages=("look at this",), changes=changes, meta={"trace": "abc"})
    at = stage(Act(body=returning(result)))

    outcome = await at.run_one(call())

    assert (outcome.output, text_of(outcome), outcome.messages) == ({"n": 1}, '{"n":1}', ("look at this",))
    assert (outcome.changes, outcome.meta) == (changes, {"trace": "abc"})
    state = at.session.state
    assert (state.cwd, state.grants, state.queue) == ("/project/sub", ("Read",), ("/tests",))
    assert (state.found_tools, state.values) == (("X",), {"todo": [1]})


@requirement("CON-11")
async def test_progress_is_seen_while_the_call_still_runs() -> None:
    release = asyncio.Event()

    async def body(input: Given, ctx: ToolContext) -> None:
        ctx.report(Line("half way"))
        await release.wait()

    at = stage(Act(body=body))
    with at.session.bus.subscribe() as events:
        running = asyncio.create_task(at.run_one(call()))
        async with asyncio.timeout(5):
            async for envelope in events:
                if envelope.event == ToolProgressed("1", Line("half way")):
                    break
        still_running = not running.done()
        release.set()
        await running

    assert still_running


@requirement("CON-11")
async def test_progress_reported_from_a_thread_is_seen_live_on_the_loop_of_the_session() -> None:
    seen, threads = threading.Event(), set[int]()

    def watch(event: Event) -> None:
        if isinstance(event, ToolProgressed):
            threads.add(threading.get_ident())

    def work(ctx: ToolContext) -> bool:
        ctx.report(Line("from a thread"))
        return seen.wait(5)

    async def body(input: Given, ctx: ToolContext) -> bool:
        return await asyncio.to_thread(work, ctx)

    at = stage(Act(body=body), watch=watch)
    with at.session.bus.subscribe() as events:
        running = asyncio.create_task(at.run_one(call()))
        async for envelope in events:
            if isinstance(envelope.event, ToolProgressed):
                seen.set()
                break
        outcome = await running

    assert outcome.output is True
    assert threads == {threading.get_ident()}


@requirement("CON-11")
async def test_progress_after_the_end_is_not_heard() -> None:
    kept: list[ToolContext] = []

    async def body(input: Given, ctx: ToolContext) -> None:
        kept.append(ctx)

    at = stage(Act(body=body))
    await at.run_one(call())

    kept[0].report(Line("late"))

    assert at.seen.kinds()[-1] == "ToolFinished"


@requirement("BUD-1")
async def test_an_error_has_the_limit_of_a_result() -> None:
    outcome = await stage(Act(body=raising(ToolError("x" * 150_000)))).run_one(call())

    assert outcome.status is Status.FAILED
    assert len(text_of(outcome)) <= 30_000
    assert "characters left out" in text_of(outcome)


@requirement("PIPE-6")
async def test_the_record_knows_the_size_of_what_a_step_put_in_its_place() -> None:
    step = Step(Amendment(content=(Text("y" * 50_000),)))

    outcome = await stage(Act(), after=[step]).run_one(call())

    assert outcome.record is not None
    assert outcome.record.produced_chars == 50_000
    assert outcome.record.sent_chars == len(text_of(outcome)) <= 30_000
