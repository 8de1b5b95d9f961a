"""Input that somebody changed is validated again and judged as changed."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

from inline_snapshot import snapshot

from ferrule.core.calls import Status
from ferrule.core.context import ToolContext
from ferrule.core.effects import Change, Effects, WritesPath
from ferrule.core.events import PermissionDecided
from ferrule.core.ports import Proposal
from ferrule.core.verdicts import Verdict
from ferrule.testing import Answering, FixedJudge, allow, ask, deny
from tests.requirement import requirement

from .stage import Act, Given, Opinionated, call, echo, returning, stage, text_of


def into(text: str, *, when: str | None = None, verdict: Any = allow) -> Any:
    """A judge that wants `text` for the text, for every call or for those that say `when`."""

    class Rewriting:
        def judge(self, proposal: Proposal, /) -> Verdict | None:
            if when is not None and proposal.input.text != when:
                return None
            return verdict(updated_arguments={**proposal.arguments, "text": text})

    return Rewriting()


class Forbids:
    """A judge that denies one text and remembers what it was shown."""

    def __init__(self, text: str) -> None:
        self.seen: list[str] = []
        self._text = text

    def judge(self, proposal: Proposal, /) -> Verdict | None:
        self.seen.append(proposal.input.text)
        return deny(f"`{self._text}` is forbidden") if proposal.input.text == self._text else None


@requirement("PIPE-3")
async def test_an_input_changed_by_a_judge_is_what_runs_and_the_change_is_on_record() -> None:
    outcome = await stage(Act(body=echo), judges=[into("safe"), FixedJudge(allow())]).run_one(call(text="rash"))

    assert text_of(outcome) == "safe"
    assert outcome.call.arguments == {"text": "rash"}
    assert outcome.record is not None
    assert outcome.record.rewrites == ({"text": "safe"},)


@requirement("PIPE-3", "CON-16")
async def test_an_input_changed_by_the_tool_itself_is_judged_as_changed() -> None:
    tool = Opinionated(
        body=echo, says=lambda given: allow(updated_arguments={"text": "b"}) if given.text == "a" else None
    )
    forbids = Forbids("b")

    outcome = await stage(tool, judges=[FixedJudge(allow()), forbids]).run_one(call(text="a"))

    assert forbids.seen == ["a", "b"]
    assert (outcome.status, text_of(outcome)) == (Status.DENIED, "Act was not allowed: `b` is forbidden.")


@requirement("PIPE-3")
async def test_an_input_changed_by_the_approver_is_validated_again_judged_again_and_not_asked_again() -> None:
    class Counting(Act):
        validated: list[str] = []

        async def validate(self, input: Given, ctx: ToolContext) -> None:
            self.validated.append(input.text)

    approver = Answering(allow("the user changed it", updated_arguments={"text": "b"}))
    judge = FixedJudge(None)
    at = stage(Counting(body=echo), judges=[judge], approver=approver)

    outcome = await at.run_one(call(text="a"))

    assert text_of(outcome) == "b"
    assert Counting.validated == ["a", "b"]
    assert [proposal.input.text for proposal in judge.seen] == ["a", "b"]
    assert len(approver.asked) == 1
    assert [decided.verdict for decided in at.seen.of(PermissionDecided)] == [replace(approver.verdict, approved=True)]


@requirement("PIPE-3")
async def test_what_an_approver_changed_can_still_be_denied() -> None:
    approver = Answering(allow(updated_arguments={"text": "b"}))

    outcome = await stage(Act(body=echo), judges=[Forbids("b")], approver=approver).run_one(call(text="a"))

    assert (outcome.status, text_of(outcome)) == (Status.DENIED, "Act was not allowed: `b` is forbidden.")


@requirement("PIPE-3")
async def test_an_approval_does_not_stand_for_what_a_judge_makes_of_it_afterwards() -> None:
    approver = Answering(allow(updated_arguments={"text": "b"}))
    judges = [into("c", when="b", verdict=ask), Forbids("d")]

    outcome = await stage(Act(body=echo), judges=judges, approver=approver).run_one(call(text="a"))

    assert [proposal.input.text for proposal in approver.asked][:2] == ["a", "c"]
    assert outcome.status is Status.DENIED  # approver and judge change it back and forth


@requirement("PIPE-3")
async def test_an_approver_may_take_every_argument_away() -> None:
    approver = Answering(allow(updated_arguments={}))

    outcome = await stage(Act(body=echo), judges=[], approver=approver).run_one(call(text="a"))

    assert (outcome.status, outcome.output) == (Status.OK, "")


@requirement("PIPE-3")
async def test_a_changed_input_that_is_wrong_is_refused_by_name() -> None:
    judges = [FixedJudge(allow(updated_arguments={"text": 3}))]

    outcome = await stage(Act(), judges=judges).run_one(call(text="a"))

    assert outcome.status is Status.INVALID
    assert "`text` must be a string" in text_of(outcome)


@requirement("PIPE-3")
async def test_a_deny_wins_over_a_change() -> None:
    outcome = await stage(Act(body=echo), judges=[into("b"), FixedJudge(deny("no"))]).run_one(call(text="a"))

    assert outcome.status is Status.DENIED
    assert outcome.record is not None
    assert outcome.record.rewrites == ()


@requirement("PIPE-3")
async def test_a_change_without_leave_to_run_is_asked_about_as_changed() -> None:
    approver = Answering(allow())

    await stage(Act(body=echo), judges=[into("b", verdict=ask)], approver=approver).run_one(call(text="a"))

    assert [proposal.input.text for proposal in approver.asked] == ["b"]


@requirement("PIPE-3", "CON-8")
async def test_a_judge_may_ask_for_a_relative_path_again_and_again() -> None:
    judges = [FixedJudge(allow(updated_arguments={"path": "b"}))]

    outcome = await stage(Act(body=returning("ran")), judges=judges).run_one(call(path="a"))

    assert (outcome.status, len(judges[0].seen)) == (Status.OK, 2)


@requirement("PIPE-3")
async def test_endless_changing_is_refused() -> None:
    class Restless:
        def judge(self, proposal: Proposal, /) -> Verdict:
            return allow(updated_arguments={"text": proposal.input.text + "!"})

    ran: list[str] = []

    async def body(input: Given, ctx: ToolContext) -> None:
        ran.append(input.text)

    outcome = await stage(Act(body=body), judges=[Restless()]).run_one(call(text="a"))

    assert (outcome.status, text_of(outcome)) == (
        Status.DENIED,
        snapshot("Act was not allowed: its input was rewritten more than 3 times."),
    )
    assert not ran


@requirement("PIPE-3", "SCHED-1")
async def test_a_changed_input_passes_the_gate_again_with_its_new_effects() -> None:
    entered, release, ran = asyncio.Event(), asyncio.Event(), list[str]()

    async def slow(input: Given, ctx: ToolContext) -> None:
        entered.set()
        await release.wait()
        ran.append("slow")

    async def quick(input: Given, ctx: ToolContext) -> None:
        ran.append("quick")

    def writes(input: Given, ctx: ToolContext) -> Effects:
        return Effects.of(WritesPath(input.path or "/none", Change.REPLACES))

    class AfterSlow:
        async def judge(self, proposal: Proposal, /) -> Verdict:
            if proposal.tool.name == "Slow":
                return allow()
            await entered.wait()
            return allow(updated_arguments={"path": "/a"})

    at = stage(Act("Quick", quick, effects=writes), Act("Slow", slow, effects=writes), judges=[AfterSlow()])
    executor = at.executor()
    async with asyncio.timeout(5), executor:
        executor.submit(call("Quick", "1", path="/b"))
        executor.submit(call("Slow", "2", path="/a"))
        executor.message_complete()
        await entered.wait()
        for _ in range(20):
            await asyncio.sleep(0)
        waited = not ran
        release.set()
        first, _ = await executor.drain()

    assert waited
    assert ran == ["slow", "quick"]
    assert first.record is not None
    assert first.record.effects == Effects.of(WritesPath("/a", Change.REPLACES, "/a"))


@requirement("PIPE-3", "SCHED-1")
async def test_two_calls_changed_to_concern_each_other_both_run_in_their_order() -> None:
    second_is_judged, first_has_changed, ran = asyncio.Event(), asyncio.Event(), list[str]()

    async def body(input: Given, ctx: ToolContext) -> None:
        ran.append(ctx.call_id)

    def writes(input: Given, ctx: ToolContext) -> Effects:
        if (ctx.call_id, input.path) == ("1", "/b"):
            first_has_changed.set()
        return Effects.of(WritesPath(input.path or "/none", Change.REPLACES))

    class Changing:
        async def judge(self, proposal: Proposal, /) -> Verdict:
            if proposal.call.id == "1":
                await second_is_judged.wait()
                return allow(updated_arguments={"path": "/b"})
            second_is_judged.set()
            await first_has_changed.wait()
            return allow(updated_arguments={"path": "/b/x"})

    async with asyncio.timeout(5):
        await stage(Act(body=body, effects=writes), judges=[Changing()]).run(
            call("Act", "1", path="/a"), call("Act", "2", path="/b")
        )

    assert ran == ["1", "2"]
