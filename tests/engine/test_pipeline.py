"""The life of one call: what happens in which order, and what every fault becomes."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Awaitable, Mapping
from typing import Any, NoReturn

import pytest
from inline_snapshot import snapshot
from pydantic import Field

from ferrule.core.calls import Status, ToolCall, ToolOutcome
from ferrule.core.content import Block, Line, Text, View
from ferrule.core.context import ToolContext
from ferrule.core.effects import Change, ChangesState, Effects, ReadsPath, WritesPath
from ferrule.core.events import Event, PermissionDecided, ToolFinished, ToolProgressed, ToolStarted
from ferrule.core.inputs import PathText, ToolInput
from ferrule.core.ports import Amendment, Proposal
from ferrule.core.state import Granted, MovedTo, Queued, StateSet, ToolsFound
from ferrule.core.tool import Alias, Exposure, Result, Tool, ToolError
from ferrule.core.verdicts import Behavior, Verdict
from ferrule.engine.budget import Budget
from ferrule.engine.executor import MAX_DEPTH
from ferrule.testing import Answering, FixedJudge, allow, ask, deny
from tests.requirement import requirement

from .stage import Act, Body, Given, Opinionated, call, stage, steps, text_of


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


# The order of things


class Diary(Tool[Given, str]):
    """Writes down what is asked of it, in order."""

    name = "Diary"
    description = "Write down what is asked."
    input_model = Given
    output_model = str

    def __init__(self) -> None:
        self.pages: list[str] = []

    def parse(self, arguments: Mapping[str, Any]) -> Given:
        self.pages.append("parse")
        return super().parse(arguments)

    def effects(self, input: Given, ctx: ToolContext) -> Effects:
        self.pages.append("effects")
        return Effects.reading("/work/a")

    def check(self, input: Given, ctx: ToolContext) -> None:
        self.pages.append("check")

    async def validate(self, input: Given, ctx: ToolContext) -> None:
        self.pages.append("validate")

    async def opinion(self, input: Given, ctx: ToolContext) -> Verdict | None:
        self.pages.append("opinion")
        return None

    async def call(self, input: Given, ctx: ToolContext) -> str:
        self.pages.append("call")
        ctx.report(Line("half way"))
        return "written"

    def check_output(self, output: str) -> str:
        self.pages.append("check output")
        return super().check_output(output)

    def to_model(self, output: str) -> tuple[Block, ...]:
        self.pages.append("to model")
        return super().to_model(output)

    def show_call(self, input: Given) -> View:
        self.pages.append("show call")
        return Line("a call")

    def show_result(self, input: Given, output: str) -> View:
        self.pages.append("show result")
        return Line("a result")


@requirement("PIPE-1", "PIPE-6", "CON-11")
async def test_the_stages_of_a_call_come_in_order_and_leave_a_record() -> None:
    tool = Diary()
    rule = ask("rule `Diary` asks", rule="Diary", origin="settings.json:3")
    granted = allow("the user said yes")

    class Asked(Answering):
        async def approve(self, proposal: Proposal, verdict: Verdict, /) -> Verdict:
            tool.pages.append("approve")
            return await super().approve(proposal, verdict)

    class Judging(FixedJudge):
        def judge(self, proposal: Proposal, /) -> Verdict | None:
            tool.pages.append("judge")
            return super().judge(proposal)

    class After:
        def after(self, proposal: Proposal, outcome: ToolOutcome, /) -> None:
            tool.pages.append("after")

    at = stage(tool, judges=[Judging(rule)], approver=Asked(granted), after=[After()])

    outcome = await at.run_one(call("Diary"))

    assert tool.pages == snapshot(
        [
            "parse",
            "effects",
            "check",
            "effects",
            "validate",
            "show call",
            "judge",
            "opinion",
            "approve",
            "call",
            "check output",
            "to model",
            "show result",
            "after",
        ]
    )
    assert at.seen.kinds() == snapshot(
        ["ToolRequested", "ToolStarted", "PermissionDecided", "ToolProgressed", "ToolFinished"]
    )
    record = outcome.record
    assert record is not None
    assert [name for name, _ in record.stages] == snapshot(
        ["prepare", "wait", "validate", "judge", "ask", "call", "project", "after"]
    )
    assert all(seconds >= 0 for _, seconds in record.stages)
    assert (record.call_id, record.tool, record.agent, record.chain) == ("1", "Diary", "main", ())
    assert (record.effects, record.verdict) == (Effects.of(ReadsPath("/work/a", "/work/a")), granted)
    assert (record.produced_chars, record.sent_chars, record.saved_to) == (7, 7, None)


@requirement("PIPE-6")
async def test_the_record_names_the_rule_and_its_file() -> None:
    rule = deny("rule `Act` in settings.json denies it", rule="Act", origin="settings.json:3")

    outcome = await stage(Act(), judges=[FixedJudge(rule)]).run_one(call())

    assert outcome.record is not None
    assert outcome.record.verdict == rule
    assert text_of(outcome) == snapshot("Act was not allowed: rule `Act` in settings.json denies it.")


@requirement("PIPE-6", "BUD-1")
async def test_the_record_keeps_the_sizes_before_and_after_the_budget() -> None:
    at = stage(Act(body=returning("x" * 500)), budget=Budget(limits={"Act": 100}))

    outcome = await at.run_one(call())

    assert outcome.record is not None
    assert outcome.record.produced_chars == 500
    assert outcome.record.sent_chars == len(text_of(outcome)) <= 100


@requirement("PIPE-6", "PIPE-2")
async def test_a_call_that_never_came_to_run_leaves_a_record_too() -> None:
    outcome = await stage(Act()).run_one(call("Nope"))

    assert outcome.record is not None
    assert [name for name, _ in outcome.record.stages] == ["prepare"]
    assert outcome.record.effects is None


# Calls that are wrong


@requirement("PIPE-2")
async def test_an_unknown_tool_is_answered_with_the_nearest_names() -> None:
    at = stage(Act("Read"), Act("Write"), Act("Glob"))

    near, cased, far = await at.run(call("Raed"), call("READ"), call("Teleport"))

    assert [outcome.status for outcome in (near, cased, far)] == [Status.INVALID] * 3
    assert text_of(near) == snapshot("There is no tool named Raed. Did you mean Read?")
    assert text_of(cased) == snapshot("There is no tool named READ. Did you mean Read?")
    assert text_of(far) == snapshot("There is no tool named Teleport. There are: Glob, Read, Write.")


@requirement("PIPE-2")
@pytest.mark.parametrize("written", ['{"text": "a', '["a"]', "null", "3", '"a"', "{'text': 1}", "[" * 100_000])
async def test_arguments_that_are_no_json_object_are_quoted(written: str) -> None:
    outcome = await stage(Act()).run_one(ToolCall.from_text("1", "Act", written))

    assert outcome.status is Status.INVALID
    assert written[:100] in text_of(outcome)
    assert len(text_of(outcome)) < 400


@requirement("PIPE-2")
async def test_the_words_about_malformed_arguments_say_what_to_do() -> None:
    outcome = await stage(Act()).run_one(ToolCall.from_text("1", "Act", '{"text": '))

    assert text_of(outcome) == snapshot(
        'The arguments of Act are not a JSON object: {"text": \nSend them again as one JSON object.'
    )


@requirement("CON-6", "PIPE-2", "POOL-7")
async def test_a_disabled_tool_says_why_it_cannot_be_used() -> None:
    at = stage(Act())
    at.session.registry.disable("Act", "its server went away")

    outcome = await at.run_one(call())

    assert (outcome.status, text_of(outcome)) == (Status.INVALID, "Act cannot be used here: its server went away.")


@requirement("PIPE-2", "CON-2")
async def test_wrong_arguments_never_reach_the_tool() -> None:
    reached: list[Given] = []

    async def body(input: Given, ctx: ToolContext) -> None:
        reached.append(input)

    outcome = await stage(Act(body=body)).run_one(call(text=3, colour="red"))

    assert outcome.status is Status.INVALID
    assert "`text` must be a string" in text_of(outcome)
    assert "`colour` is not a parameter" in text_of(outcome)
    assert not reached


@requirement("POOL-4")
async def test_wrong_arguments_of_a_deferred_tool_are_answered_with_its_schema() -> None:
    class Hidden(Act):
        exposure = Exposure.DEFERRED

    outcome = await stage(Hidden("Hidden")).run_one(call("Hidden", wrong=1))

    assert '"path":' in text_of(outcome)


@requirement("PIPE-1", "CON-7")
async def test_what_the_tool_refuses_before_the_call_is_invalid_and_not_denied() -> None:
    class Careful(Act):
        def check(self, input: Given, ctx: ToolContext) -> None:
            if input.text == "checked":
                raise ToolError("`text` must not be that.")

        async def validate(self, input: Given, ctx: ToolContext) -> None:
            if input.text == "looked at":
                raise ToolError("The world rules that out.")

    judge = FixedJudge(allow())
    checked, looked_at = await stage(Careful(), judges=[judge]).run(call(text="checked"), call(text="looked at"))

    assert (checked.status, text_of(checked)) == (Status.INVALID, "`text` must not be that.")
    assert (looked_at.status, text_of(looked_at)) == (Status.INVALID, "The world rules that out.")
    assert not judge.seen


async def test_a_refusal_without_words_still_says_something() -> None:
    class Mute(Act):
        async def validate(self, input: Given, ctx: ToolContext) -> None:
            raise ToolError

    outcome = await stage(Mute()).run_one(call())

    assert text_of(outcome) == snapshot("Act was refused without a reason.")


@requirement("CON-15")
async def test_an_old_name_brings_its_old_parameters() -> None:
    class Renamed(Act):
        aliases = (Alias("old_act", rename={"words": "text"}),)

    outcome = await stage(Renamed("New", echo)).run_one(call("old_act", words="hello"))

    assert (outcome.status, text_of(outcome)) == (Status.OK, "hello")


# Paths


@requirement("CON-8")
async def test_hooks_and_tools_see_absolute_paths_and_the_call_keeps_what_was_written() -> None:
    judge, inputs = FixedJudge(allow()), list[Given]()

    async def body(input: Given, ctx: ToolContext) -> None:
        inputs.append(input)

    written = call(path="sub/../a.txt", text="t")
    outcome = await stage(Act(body=body), judges=[judge]).run_one(written)

    (proposal,) = judge.seen
    assert dict(proposal.arguments) == {"path": "/work/a.txt", "text": "t"}
    assert proposal.input == inputs[0] == Given(path="/work/a.txt", text="t")
    assert proposal.call is outcome.call is written
    assert written.arguments["path"] == "sub/../a.txt"


@requirement("CON-8")
@pytest.mark.parametrize(
    ("written", "absolute"), [("~/a", "/home/a"), ("/x/./y", "/x/y"), ("..", "/"), ("a", "/work/a")]
)
async def test_every_way_to_write_a_path_becomes_absolute(written: str, absolute: str) -> None:
    judge = FixedJudge(allow())

    await stage(Act(), judges=[judge]).run_one(call(path=written))

    assert judge.seen[0].arguments["path"] == absolute


class Several(ToolInput):
    paths: list[PathText]
    main: PathText = Field(default=".", alias="mainPath")


class TakesSeveral(Tool[Several, str]):
    name = "Several"
    description = "Take several paths."
    input_model = Several

    def effects(self, input: Several, ctx: ToolContext) -> Effects:
        return Effects.reading(*input.paths)

    async def call(self, input: Several, ctx: ToolContext) -> str:
        return " ".join((*input.paths, input.main))


@requirement("CON-8")
async def test_lists_of_paths_and_renamed_fields_become_absolute_too() -> None:
    judge = FixedJudge(allow())
    at = stage(TakesSeveral(), judges=[judge])

    given, default = await at.run(call("Several", paths=["a", "/b"], mainPath="c"), call("Several", paths=[]))

    assert text_of(given) == "/work/a /b /work/c"
    assert dict(judge.seen[0].arguments) == {"paths": ["/work/a", "/b"], "mainPath": "/work/c"}
    assert text_of(default) == "/work"


@requirement("CON-8", "PIPE-2")
async def test_a_path_with_a_nul_is_refused() -> None:
    outcome = await stage(Act()).run_one(call(path="a\0b"))

    assert outcome.status is Status.INVALID
    assert text_of(outcome) == snapshot("`path` holds a NUL character, which no path can. Remove it.")


# May it?


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


@requirement("PIPE-1", "HOOK-3")
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
        snapshot("Act was not allowed: a check failed (TypeError: str is no verdict), so it is refused."),
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


# Changed input


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
    assert [decided.verdict for decided in at.seen.of(PermissionDecided)] == [approver.verdict]


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
        snapshot("Act was not allowed: its input was changed again and again."),
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
        snapshot("Act failed unexpectedly: ValueError: the sum was 3. The fault is the tool's."),
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
        (MemoryError(), Status.BROKEN, "MemoryError"),
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
        Result("r", messages=(3,)),  # type: ignore[arg-type]
        Result("r", messages="one text"),  # type: ignore[arg-type]
    ],
)
async def test_a_result_with_impossible_extras_is_broken_and_changes_nothing(result: Result[str]) -> None:
    at = stage(Act(body=returning(result)))

    outcome = await at.run_one(call())

    assert outcome.status is Status.BROKEN
    assert (outcome.changes, outcome.messages, at.session.state.cwd) == ((), (), "/work")


@requirement("PIPE-4")
async def test_a_change_that_cannot_be_made_holds_up_nobody(caplog: pytest.LogCaptureFixture) -> None:
    impossible = Result("r", changes=(ToolsFound(5),))  # type: ignore[arg-type]

    async with asyncio.timeout(5):
        outcomes = await stage(
            Act("Odd", returning(impossible), effects=Effects.of(ChangesState("found_tools"))), Act()
        ).run(call("Odd", "1"), call("Act", "2"))

    assert [outcome.status for outcome in outcomes] == [Status.OK, Status.OK]
    assert "could not be applied" in caplog.text


@requirement("PIPE-2", "CON-12")
async def test_views_that_raise_break_their_own_call_at_most(caplog: pytest.LogCaptureFixture) -> None:
    def fails(*_: Any) -> NoReturn:
        raise RuntimeError("cannot draw")

    calls, results, errors = Act("Calls"), Act("Results"), Act("Errors", raising(ToolError("It is full.")))
    calls.show_call, results.show_result, errors.show_error = fails, fails, fails  # type: ignore[method-assign]

    drawn = await stage(calls, results, errors).run(call("Calls"), call("Results"), call("Errors"))

    assert [(outcome.status, text_of(outcome)) for outcome in drawn] == snapshot(
        [
            (Status.BROKEN, "Calls failed unexpectedly: RuntimeError: cannot draw. The fault is the tool's."),
            (Status.BROKEN, "Results failed unexpectedly: RuntimeError: cannot draw. The fault is the tool's."),
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
    monkeypatch.setattr("ferrule.engine.faults.end.__defaults__", (0.0,))
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
@pytest.mark.parametrize("error", [OSError("no disk"), asyncio.CancelledError("c"), SystemExit(2), Odd("o")])
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
    changes = (MovedTo("/work/sub"), Granted("Read"), Queued("/tests"), ToolsFound(("X",)), StateSet("todo", [1]))
    result = Result({"n": 1}, messages=("look at this",), changes=changes, meta={"trace": "abc"})
    at = stage(Act(body=returning(result)))

    outcome = await at.run_one(call())

    assert (outcome.output, text_of(outcome), outcome.messages) == ({"n": 1}, '{"n":1}', ("look at this",))
    assert (outcome.changes, outcome.meta) == (changes, {"trace": "abc"})
    state = at.session.state
    assert (state.cwd, state.grants, state.queue) == ("/work/sub", ("Read",), ("/tests",))
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


# What a call knows, and calls inside of calls


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
    assert (ctx.call_id, ctx.cwd, ctx.depth, ctx.cancelled) == ("call-7", "/work", 0, False)
    facts = ctx.facts
    assert (facts.session_id, facts.turn, facts.agent, facts.workspace) == ("session-1", 3, "main", "/work")
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


@requirement("CON-17", "TASK-1")
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
    from ferrule.engine.faults import told

    with pytest.raises(KeyboardInterrupt):
        told(call(), KeyboardInterrupt())


async def test_the_log_is_silent_about_what_goes_well(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "ferrule")

    at = stage(Act(body=raising(ToolError("The disk is full."))), Act("Fine"))
    await at.run(call(), call("Fine"))

    assert not caplog.records
    assert len(at.seen.of(ToolStarted)) == 2
