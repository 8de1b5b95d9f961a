"""Hooks at the turning points of a session."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from ferrule import Settings, ToolCall, hook, open_session
from ferrule.core.events import TurnEnded
from ferrule.core.model import AssistantTurn, UserTurn
from ferrule.engine.session import Session
from ferrule.hooks.hook import Hook
from ferrule.hooks.lifecycle import MOST_BLOCKS, Lifecycle
from ferrule.hooks.payloads import SessionFacts
from ferrule.permissions.modes import Mode
from ferrule.providers.scripted import ScriptedModel, says
from ferrule.testing import well_formed
from tests.requirement import requirement

from .scripts import deciding, program, runner


def opened(folder: Path, *hooks: Hook) -> Session:
    return open_session(Settings(cwd=str(folder), state_folder=folder / ".state", mode=Mode.BYPASS), hooks=hooks)


async def ask(session: Session, *messages: Any, prompt: str = "hello") -> TurnEnded:
    async with session.ask(prompt, ScriptedModel(messages)) as events:
        (ended,) = [one.event async for one in events if isinstance(one.event, TurnEnded)]
    assert well_formed(session.history)
    return ended


def texts(turn: object) -> list[str]:
    assert isinstance(turn, UserTurn)
    return [getattr(block, "text", "") for block in turn.content]


def answering(**answer: Any) -> Callable[[Mapping[str, Any]], Mapping[str, Any]]:
    return lambda event: answer


@requirement("HOOK-2")
async def test_each_turning_point_is_told_once_and_in_order(tmp_path: Path) -> None:
    seen: list[Mapping[str, Any]] = []
    events = ("SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop", "SessionEnd")
    async with opened(tmp_path, *(hook(event, seen.append) for event in events)) as session:
        call = ToolCall("1", "Glob", {"pattern": "*"})
        await ask(session, says("looking", call), says("done"))
        await ask(session, says("again"), prompt="more")

    names = [event["hook_event_name"] for event in seen]
    assert names == [*events[:-1], "UserPromptSubmit", "Stop", "SessionEnd"]
    assert (seen[0]["source"], seen[0]["model"]) == ("startup", "scripted")
    assert seen[1]["prompt"] == "hello"
    assert (seen[4]["last_assistant_message"], seen[4]["stop_hook_active"]) == ("done", False)
    assert seen[-1]["reason"] == "other"


@requirement("HOOK-2")
async def test_context_stands_behind_the_prompt(tmp_path: Path) -> None:
    session = opened(
        tmp_path,
        hook("SessionStart", answering(hookSpecificOutput={"additionalContext": "it is Monday"}), name="a"),
        hook("UserPromptSubmit", answering(hookSpecificOutput={"additionalContext": "be short"}), name="b"),
    )

    await ask(session, says("hi"))

    assert texts(session.history[0]) == [
        "hello",
        "<hook>\nSessionStart hook `a`: it is Monday\n</hook>",
        "<hook>\nUserPromptSubmit hook `b`: be short\n</hook>",
    ]


@requirement("HOOK-2")
async def test_a_prompt_that_is_blocked_never_reaches_the_history(tmp_path: Path) -> None:
    def guard(event: Mapping[str, Any]) -> dict[str, Any] | None:
        return {"decision": "block", "reason": "a key stands in it"} if "key" in event["prompt"] else None

    start = hook("SessionStart", answering(hookSpecificOutput={"additionalContext": "welcome"}), name="a")
    session = opened(tmp_path, start, hook("UserPromptSubmit", guard, name="b"))

    ended = await ask(session, prompt="my key")
    history = list(session.history)
    await ask(session, says("hi"))

    assert ended == TurnEnded("blocked", "UserPromptSubmit hook `b`: a key stands in it")
    assert history == []
    assert texts(session.history[0])[1] == "<hook>\nSessionStart hook `a`: welcome\n</hook>"


@requirement("HOOK-2")
async def test_a_stop_hook_sends_the_model_back_to_work(tmp_path: Path) -> None:
    active: list[bool] = []

    def tests_first(event: Mapping[str, Any]) -> dict[str, Any] | None:
        active.append(event["stop_hook_active"])
        return None if event["stop_hook_active"] else {"decision": "block", "reason": "run the tests"}

    session = opened(tmp_path, hook("Stop", tests_first, name="t"))

    assert await ask(session, says("done"), says("tested")) == TurnEnded("end")
    assert active == [False, True]
    assert texts(session.history[2]) == ["<hook>\nStop hook `t`: run the tests\n</hook>"]
    assert isinstance(session.history[-1], AssistantTurn)


async def test_a_stop_hook_that_never_lets_go_is_overruled(tmp_path: Path) -> None:
    session = opened(tmp_path, hook("Stop", answering(decision="block", reason="never")))

    assert await ask(session, *[says("done")] * (MOST_BLOCKS + 1)) == TurnEnded("end")


@requirement("HOOK-1")
@pytest.mark.parametrize("event", ["PreToolUse", "PostToolUse", "UserPromptSubmit", "Stop"])
async def test_continue_false_ends_the_turn(event: str, tmp_path: Path) -> None:
    session = opened(tmp_path, hook(event, answering(**{"continue": False, "stopReason": "enough"})))
    write = ToolCall("1", "Write", {"file_path": "new", "content": "x"})

    ended = await ask(session, says("writing", write), says("done"))

    assert ended == TurnEnded("stopped", "enough")
    assert (tmp_path / "new").exists() is (event in ("PostToolUse", "Stop"))


async def test_a_call_that_is_put_off_is_not_run_and_ends_the_turn(tmp_path: Path) -> None:
    session = opened(tmp_path, hook("PreToolUse", answering(**deciding("defer"))))

    ended = await ask(session, says("", ToolCall("1", "Write", {"file_path": "new", "content": "x"})))

    assert ended.reason == "stopped"
    assert not (tmp_path / "new").exists()


@requirement("HOOK-2")
async def test_the_other_events_have_their_fields_and_their_matchers(tmp_path: Path) -> None:
    def noting(event: str, **more: Any) -> Hook:
        return program("cat >> got; echo >&2 no; exit 2", event, **more)

    events = ["SubagentStart", "SubagentStop", "PreCompact", "PostCompact"]
    at = Lifecycle(runner(tmp_path, *map(noting, events)), SessionFacts(session_id="s", project=str(tmp_path)))
    cwd = str(tmp_path)

    said = [
        await at.agent_started(cwd, agent="a1", kind="Explore"),
        await at.agent_stopping(cwd, "found", agent="a1", kind="Explore"),
        await at.compacting(cwd, trigger="auto"),
        await at.compacted(cwd, trigger="auto", summary="short"),
    ]

    assert [bool(one.blocks) for one in said] == [False, True, True, False]
    assert [line.count('"session_id": "s"') for line in (tmp_path / "got").read_text().splitlines()] == [1] * 4


async def test_a_matcher_chooses_by_the_subject_of_the_event(tmp_path: Path) -> None:
    ran: list[str] = []
    hooks = [
        hook("PreCompact", lambda event: ran.append("by itself"), match="auto"),
        hook("PreCompact", lambda event: ran.append("wanted"), match="manual"),
        hook("SessionStart", lambda event: ran.append("resume"), match="resume"),
    ]
    at = Lifecycle(runner(tmp_path, *hooks), SessionFacts(session_id="s", project=str(tmp_path)))

    await at.compacting(str(tmp_path), trigger="auto")
    await at.session_started(str(tmp_path))

    assert ran == ["by itself"]
