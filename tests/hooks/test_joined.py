"""The events that other parts cause: agents, compactions, questions to a person; in real sessions."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ferrule import Settings, ToolCall, hook, open_session
from ferrule.app.kept_sessions import begin_session, resume_session
from ferrule.app.slash_commands import NotExpanded, SlashCommands
from ferrule.core.calls import Status
from ferrule.core.content import plain_text
from ferrule.core.events import HookRan, ToolFinished
from ferrule.core.model import ModelFacts, UserTurn
from ferrule.engine.session import Session
from ferrule.hooks.hook import HookBook
from ferrule.permissions.approvals import ApprovalAnswer, ApprovalQuestion
from ferrule.permissions.modes import Mode
from ferrule.providers.scripted import ScriptedModel, says
from ferrule.skills.skill_catalog import Skills
from ferrule.testing import RecordingModel
from tests.agents.cast import Cast, hire, opened, played
from tests.agents.test_agent_files import pages, put
from tests.cli.running import ferrule
from tests.engine.conversing import sums
from tests.hooks.scripts import program
from tests.requirement import requirement


class Small(ScriptedModel):
    facts = ModelFacts(window=2_000, most_output=200)


def settings(folder: Path) -> Settings:
    return Settings(cwd=str(folder), state_folder=folder / ".state", mode=Mode.BYPASS)


async def answered(session: Session, prompt: str, model: ScriptedModel) -> None:
    async with session.ask(prompt, model) as events:
        _ = [one async for one in events]


@requirement("HOOK-2", "TASK-1")
async def test_hooks_are_told_of_an_agents_start_and_may_send_it_back_to_work(tmp_path: Path) -> None:
    seen: list[Mapping[str, Any]] = []

    def at_start(event: Mapping[str, Any]) -> Mapping[str, Any]:
        seen.append(event)
        return {"hookSpecificOutput": {"hookEventName": "SubagentStart", "additionalContext": "Mind the gap."}}

    def at_end(event: Mapping[str, Any]) -> Mapping[str, Any] | None:
        seen.append(event)
        return None if event["stop_hook_active"] else {"decision": "block", "reason": "look again"}

    hooks = [
        hook("SubagentStart", at_start, match="Explore"),
        hook("SubagentStop", at_end, match="Explore"),
        hook("PreToolUse", seen.append, match="Glob"),
        hook("Stop", seen.append),
    ]
    model = Cast(
        main=[says("", hire("1", "find it", subagent_type="Explore")), says("Thanks.")],
        find=[says("", ToolCall("g", "Glob", {"pattern": "*"})), says("Nothing."), says("Found it.")],
    )
    session = begin_session(settings(tmp_path), hooks=hooks)

    (said,) = await played(session, model)

    assert "Found it." in said
    assert [event["hook_event_name"] for event in seen] == [
        "SubagentStart",
        "PreToolUse",
        "SubagentStop",
        "SubagentStop",
        "Stop",
    ]
    assert [(event["agent_id"], event["agent_type"]) for event in seen[:4]] == [("Explore_1", "Explore")] * 4
    assert {event["transcript_path"] for event in seen} == {session.transcript_path}
    assert seen[2]["agent_transcript_path"] == session.transcript_path
    assert seen[2]["last_assistant_message"] == "Nothing."
    first = model.requests[1][1].history[0]
    assert isinstance(first, UserTurn)
    assert "Mind the gap." in plain_text(first.content)


@requirement("HOOK-2")
async def test_hooks_are_asked_before_a_compaction_and_told_after_it(tmp_path: Path) -> None:
    seen: list[Mapping[str, Any]] = []
    answers: list[Mapping[str, Any] | None] = [{"decision": "block", "reason": "not now"}, None]

    def before(event: Mapping[str, Any]) -> Mapping[str, Any] | None:
        seen.append(event)
        return answers.pop(0)

    def started(event: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"hookSpecificOutput": {"hookEventName": "SessionStart", "additionalContext": "Read NOTES again."}}

    hooks = [
        hook("PreCompact", before),
        hook("PostCompact", seen.append),
        hook("SessionStart", started, match="compact"),
    ]
    session = open_session(settings(tmp_path), hooks=hooks)
    session.compaction.is_automatic = False
    model = Small([says("An answer."), says("Another."), sums("A short summary."), says("And on.")])
    for prompt in ("long " * 600, "short"):
        await answered(session, prompt, model)

    assert not await session.compact(model, "Keep names.")
    assert await session.compact(model, "Keep names.")
    await answered(session, "go on", model)

    assert [event["hook_event_name"] for event in seen] == ["PreCompact", "PreCompact", "PostCompact"]
    assert (seen[0]["trigger"], seen[0]["custom_instructions"]) == ("manual", "Keep names.")
    assert "A short summary." in seen[2]["compact_summary"]
    assert any(
        "Read NOTES again." in plain_text(turn.content) for turn in session.history if isinstance(turn, UserTurn)
    )


@requirement("HOOK-2")
async def test_what_a_program_prints_before_a_compaction_is_added_to_its_instructions(tmp_path: Path) -> None:
    printing = program("echo Keep the ports.", event="PreCompact")
    session = open_session(replace(settings(tmp_path), hooks=HookBook([printing])))
    session.compaction.is_automatic = False
    model = RecordingModel(says("word " * 900), sums("A short summary."))
    await answered(session, "go", model)

    assert await session.compact(model, "Keep names.", entirely=True)

    asked = plain_text(model.requests[-1][1][-1].content)  # type: ignore[union-attr]
    assert "Keep names." in asked
    assert "Keep the ports." in asked


@requirement("HOOK-2", "TASK-1")
async def test_hooks_are_asked_before_an_agents_own_compaction_and_told_after_it(tmp_path: Path) -> None:
    seen: list[Mapping[str, Any]] = []
    (tmp_path / "long").write_text("many words\n" * 3_000)

    class SmallCast(Cast):
        facts = ModelFacts(window=14_000, most_output=200)

    look = [
        says("", ToolCall(str(at), "Read", {"file_path": "long", "offset": at * 1_000 + 1, "limit": 1_000}))
        for at in range(3)
    ]
    model = SmallCast(
        main=[says("", hire("1", "task", subagent_type="Explore")), says("Thanks.")],
        task=[*look, sums("A short summary.")],
        **{"<summary_of_earlier_turns>": [says("Done.")]},
    )
    hooks = [hook("PreCompact", seen.append), hook("PostCompact", seen.append), hook("SessionStart", seen.append)]

    (said,) = await played(open_session(settings(tmp_path), hooks=hooks), model)

    assert "Done." in said
    assert [event["hook_event_name"] for event in seen] == ["SessionStart", "PreCompact", "PostCompact"]
    assert "A short summary." in seen[2]["compact_summary"]
    assert {event["agent_type"] for event in seen[1:]} == {"Explore"}
    assert {event["agent_id"] for event in seen[1:]} == {"Explore_1"}


class Agreeable:
    async def answer(self, question: ApprovalQuestion, /) -> ApprovalAnswer:
        return ApprovalAnswer(allowed=True)


@requirement("HOOK-2")
async def test_hooks_are_told_that_a_person_is_waited_for_and_only_then(tmp_path: Path) -> None:
    seen: list[Mapping[str, Any]] = []
    asking = Settings(cwd=str(tmp_path), state_folder=tmp_path / ".state")
    write = ToolCall("1", "Write", {"file_path": "new", "content": "x"})
    watching = hook("Notification", seen.append, match="permission_prompt")

    async with open_session(asking, hooks=[watching]) as alone:
        (refused,) = await alone.run([write])
    async with open_session(asking, hooks=[watching], person=Agreeable()) as session:
        (done,) = await session.run([write])

    assert (refused.status, done.status) == (Status.DENIED, Status.OK)
    (told,) = seen
    assert told["message"] == "Ferrule needs your permission to use Write"
    assert told["notification_type"] == "permission_prompt"


@requirement("HOOK-2")
async def test_a_session_that_is_resumed_says_so(tmp_path: Path) -> None:
    seen: list[Mapping[str, Any]] = []
    async with begin_session(settings(tmp_path)) as first:
        await answered(first, "hi", ScriptedModel([says("Hello.")]))
    async with resume_session(first.id, settings(tmp_path), hooks=[hook("SessionStart", seen.append)]) as again:
        await answered(again, "more", ScriptedModel([says("Yes.")]))

    assert [(event["source"], event["transcript_path"]) for event in seen] == [("resume", first.transcript_path)]


@requirement("HOOK-1", "TASK-1")
async def test_the_hooks_of_an_agents_file_hold_for_that_agent_alone(tmp_path: Path) -> None:
    head = (
        "hooks:\n"
        "  PreToolUse:\n    - matcher: Write\n      hooks:\n"
        "        - {type: command, command: 'echo not here >&2; exit 2', timeout: 20}\n"
        "  Stop:\n    - hooks: [{type: command, command: 'touch stopped'}]\n"
    )
    put(tmp_path / "project/.claude/agents/h.md", f"---\nname: h\ndescription: d\n{head}---\nWork.\n")
    write = ToolCall("w", "Write", {"file_path": "new", "content": "x"})
    model = Cast(
        main=[says("", hire("1", "task", subagent_type="h")), says("", write), says("")],
        task=[says("", write), says("Done.")],
    )
    session = opened(tmp_path / "project", settings={"pages": pages(tmp_path, trusted=True)})

    async with session.ask("main", model) as events:
        seen = [one async for one in events]

    ended = [(one.agent, one.event.outcome.status) for one in seen if isinstance(one.event, ToolFinished)]
    assert ended == [("main/h_1", Status.DENIED), ("main", Status.OK), ("main", Status.OK)]
    assert [one.event.event for one in seen if isinstance(one.event, HookRan)] == ["PreToolUse", "SubagentStop"]
    assert (tmp_path / "project/stopped").exists()


async def test_an_agent_whose_hooks_cannot_be_run_is_not_started(tmp_path: Path) -> None:
    head = "hooks: {PreToolUse: [{hooks: [{type: command}]}]}"
    put(tmp_path / "project/.claude/agents/h.md", f"---\nname: h\ndescription: d\n{head}\n---\nWork.\n")
    model = Cast(main=[says("", hire("1", "task", subagent_type="h")), says("")], task=[says("Done.")])
    session = opened(tmp_path / "project", settings={"pages": pages(tmp_path, trusted=True)})

    (said,) = await played(session, model)

    assert "contains hooks that cannot be run, so h is not started" in said


@requirement("SET-1")
def test_variables_of_the_settings_reach_hooks_and_commands(tmp_path: Path) -> None:
    guard = {"matcher": "Bash", "hooks": [{"type": "command", "command": 'echo "$GREETING" > heard'}]}
    put(
        tmp_path / "home/.claude/settings.json",
        json.dumps({"env": {"GREETING": "good day"}, "hooks": {"PreToolUse": [guard]}}),
    )

    done = ferrule(tmp_path, "call", "Bash", '{"command": "echo $GREETING"}', "--allow", "Bash(echo:*)")

    assert done.stdout.decode().strip() == "good day", done.stderr
    assert (tmp_path / "heard").read_text() == "good day\n"


@requirement("HOOK-2", "TASK-2")
async def test_hooks_are_asked_before_a_command_becomes_a_prompt(tmp_path: Path) -> None:
    put(tmp_path / "home/.claude/skills/greet/SKILL.md", "---\ndescription: Greets.\n---\nGreet $ARGUMENTS.")
    seen: list[Mapping[str, Any]] = []

    def guard(event: Mapping[str, Any]) -> Mapping[str, Any] | None:
        seen.append(event)
        if event["command_args"] == "them":
            return {"decision": "block", "reason": "not them"}
        return {"hookSpecificOutput": {"hookEventName": "UserPromptExpansion", "additionalContext": "Be brief."}}

    skills = Skills(pages(tmp_path))
    session = opened(tmp_path / "project", hooks=[hook("UserPromptExpansion", guard, match="greet")], skills=skills)
    commands = SlashCommands(session, skills)

    assert await commands.expand("/greet all") == "Greet all."
    with pytest.raises(NotExpanded, match="not them"):
        await commands.expand("/greet them")
    assert await commands.expand("/etc/hosts") == "/etc/hosts"
    await answered(session, "Greet all.", ScriptedModel([says("Hello.")]))

    (told, _) = seen
    assert {
        key: told[key] for key in ("expansion_type", "command_name", "command_args", "command_source", "prompt")
    } == {
        "expansion_type": "slash_command",
        "command_name": "greet",
        "command_args": "all",
        "command_source": "user",
        "prompt": "/greet all",
    }
    assert any("Be brief." in plain_text(turn.content) for turn in session.history if isinstance(turn, UserTurn))
