from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from ferrule import Settings, ToolCall, open_session
from ferrule.app.session_settings import concurrency_from
from ferrule.app.settings_interpretation import load_session_settings
from ferrule.core.calls import Status
from ferrule.core.context import ToolContext
from ferrule.testing import Answering, FixedJudge, allow, deny
from tests.engine.stage import Act, Given
from tests.requirement import requirement


@requirement("SCHED-2")
@pytest.mark.parametrize(
    ("environment", "cap"),
    [
        ({}, 10),
        ({"FERRULE_MAX_TOOL_CONCURRENCY": "3"}, 3),
        ({"CLAUDE_CODE_MAX_TOOL_USE_CONCURRENCY": "4"}, 4),
        ({"COCODE_MAX_TOOL_USE_CONCURRENCY": " 5 "}, 5),
        ({"FERRULE_MAX_TOOL_CONCURRENCY": "2", "CLAUDE_CODE_MAX_TOOL_USE_CONCURRENCY": "9"}, 2),
        ({"FERRULE_MAX_TOOL_CONCURRENCY": "0"}, 10),
        ({"FERRULE_MAX_TOOL_CONCURRENCY": "-1"}, 10),
        ({"FERRULE_MAX_TOOL_CONCURRENCY": "many"}, 10),
        ({"FERRULE_MAX_TOOL_CONCURRENCY": ""}, 10),
        ({"FERRULE_MAX_TOOL_CONCURRENCY": "9" * 30}, 10),
    ],
)
def test_the_cap_is_what_the_environment_says_if_it_makes_sense(environment: dict[str, str], cap: int) -> None:
    assert concurrency_from(environment) == cap


@requirement("SCHED-2")
def test_a_session_takes_the_cap_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FERRULE_MAX_TOOL_CONCURRENCY", "3")

    assert Settings().max_concurrency == 3


@requirement("SCHED-2")
async def test_calls_that_only_read_run_beside_each_other_beyond_the_cap(tmp_path: Path) -> None:
    together = 0
    all_there = asyncio.Event()

    async def meet(input: Given, ctx: ToolContext) -> str:
        nonlocal together
        together += 1
        if together == 40:
            all_there.set()
        async with asyncio.timeout(30):  # a bound on a hang: with fewer lanes they would never all be there
            await all_there.wait()
        return "met"

    settings = Settings(cwd=str(tmp_path), state_folder=tmp_path / "state", max_concurrency=10)
    session = open_session(settings, tools=[Act("Meet", meet)])

    outcomes = await session.run(ToolCall(str(number), "Meet", {}) for number in range(40))

    assert {outcome.status for outcome in outcomes} == {Status.OK}


@requirement("PERM-13")
async def test_without_a_rule_only_reads_inside_the_workspace_run(tmp_path: Path) -> None:
    (tmp_path / "inside").mkdir()
    (tmp_path / "inside" / "a").write_text("a")
    (tmp_path / "outside").write_text("b")
    (tmp_path / "inside" / "link").symlink_to(tmp_path / "outside")
    session = open_session(Settings(cwd=str(tmp_path / "inside"), state_folder=tmp_path / "state"))

    outcomes = await session.run(
        ToolCall(path, "Read", {"file_path": path}) for path in ("a", "../outside", "link", str(tmp_path / "outside"))
    )

    assert [outcome.status for outcome in outcomes] == [Status.OK, Status.DENIED, Status.DENIED, Status.DENIED]


@requirement("PERM-13")
async def test_an_added_directory_counts_as_inside(tmp_path: Path) -> None:
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "a").write_text("a")
    (tmp_path / "inside").mkdir()
    settings = Settings(
        cwd=str(tmp_path / "inside"), added_directories=(str(tmp_path / "more"),), state_folder=tmp_path / "state"
    )

    (outcome,) = await open_session(settings).run([ToolCall("1", "Read", {"file_path": "../more/a"})])

    assert outcome.status is Status.OK


async def test_a_judge_of_ones_own_speaks_beside_the_rules(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("a")
    session = open_session(Settings(cwd=str(tmp_path), state_folder=tmp_path / "s"), judges=[FixedJudge(deny("no"))])

    (outcome,) = await session.run([ToolCall("1", "Read", {"file_path": "a"})])

    assert outcome.status is Status.DENIED


@requirement("PERM-2")
async def test_an_approver_answers_what_would_ask(tmp_path: Path) -> None:
    (tmp_path / "inside").mkdir()
    (tmp_path / "outside").write_text("b")
    approver = Answering(allow())
    session = open_session(Settings(cwd=str(tmp_path / "inside"), state_folder=tmp_path / "state"), approver=approver)

    (outcome,) = await session.run([ToolCall("1", "Read", {"file_path": "../outside"})])

    assert outcome.status is Status.OK
    assert [proposal.arguments for proposal in approver.asked] == [{"file_path": str(tmp_path / "outside")}]


@requirement("POOL-1")
def test_simple_mode_has_three_tools_and_those_of_the_program(tmp_path: Path) -> None:
    settings = Settings(cwd=str(tmp_path), state_folder=tmp_path / "state", simple=True)

    pool = open_session(settings, tools=[Act("Own")]).registry.pool

    assert [tool.name for tool in pool] == ["Bash", "Edit", "Own", "Read"]
    assert pool.off["Glob"] == "simple mode has only Bash, Edit and Read"


@requirement("SET-5")
def test_settings_reach_what_only_a_program_could_choose(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    keys = {
        "readTokens": 5_000,
        "readReminder": "",
        "readReminderOffFor": ["small"],
        "tellChangedFiles": False,
        "simpleMode": True,
        "features": ["new"],
        "shellSnapshot": False,
    }
    base = Settings(cwd=str(tmp_path), state_folder=tmp_path / "state")

    found, policy = load_session_settings(base, settings=json.dumps(keys))

    assert policy.warnings == ()
    assert (found.read_tokens, found.reminder, found.reminder_off_for) == (5_000, None, ("small",))
    assert (found.tell_changes, found.simple, found.features, found.shell_snapshot) == (False, True, {"new"}, False)


@requirement("PERM-12")
def test_domains_that_settings_allow_replace_the_built_in_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    base = Settings(cwd=str(tmp_path), state_folder=tmp_path / "state")
    named = {"permissions": {"pre_approval": {"allowed_domains": ["docs.rs"]}}}

    usual, _ = load_session_settings(base, settings="{}")
    narrow, _ = load_session_settings(base, settings=json.dumps(named))

    assert usual.pre_approval.approves("stackoverflow.com")
    assert not narrow.pre_approval.approves("stackoverflow.com")
    assert [rule.text for rule in narrow.rules] == ["WebFetch(domain:docs.rs)", "WebFetch(domain:*.docs.rs)"]
