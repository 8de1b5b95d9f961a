"""`can_use_tool`: when it is asked, what it is told, and what its answers change."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import pytest

from ferrule.compat.claude_agent_sdk import (
    CanUseToolShadowedWarning,
    ClaudeAgentOptions,
    ClaudeSDKClient,
    PermissionResultAllow,
    PermissionResultDeny,
    PermissionRuleValue,
    PermissionUpdate,
    ToolPermissionContext,
    query,
)
from ferrule.core.calls import ToolCall
from ferrule.providers.scripted import ScriptedModel, says

from ..requirement import requirement
from ..sdk.scenes import read, results


def _write(name: str, id: str = "1") -> ToolCall:
    return ToolCall(id, "Write", {"file_path": name, "content": "x"})


def _options(*messages: Any, **more: Any) -> ClaudeAgentOptions:
    return ClaudeAgentOptions(model_provider=ScriptedModel(messages), setting_sources=[], **more)


@requirement("SDK-1", "PERM-2")
async def test_it_is_told_what_is_asked_and_why_and_what_would_allow_it(folder: Path) -> None:
    asked: list[tuple[str, dict[str, Any], ToolPermissionContext]] = []

    async def callback(name: str, input: dict[str, Any], context: ToolPermissionContext) -> PermissionResultAllow:
        asked.append((name, input, context))
        return PermissionResultAllow()

    await read(query(prompt="x", options=_options(says("", _write("a.txt")), says("."), can_use_tool=callback)))

    ((name, input, context),) = asked
    assert (name, input) == ("Write", {"file_path": f"{folder}/a.txt", "content": "x"})
    assert (context.tool_use_id, context.agent_id, context.signal) == ("1", None, None)
    assert context.decision_reason
    assert context.suggestions[0].to_dict()["behavior"] == "allow"
    assert (folder / "a.txt").exists()


async def test_it_may_change_the_input(folder: Path) -> None:
    async def callback(name: str, input: dict[str, Any], context: ToolPermissionContext) -> PermissionResultAllow:
        return PermissionResultAllow(updated_input={**input, "file_path": "safe/b.txt"})

    await read(query(prompt="x", options=_options(says("", _write("a.txt")), says("."), can_use_tool=callback)))

    assert [path.name for path in folder.rglob("*.txt")] == ["b.txt"]


async def test_a_no_is_told_to_the_model_in_its_words(folder: Path) -> None:
    async def callback(name: str, input: dict[str, Any], context: ToolPermissionContext) -> PermissionResultDeny:
        return PermissionResultDeny(message="ask again tomorrow")

    messages = await read(
        query(prompt="x", options=_options(says("", _write("a.txt")), says("."), can_use_tool=callback))
    )

    assert "ask again tomorrow" in str(results(messages)[0].content)
    assert messages[-1].subtype == "success"
    assert not (folder / "a.txt").exists()


async def test_a_no_that_interrupts_ends_the_turn(folder: Path) -> None:
    async def callback(name: str, input: dict[str, Any], context: ToolPermissionContext) -> PermissionResultDeny:
        return PermissionResultDeny(message="stop", interrupt=True)

    messages = await read(
        query(prompt="x", options=_options(says("", _write("a.txt")), says("never"), can_use_tool=callback))
    )

    assert messages[-1].subtype == "error_during_execution"
    assert not (folder / "a.txt").exists()


@pytest.mark.parametrize("answer", [None, True, {"behavior": "allow"}])
async def test_an_answer_that_is_none_is_a_no(folder: Path, answer: Any) -> None:
    async def callback(name: str, input: dict[str, Any], context: ToolPermissionContext) -> Any:
        return answer

    await read(query(prompt="x", options=_options(says("", _write("a.txt")), says("."), can_use_tool=callback)))

    assert not (folder / "a.txt").exists()


async def test_a_callback_that_raises_has_said_no(folder: Path) -> None:
    async def callback(name: str, input: dict[str, Any], context: ToolPermissionContext) -> PermissionResultAllow:
        raise ValueError("broken")

    messages = await read(
        query(prompt="x", options=_options(says("", _write("a.txt")), says("."), can_use_tool=callback))
    )

    assert results(messages)[0].is_error
    assert not (folder / "a.txt").exists()


async def test_a_suggestion_that_is_given_back_is_not_asked_about_again(folder: Path) -> None:
    asked: list[str] = []

    async def callback(name: str, input: dict[str, Any], context: ToolPermissionContext) -> PermissionResultAllow:
        asked.append(input["command"])
        return PermissionResultAllow(updated_permissions=context.suggestions)

    command = {"command": "touch made"}
    calls = [says("", ToolCall(str(number), "Bash", command)) for number in range(2)]
    await read(query(prompt="x", options=_options(*calls, says("."), can_use_tool=callback)))

    assert asked == ["touch made"]


async def test_updates_change_rules_and_mode_for_the_session(folder: Path) -> None:
    asked: list[str] = []

    async def callback(name: str, input: dict[str, Any], context: ToolPermissionContext) -> PermissionResultAllow:
        asked.append(input["file_path"])
        deny = PermissionUpdate(
            "addRules", rules=[PermissionRuleValue("Write", "secret/**")], behavior="deny", destination="session"
        )
        return PermissionResultAllow(updated_permissions=[deny, PermissionUpdate("setMode", mode="acceptEdits")])

    calls = [_write("a.txt", "1"), _write("secret/b.txt", "2"), _write("c.txt", "3")]
    options = _options(*(says("", call) for call in calls), says("."), can_use_tool=callback)
    await read(query(prompt="x", options=options))

    assert asked == [f"{folder}/a.txt"]
    assert sorted(path.name for path in folder.rglob("*.txt")) == ["a.txt", "c.txt"]


async def test_a_rule_for_good_is_saved_in_the_file_of_its_level(folder: Path) -> None:
    async def callback(name: str, input: dict[str, Any], context: ToolPermissionContext) -> PermissionResultAllow:
        (suggestion,) = context.suggestions
        suggestion.destination = "localSettings"
        return PermissionResultAllow(updated_permissions=[suggestion])

    options = _options(says("", ToolCall("1", "Bash", {"command": "touch made"})), says("."), can_use_tool=callback)
    await read(query(prompt="x", options=options))

    saved = json.loads((folder / ".ferrule" / "settings.local.json").read_text())
    assert saved["permissions"]["allow"] == ["Bash(touch made)"]


async def test_an_update_that_cannot_be_made_allows_nothing(folder: Path) -> None:
    async def callback(name: str, input: dict[str, Any], context: ToolPermissionContext) -> PermissionResultAllow:
        return PermissionResultAllow(updated_permissions=[PermissionUpdate("addDirectories", directories=["/"])])

    await read(query(prompt="x", options=_options(says("", _write("a.txt")), says("."), can_use_tool=callback)))

    assert not (folder / "a.txt").exists()


async def test_questions_of_the_model_are_answered_by_filling_them_in() -> None:
    async def callback(name: str, input: dict[str, Any], context: ToolPermissionContext) -> PermissionResultAllow:
        assert name == "AskUserQuestion"
        return PermissionResultAllow(updated_input={**input, "answers": {"Which?": "b"}})

    question = {"question": "Which?", "header": "Which", "options": [{"label": "a"}, {"label": "b"}]}
    call = ToolCall("1", "AskUserQuestion", {"questions": [question]})
    messages = await read(query(prompt="x", options=_options(says("", call), says("."), can_use_tool=callback)))

    assert "Answer: b" in str(results(messages)[0].content)


@pytest.mark.parametrize(
    ("more", "named"),
    [
        ({"allowed_tools": ["Read", "Read(*)", "Bash(ls *)"]}, "about Read:"),
        ({"permission_mode": "bypassPermissions"}, "bypassPermissions"),
        ({"skills": "all"}, "about Skill:"),
    ],
)
async def test_a_callback_that_is_not_asked_about_everything_is_warned_of(more: dict[str, Any], named: str) -> None:
    async def callback(name: str, input: dict[str, Any], context: ToolPermissionContext) -> PermissionResultAllow:
        return PermissionResultAllow()

    with pytest.warns(CanUseToolShadowedWarning, match=named):
        query(prompt="x", options=_options(can_use_tool=callback, **more))


async def test_narrow_rules_are_not_warned_of() -> None:
    async def callback(name: str, input: dict[str, Any], context: ToolPermissionContext) -> PermissionResultAllow:
        return PermissionResultAllow()

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        async with ClaudeSDKClient(_options(can_use_tool=callback, allowed_tools=["Bash(ls *)"])):
            pass


def test_an_update_is_the_same_after_json() -> None:
    update = PermissionUpdate("addRules", [PermissionRuleValue("Bash", "ls")], "allow", destination="session")

    assert PermissionUpdate.from_dict(json.loads(json.dumps(update.to_dict()))) == update
