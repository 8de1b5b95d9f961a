"""PostToolBatch and PermissionDenied: what is told of all calls of a message, and of one that a classifier refused."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from ferrule import Settings, ToolCall, hook, open_session
from ferrule.core.calls import Status
from ferrule.core.content import plain_text
from ferrule.core.events import TurnEnded
from ferrule.core.model import ResultTurn
from ferrule.permissions.classifier import Assessment, ToolStatement
from ferrule.permissions.modes import Mode
from ferrule.providers.scripted import says
from tests.agents.cast import Cast, hire, played
from tests.requirement import requirement

from .test_lifecycle import ask, opened

BOTH = (ToolCall("1", "Glob", {"pattern": "*"}), ToolCall("2", "Read", {"file_path": "missing"}))


@requirement("HOOK-1")
async def test_all_calls_of_a_message_are_told_at_once_and_what_is_said_stands_behind_them(tmp_path: Path) -> None:
    (tmp_path / "here").touch()
    seen: list[Mapping[str, Any]] = []

    def batch(event: Mapping[str, Any]) -> Mapping[str, Any]:
        seen.append(event)
        return {"hookSpecificOutput": {"hookEventName": "PostToolBatch", "additionalContext": "Mind the gap."}}

    session = opened(tmp_path, hook("PostToolBatch", batch))

    ended = await ask(session, says("", *BOTH), says("Done."))

    assert ended.reason == "end"
    (event,) = seen
    told = [(call["tool_name"], call["tool_use_id"], call["tool_input"]) for call in event["tool_calls"]]
    assert told == [(call.name, call.id, call.arguments) for call in BOTH]
    found, missed = (call["tool_response"] for call in event["tool_calls"])
    assert ("here" in found, "missing" in missed) == (True, True)
    (results,) = [turn for turn in session.history if isinstance(turn, ResultTurn)]
    assert any("Mind the gap." in text for text in results.messages)


@requirement("HOOK-1")
@pytest.mark.parametrize(
    "answer", [{"decision": "block", "reason": "enough"}, {"continue": False, "stopReason": "enough"}]
)
async def test_a_hook_may_end_the_turn_before_the_model_reads_the_results(tmp_path: Path, answer: Any) -> None:
    session = opened(tmp_path, hook("PostToolBatch", lambda event: answer))

    ended = await ask(session, says("", *BOTH))

    assert (ended.reason, "enough" in ended.error) == (TurnEnded("stopped").reason, True)


@requirement("HOOK-1", "TASK-1")
async def test_the_calls_of_an_agent_are_told_as_its_own(tmp_path: Path) -> None:
    seen: list[Mapping[str, Any]] = []
    session = opened(tmp_path, hook("PostToolBatch", seen.append))
    model = Cast(
        main=[says("", hire("a", "find it", subagent_type="Explore")), says("Thanks.")],
        find=[says("", BOTH[0]), says("Nothing.")],
    )

    await played(session, model)

    assert [event.get("agent_type") for event in seen] == ["Explore", None]


class Fears:
    async def classify(self, account: ToolStatement, /) -> Assessment:
        return Assessment("unsafe", "it lies")


@requirement("HOOK-1", "PERM-11")
@pytest.mark.parametrize("retry", [True, False])
async def test_a_hook_is_told_what_a_classifier_refused_and_may_let_it_be_tried_again(
    tmp_path: Path, retry: bool
) -> None:
    seen: list[Mapping[str, Any]] = []

    def denied(event: Mapping[str, Any]) -> Mapping[str, Any]:
        seen.append(event)
        return {"hookSpecificOutput": {"hookEventName": "PermissionDenied", "retry": retry}}

    settings = Settings(cwd=str(tmp_path), state_folder=tmp_path / ".state", mode=Mode.AUTO)
    write = ToolCall("w", "Write", {"file_path": "new", "content": "x"})
    hooks = [hook("PermissionDenied", denied, match="Write")]
    async with open_session(settings, classifier=Fears(), hooks=hooks) as session:
        (outcome,) = await session.run([write])

    (event,) = seen
    assert (event["tool_name"], event["tool_use_id"]) == ("Write", "w")
    assert "it lies" in event["reason"]
    assert outcome.status is Status.DENIED
    assert ("you may try it again" in plain_text(outcome.content)) is retry
    assert not (tmp_path / "new").exists()
