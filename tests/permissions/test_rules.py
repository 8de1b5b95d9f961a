"""Rules and mode as one judge."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot

from ferrule.app.build import Settings, open_session
from ferrule.core.calls import Status, ToolCall
from ferrule.core.content import Text
from ferrule.core.context import ToolContext
from ferrule.core.effects import (
    ChangesState,
    Effects,
    Opaque,
    ReachesHost,
    ReadsPath,
    ReadsState,
    RunsCommand,
    Touch,
    WritesPath,
)
from ferrule.core.inputs import ToolInput
from ferrule.core.ports import Proposal
from ferrule.core.tool import Alias, Tool
from ferrule.core.verdicts import NO_OPINION, Behavior, Verdict
from ferrule.permissions.approvals import NobodyToAsk
from ferrule.permissions.judge import RuleJudge
from ferrule.permissions.modes import Mode
from ferrule.permissions.path_patterns import Places
from ferrule.permissions.rules import Origin, Rule, RuleError, parse_rule, parse_rules, parse_valid_rules
from ferrule.testing import Answering, allow, ask, bare_context, deny
from tests.requirement import requirement

ALLOW, ASK, DENY = Behavior
HEARING = [Mode.DEFAULT, Mode.AUTO, Mode.ACCEPT_EDITS, Mode.BYPASS]
"""Modes that take no call away from the rules: plan and dontAsk tighten."""


class Nothing(ToolInput):
    pass


class Acts(Tool[Nothing, str]):
    """Do something, after stating what."""

    name = "Acts"
    input_model = Nothing
    aliases = (Alias("old_acts"),)

    def __init__(self, *touches: Touch) -> None:
        self._touches = touches

    def effects(self, input: Nothing, ctx: ToolContext) -> Effects:
        return Effects.of(*self._touches)

    async def call(self, input: Nothing, ctx: ToolContext) -> str:
        return "done"


def _proposal(tool: Tool[Any, Any], effects: Effects) -> Proposal:
    return Proposal(ToolCall("1", tool.name, {}), tool, Nothing(), {}, effects, bare_context("/project"))


def _places(cwd: str) -> Places:
    return Places(cwd=(cwd,), home=("/home/u",), roots=(cwd,))


def _judged(rules: list[Rule], mode: Mode = Mode.DEFAULT, effects: Effects | None = None) -> Verdict | None:
    return RuleJudge(rules, mode, _places("/project")).judge(_proposal(Acts(), effects or Effects()))


# Rules as users write them


@requirement("PERM-3")
@pytest.mark.parametrize("text", ["Read", " Read ", "Read()", "Read(*)"])
def test_a_bare_name_is_a_rule_for_the_whole_tool(text: str) -> None:
    rule = parse_rule(text, DENY, "--deny")

    assert (rule.tool, rule.text, str(rule.origin), rule.is_whole) == ("Read", text, "--deny", True)


@requirement("PERM-3")
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "a rule is empty"),
        ("*", "allows every tool of that kind"),
        ("Notebook*", "allows every tool of that kind"),
        ("mcp__*", "allows tools of any server"),
        ("mcp__*__read", "allows tools of any server"),
        ("mcp__", "names no server"),
        ("Read Write", "has a space in the tool's name"),
        ("Read)", "closes a parenthesis that was not opened"),
        ("Bash(git *", "has a parenthesis that is not closed"),
        ("(git *)", "names no tool"),
        ("Bash(a) b", "goes on after its closing parenthesis"),
        ("Bash( )", "has only spaces in its parentheses"),
        ("1st", "is not a rule"),
        ("Réad", "is not a rule"),
        ("Read(!x)", "negates its pattern"),
        ("Read(../x)", "goes up with `..`"),
        ("Read(a/**/b/**/c/**/d/**)", "has more than 3 wildcards"),
        ("Read(*a*a*a*a)", "has more than 3 wildcards"),
        ("Read(a\0b)", "contains a NUL character"),
        ("Write(src/**)", "Write `Edit(src/**)`"),
        ("Glob(src/**)", "Write `Read(src/**)`"),
        ("WebFetch(example.com)", "Write `WebFetch(domain:example.com)`"),
        ("WebFetch(domain:)", "has no host name"),
        ("WebFetch(domain:https://example.com)", "has no host name"),
        ("WebFetch(domain:example.com/x)", "has no host name"),
        ("WebFetch(domain:example.com:80)", "has no host name"),
        ("WebFetch(domain:*.com)", "allows a whole top-level domain"),
        ("WebFetch(domain:*.*)", "allows every domain"),
        ("WebSearch(x)", "does not accept one"),
    ],
)
def test_what_cannot_allow_is_skipped_with_words_and_never_widened(text: str, words: str) -> None:
    with pytest.raises(RuleError) as caught:
        parse_rules(["Read", text], ALLOW, "settings.json")
    valid = parse_valid_rules(["Read", text], ALLOW, Origin("settings.json", line=3))

    assert words in str(caught.value)
    assert str(caught.value).startswith("settings.json: ")
    assert [rule.tool for rule in valid] == ["Read"]


@requirement("PERM-3")
@pytest.mark.parametrize("text", ["*", "Notebook*", "mcp__*", "mcp__*__read", "Write(src/**)", "Agent(model:opus)"])
def test_what_would_be_too_wide_to_allow_may_deny(text: str) -> None:
    assert parse_rule(text, DENY, "settings.json").behavior is DENY


# Deny before ask before allow


@requirement("PERM-1")
@given(st.lists(st.sampled_from(Behavior), min_size=1, max_size=5), st.sampled_from(HEARING))
def test_the_strictest_rule_counts_wherever_it_stands(behaviors: list[Behavior], mode: Mode) -> None:
    verdict = _judged([Rule("Acts", behavior, "Acts", Origin("settings.json")) for behavior in behaviors], mode)

    assert verdict is not None
    assert verdict.behavior is max(behaviors)


@requirement("PERM-1")
@pytest.mark.parametrize(("behavior", "verb"), [(ALLOW, "allows"), (ASK, "asks about"), (DENY, "denies")])
def test_a_decision_names_the_rule_and_its_file(behavior: Behavior, verb: str) -> None:
    assert _judged([Rule("Acts", behavior, "Acts(*)", Origin(".ferrule/settings.json"))]) == Verdict(
        behavior=behavior,
        source="rule",
        reason=f"rule `Acts(*)` in .ferrule/settings.json {verb} it",
        rule="Acts(*)",
        origin=".ferrule/settings.json",
        approved=behavior is ALLOW,
    )


@requirement("PERM-1")
def test_a_rule_for_another_tool_says_nothing() -> None:
    assert _judged([Rule("Other", ALLOW, "Other", Origin("x")), Rule("acts", ALLOW, "acts", Origin("x"))]) is None


@requirement("PERM-1", "CON-15")
def test_a_rule_may_name_a_tool_by_its_old_name() -> None:
    old, new = Rule("old_acts", ASK, "old_acts", Origin("x")), Rule("Acts", ALLOW, "Acts", Origin("x"))

    verdicts = [_judged(rules, Mode.BYPASS) for rules in ([old], [new, old], [old, new])]

    assert [verdict.behavior if verdict else None for verdict in verdicts] == [ASK, ASK, ASK]


# Modes


@requirement("PERM-13", "PERM-2")
@pytest.mark.parametrize(
    "touch",
    [
        ReadsPath("/project"),
        ReadsPath("/project/a/b"),
        ReadsPath("/project/a", real="/project/b"),
        RunsCommand(("ls",), accounted=True),
    ],
)
def test_the_default_mode_allows_what_only_reads_inside(touch: Touch) -> None:
    assert _judged([], effects=Effects.of(touch)) == Verdict(
        behavior=ALLOW, source="mode", reason="it only reads inside the workspace"
    )


@requirement("PERM-13", "PERM-9")
@pytest.mark.parametrize("touches", [(ReadsState("cwd"),), (ChangesState("found_tools"),), ()])
def test_of_a_call_that_reads_nothing_it_is_not_said_that_it_reads(touches: tuple[Touch, ...]) -> None:
    assert _judged([], effects=Effects.of(*touches)) == Verdict(
        behavior=ALLOW, source="mode", reason="it touches nothing outside of the session"
    )


@requirement("PERM-13", "PERM-2")
@pytest.mark.parametrize(
    "touch",
    [
        ReadsPath("/"),
        ReadsPath("/projectshop/a"),
        ReadsPath("/project/a", real="/etc/passwd"),
        ReadsPath("/etc/passwd", real="/project/a"),
        WritesPath("/project/a"),
        RunsCommand(("ls",)),
        ReachesHost("example.org", sends=False),
        Opaque(),
    ],
)
def test_the_default_mode_leaves_everything_else_to_be_asked(touch: Touch) -> None:
    assert _judged([], effects=Effects.of(touch)) is None
    assert _judged([], effects=Effects.of(ReadsPath("/project/a"), touch)) is None


@requirement("PERM-13")
def test_where_the_root_is_the_workspace_everything_is_inside() -> None:
    judge = RuleJudge([], Mode.DEFAULT, _places("/"))

    verdict = judge.judge(_proposal(Acts(), Effects.reading("/etc/hosts")))

    assert verdict is not None
    assert verdict.behavior is ALLOW


@requirement("PERM-13", "PERM-2")
@pytest.mark.parametrize(("behavior", "status"), [(ALLOW, Status.OK), (ASK, Status.DENIED), (DENY, Status.DENIED)])
async def test_bypassing_permissions_still_obeys_rules(tmp_path: Path, behavior: Behavior, status: Status) -> None:
    settings = Settings(
        cwd=str(tmp_path),
        mode=Mode.BYPASS,
        rules=(Rule("Acts", behavior, "Acts", Origin("--rule")),),
        state_folder=tmp_path / "state",
    )

    (outcome,) = await open_session(settings, tools=[Acts(Opaque())]).run([ToolCall("1", "Acts", {})])

    assert outcome.status is status


@requirement("PERM-13")
def test_bypassing_allows_what_no_rule_speaks_of() -> None:
    assert _judged([], Mode.BYPASS, Effects()) == Verdict(
        behavior=ALLOW, source="mode", reason="permissions are bypassed", approved=True
    )


@requirement("PERM-13", "PERM-5", "SCHED-5")
async def test_a_link_that_leads_out_of_the_workspace_is_not_inside(tmp_path: Path) -> None:
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    (tmp_path / "secret").write_text("x")
    (workspace / "own").write_text("y")
    (workspace / "out").symlink_to(tmp_path / "secret")
    (workspace / "up").symlink_to("..")
    (workspace / "in").symlink_to("own")
    session = open_session(Settings(cwd=str(workspace), state_folder=tmp_path / "state"))
    paths = ("own", "in", "out", "up/secret", "../secret", "up/workspace/own")

    outcomes = await session.run([ToolCall(path, "Read", {"file_path": path}) for path in paths])

    assert {outcome.call.id: outcome.status for outcome in outcomes} == {
        "own": Status.OK,
        "in": Status.OK,
        "out": Status.DENIED,
        "up/secret": Status.DENIED,
        "../secret": Status.DENIED,
        "up/workspace/own": Status.OK,
    }


@requirement("PERM-13")
async def test_a_workspace_reached_through_a_link_is_the_workspace(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "a.txt").write_text("x")
    (tmp_path / "link").symlink_to("real")
    session = open_session(Settings(cwd=str(tmp_path / "link"), state_folder=tmp_path / "state"))

    outcomes = await session.run(
        [ToolCall(str(n), "Read", {"file_path": p}) for n, p in enumerate(["a.txt", f"{tmp_path}/real/a.txt"])]
    )

    assert [outcome.status for outcome in outcomes] == [Status.OK, Status.OK]


@requirement("PERM-13")
async def test_added_directories_are_inside_too(tmp_path: Path) -> None:
    for name in ("workspace", "added", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.txt").write_text("x")
    settings = Settings(
        cwd=str(tmp_path / "workspace"),
        added_directories=(str(tmp_path / "added"),),
        state_folder=tmp_path / "state",
    )

    outcomes = await open_session(settings).run(
        [ToolCall(name, "Read", {"file_path": f"../{name}/a.txt"}) for name in ("added", "other")]
    )

    assert [outcome.status for outcome in outcomes] == [Status.OK, Status.DENIED]


@requirement("PERM-1")
async def test_a_denied_tool_is_off_under_every_name(tmp_path: Path) -> None:
    settings = Settings(
        cwd=str(tmp_path), rules=(Rule("Read", DENY, "Read", Origin("--deny")),), state_folder=tmp_path / "state"
    )

    outcomes = await open_session(settings).run(
        [ToolCall(name, name, {"file_path": "a"}) for name in ("Read", "read_file")]
    )

    assert [(outcome.status, outcome.content) for outcome in outcomes] == [
        (Status.DENIED, (Text("Read was not allowed: rule `Read` in --deny denies it."),)),
        (Status.DENIED, (Text("Read was not allowed: rule `Read` in --deny denies it."),)),
    ]


# Who answers


@requirement("PERM-2")
async def test_where_nobody_can_be_asked_the_refusal_says_what_the_call_would_do() -> None:
    proposal = _proposal(Acts(), Effects.of(WritesPath("/a"), ReachesHost("h")))

    by_default = await NobodyToAsk().approve(proposal, NO_OPINION)
    by_rule = await NobodyToAsk().approve(proposal, ask("rule `Acts` in x asks about it", rule="Acts", origin="x"))
    touching_nothing = await NobodyToAsk().approve(_proposal(Acts(), Effects.of()), NO_OPINION)

    assert by_default == Verdict(
        behavior=DENY,
        source="default",
        reason=snapshot(
            "it needs a person's approval (deletes /a, outside of the workspace; sends to h) "
            "and nobody is there to give it"
        ),
    )
    assert by_rule == Verdict(
        behavior=DENY,
        source="rule",
        rule="Acts",
        origin="x",
        reason=snapshot(
            "rule `Acts` in x asks about it; it needs a person's approval "
            "(deletes /a, outside of the workspace; sends to h) "
            "and nobody is there to give it"
        ),
    )
    assert "(touches nothing)" in touching_nothing.reason


@requirement("PERM-2")
@pytest.mark.parametrize(("answer", "status"), [(allow(), Status.OK), (deny(), Status.DENIED), (ask(), Status.DENIED)])
async def test_a_person_answers_what_is_left_open(tmp_path: Path, answer: Verdict, status: Status) -> None:
    approver = Answering(answer)
    session = open_session(
        Settings(cwd=str(tmp_path), state_folder=tmp_path / "state"), tools=[Acts(Opaque())], approver=approver
    )

    (outcome,) = await session.run([ToolCall("1", "Acts", {})])

    assert (outcome.status, [proposal.call.id for proposal in approver.asked]) == (status, ["1"])


@requirement("PERM-1")
async def test_the_record_of_a_call_names_the_rule_that_decided(tmp_path: Path) -> None:
    rule = Rule("Acts", ALLOW, "Acts", Origin(".ferrule/settings.json"))
    settings = Settings(cwd=str(tmp_path), rules=(rule,), state_folder=tmp_path / "state")

    (outcome,) = await open_session(settings, tools=[Acts(Opaque())]).run([ToolCall("1", "Acts", {})])

    assert outcome.record is not None
    assert outcome.record.verdict is not None
    assert (outcome.record.verdict.rule, outcome.record.verdict.origin) == ("Acts", ".ferrule/settings.json")
