"""The life of one call: what happens in which order, and what is refused before it begins."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from inline_snapshot import snapshot
from pydantic import Field

from ferrule.core.calls import Status, ToolCall, ToolOutcome
from ferrule.core.content import Block, Line, View
from ferrule.core.context import ToolContext
from ferrule.core.effects import Effects, ReadsPath
from ferrule.core.inputs import PathText, ToolInput
from ferrule.core.ports import Proposal
from ferrule.core.tool import Alias, Exposure, Tool, ToolError
from ferrule.core.verdicts import Verdict
from ferrule.engine.budget import Budget
from ferrule.testing import Answering, FixedJudge, allow, ask, deny
from tests.requirement import requirement

from .stage import Act, Given, call, echo, returning, stage, text_of

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
        return Effects.reading("/project/a")

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
        ["prepare", "wait", "validate", "judge", "ask", "call", "project", "after", "settle"]
    )
    assert all(seconds >= 0 for _, seconds in record.stages)
    assert (record.call_id, record.tool, record.agent, record.chain) == ("1", "Diary", "main", ())
    assert (record.effects, record.verdict) == (
        Effects.of(ReadsPath("/project/a", "/project/a")),
        replace(granted, approved=True),
    )
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
    assert [name for name, _ in outcome.record.stages] == ["prepare", "settle"]
    assert outcome.record.effects is None


# Calls that are wrong


@requirement("PIPE-2")
async def test_an_unknown_tool_is_answered_with_the_nearest_names() -> None:
    at = stage(Act("Read"), Act("Write"), Act("Glob"))

    near, cased, far = await at.run(call("Raed"), call("READ"), call("Teleport"))

    assert [outcome.status for outcome in (near, cased, far)] == [Status.INVALID] * 3
    assert text_of(near) == snapshot("No tool is named Raed. Did you mean Read?")
    assert text_of(cased) == snapshot("No tool is named READ. Did you mean Read?")
    assert text_of(far) == snapshot("No tool is named Teleport. Available: Glob, Read, Write.")


@requirement("PIPE-2")
@pytest.mark.parametrize("written", ['{"text": "a', '["a"]', "null", "3", '"a"', "{'text': 'it's'}", "[" * 100_000])
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
    assert dict(proposal.arguments) == {"path": "/project/a.txt", "text": "t"}
    assert proposal.input == inputs[0] == Given(path="/project/a.txt", text="t")
    assert proposal.call is outcome.call is written
    assert written.arguments["path"] == "sub/../a.txt"


@requirement("CON-8")
@pytest.mark.parametrize(
    ("written", "absolute"), [("~/a", "/home/a"), ("/x/./y", "/x/y"), ("..", "/"), ("a", "/project/a")]
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

    assert text_of(given) == "/project/a /b /project/c"
    assert dict(judge.seen[0].arguments) == {"paths": ["/project/a", "/b"], "mainPath": "/project/c"}
    assert text_of(default) == "/project"


@requirement("CON-8", "PIPE-2")
async def test_a_path_with_a_nul_is_refused() -> None:
    outcome = await stage(Act()).run_one(call(path="a\0b"))

    assert outcome.status is Status.INVALID
    assert text_of(outcome) == snapshot("`path` holds a NUL character, which no path can. Remove it.")
