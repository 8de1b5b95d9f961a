"""May it? Who is asked, in which order, and what counts."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any

import pytest
from inline_snapshot import snapshot

from ferrule.core.calls import Status
from ferrule.core.context import ToolContext
from ferrule.core.events import PermissionDecided
from ferrule.core.ports import Proposal
from ferrule.core.verdicts import Behavior, Verdict
from ferrule.testing import Answering, FixedJudge, allow, ask, deny
from tests.requirement import requirement

from .stage import Act, Given, Opinionated, call, stage, steps, text_of


@requirement("CON-7", "PIPE-1")
async def test_silence_asks_and_a_refusal_is_denied_in_words() -> None:
    approver = Answering(deny("the user said no"))
    at = stage(Act(), judges=[], approver=approver)

    outcome = await at.run_one(call())

    assert (outcome.status, text_of(outcome)) == (Status.DENIED, "Act was not allowed: the user said no.")
    assert len(approver.asked) == 1
    assert at.seen.of(PermissionDecided) == [PermissionDecided("1", deny("the user said no"))]


async def test_an_approver_that_gives_no_clear_answer_has_said_no() -> None:
    outcome = await stage(Act(), judges=[], approver=Answering(ask())).run_one(call())

    assert outcome.status is Status.DENIED


@requirement("PIPE-2", "CON-7")
@pytest.mark.parametrize("error", [RuntimeError("the dialog crashed"), asyncio.CancelledError(), SystemExit(3)])
async def test_an_approver_that_fails_has_said_no(error: BaseException) -> None:
    class Failing:
        async def approve(self, proposal: Proposal, verdict: Verdict, /) -> Verdict:
            raise error

    outcome = await stage(Act(), judges=[], approver=Failing()).run_one(call())

    assert outcome.status is Status.DENIED
    assert type(error).__name__ in text_of(outcome)


class Waiting:
    """A judge that answers when its event is set."""

    def __init__(self, verdict: Verdict | None, event: asyncio.Event) -> None:
        self._verdict = verdict
        self._event = event
        self.ended = False

    async def judge(self, proposal: Proposal, /) -> Verdict | None:
        try:
            await self._event.wait()
        finally:
            self.ended = True
        return self._verdict


@requirement("PIPE-1")
async def test_all_judges_and_the_tool_are_asked_at_once() -> None:
    barrier = asyncio.Barrier(3)

    class Meeting:
        async def judge(self, proposal: Proposal, /) -> Verdict:
            await barrier.wait()
            return allow()

    class MeetingTool(Act):
        async def opinion(self, input: Given, ctx: ToolContext) -> None:
            await barrier.wait()

    async with asyncio.timeout(5):
        outcome = await stage(MeetingTool(), judges=[Meeting(), Meeting()]).run_one(call())

    assert outcome.status is Status.OK


@requirement("PIPE-1")
async def test_a_deny_ends_the_wait_for_a_judge_that_never_answers() -> None:
    never = [Waiting(allow(), asyncio.Event()) for _ in range(2)]
    said = asyncio.Event()
    said.set()

    async with asyncio.timeout(5):
        outcome = await stage(Act(), judges=[never[0], Waiting(deny("no"), said), never[1]]).run_one(call())

    assert (outcome.status, text_of(outcome)) == (Status.DENIED, "Act was not allowed: no.")
    assert all(judge.ended for judge in never)


@requirement("PIPE-1")
async def test_a_deny_that_comes_at_once_does_not_start_the_waiting() -> None:
    never = Waiting(allow(), asyncio.Event())

    async with asyncio.timeout(5):
        outcome = await stage(Act(), judges=[never, FixedJudge(deny("no"))]).run_one(call())

    assert outcome.status is Status.DENIED
    assert not never.ended


async def test_a_deny_does_not_wait_long_for_a_judge_that_will_not_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ferrule.engine.judging.GRACE", 0.0)
    release, said = asyncio.Event(), asyncio.Event()
    said.set()

    class Stubborn:
        async def judge(self, proposal: Proposal, /) -> Verdict:
            while not release.is_set():
                try:
                    await release.wait()
                except asyncio.CancelledError:
                    continue
            return allow()

    try:
        async with asyncio.timeout(5):
            outcome = await stage(Act(), judges=[Stubborn(), Waiting(deny("no"), said)]).run_one(call())
    finally:
        release.set()
        await steps(3)

    assert outcome.status is Status.DENIED


@requirement("PIPE-1")
@pytest.mark.parametrize(
    ("verdicts", "status", "asked"),
    [
        ([allow(), None], Status.OK, 0),
        ([allow(), ask()], Status.OK, 1),
        ([allow(), ask(), deny()], Status.DENIED, 0),
        ([None, None], Status.OK, 1),
    ],
)
async def test_the_strictest_opinion_counts(verdicts: list[Verdict | None], status: Status, asked: int) -> None:
    approver = Answering(allow())

    outcome = await stage(Act(), judges=[FixedJudge(each) for each in verdicts], approver=approver).run_one(call())

    assert (outcome.status, len(approver.asked)) == (status, asked)


class Crashing:
    def __init__(self, error: BaseException, *, late: bool) -> None:
        self._error = error
        self._late = late

    def judge(self, proposal: Proposal, /) -> Awaitable[Verdict]:
        async def later() -> Verdict:
            await asyncio.sleep(0)
            raise self._error

        if self._late:
            return later()
        raise self._error


@requirement("PIPE-2", "CON-7")
@pytest.mark.parametrize("error", [RuntimeError("no rules"), asyncio.CancelledError(), SystemExit(1), KeyError("x")])
@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("others", [0, 2])
async def test_a_judge_that_crashes_denies(
    error: BaseException, late: bool, others: int, caplog: pytest.LogCaptureFixture
) -> None:
    ready = asyncio.Event()
    ready.set()
    judges = [Crashing(error, late=late), *(Waiting(allow(), ready) for _ in range(others))]

    outcome = await stage(Act(), judges=judges).run_one(call())

    assert outcome.status is Status.DENIED
    assert f"a check failed ({type(error).__name__}" in text_of(outcome)
    assert caplog.records[0].exc_info is not None


@requirement("PIPE-2")
@pytest.mark.parametrize("late", [False, True])
async def test_a_judge_that_says_something_else_than_a_verdict_denies(late: bool) -> None:
    class Odd:
        def judge(self, proposal: Proposal, /) -> Any:
            async def later() -> Any:
                return "yes"

            return later() if late else "yes"

    outcome = await stage(Act(), judges=[Odd(), FixedJudge(allow())]).run_one(call())

    assert (outcome.status, text_of(outcome)) == (
        Status.DENIED,
        snapshot("Act was not allowed: a check failed (TypeError: str is not a verdict), so it is refused."),
    )


@requirement("CON-16")
@pytest.mark.parametrize("source", ["tool", "rule", "user"])
async def test_a_tool_cannot_allow_itself_whatever_it_signs_with(source: Any) -> None:
    verdict = Verdict(behavior=Behavior.ALLOW, source=source, reason="trust me")
    approver = Answering(deny("the user said no"))

    outcome = await stage(Opinionated(says=lambda _: verdict), judges=[], approver=approver).run_one(call())

    assert outcome.status is Status.DENIED
    assert len(approver.asked) == 1


@requirement("CON-16")
@pytest.mark.parametrize(
    ("said", "status", "asked"), [(deny("not like that"), Status.DENIED, 0), (ask("sure?"), Status.OK, 1)]
)
async def test_a_tool_can_tighten_what_a_rule_allows(said: Verdict, status: Status, asked: int) -> None:
    approver = Answering(allow())

    outcome = await stage(Opinionated(says=lambda _: said), approver=approver).run_one(call())

    assert (outcome.status, len(approver.asked)) == (status, asked)
