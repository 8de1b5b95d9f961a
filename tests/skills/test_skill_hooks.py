"""Hooks in the head of a skill: they run as long as its rules hold, or the skill is not used."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ferrule.app.slash_commands import NotExpanded, SlashCommands
from ferrule.core.calls import Status, ToolCall
from ferrule.core.content import plain_text
from ferrule.engine.session import Session
from ferrule.permissions.modes import Mode
from ferrule.providers.scripted import says
from ferrule.skills.skill_catalog import Skills
from tests.agents.cast import Cast, hire, opened, played
from tests.agents.test_agent_files import pages, put
from tests.requirement import requirement

DENIED = "not here"
GUARD = {"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": f"echo {DENIED} >&2; exit 2"}]}]}


def _noting(event: str, file: Path, **more: str) -> dict[str, Any]:
    return {event: [{"hooks": [{"type": "command", "command": f"cat >> {file}; echo >> {file}", **more}]}]}


def _skill(root: Path, name: str, hooks: object, body: str = "words", head: str = "") -> Path:
    text = f"---\ndescription: d\n{head}hooks: {json.dumps(hooks)}\n---\n{body}"
    return put(root / "project/.claude/skills" / name / "SKILL.md", text)


def _session(root: Path, *, trusted: bool = True) -> Session:
    return opened(root / "project", settings={"pages": pages(root, trusted=trusted), "mode": Mode.BYPASS})


def _use(skill: str, id: str = "s") -> ToolCall:
    return ToolCall(id, "Skill", {"skill": skill})


def _make(folder: str, id: str = "b") -> ToolCall:
    return ToolCall(id, "Bash", {"command": f"mkdir {folder}"})


def _told(file: Path) -> list[dict[str, Any]]:
    lines = file.read_text().splitlines() if file.exists() else []
    return [json.loads(line) for line in lines if line]


@requirement("HOOK-1", "TASK-2")
async def test_a_guard_of_a_skill_holds_for_the_turn_in_which_it_is_used_and_no_longer(tmp_path: Path) -> None:
    _skill(tmp_path, "careful", GUARD)
    session = _session(tmp_path)
    model = Cast(
        main=[
            says("", _make("before", "0")),
            says("", _use("careful")),
            says("", _make("during", "1")),
            says(""),
            says("", _make("after", "2")),
            says(""),
        ],
    )

    await played(session, model, "main")
    said = await played(session, model, "go on")

    assert [DENIED in text for text in said] == [False, False, True, False]
    assert sorted(path.name for path in (tmp_path / "project").iterdir() if path.name != ".claude") == [
        "after",
        "before",
    ]
    await session.close()


@requirement("HOOK-1", "TASK-2")
async def test_a_guard_of_a_skill_holds_for_the_commands_in_its_own_text(tmp_path: Path) -> None:
    _skill(tmp_path, "maker", GUARD, "!`mkdir made`")
    session = _session(tmp_path)

    (outcome,) = await session.run([_use("maker")])

    assert outcome.status is Status.FAILED
    assert DENIED in plain_text(outcome.content)
    assert not (tmp_path / "project/made").exists()


@requirement("HOOK-1", "TASK-2")
async def test_hooks_of_a_skill_that_a_person_uses_hold_for_the_turn_that_follows(tmp_path: Path) -> None:
    told = tmp_path / "told"
    _skill(tmp_path, "careful", GUARD | _noting("UserPromptSubmit", told) | _noting("Stop", told), "main task")
    session = _session(tmp_path)
    model = Cast(main=[says("", _make("during", "1")), says("Done."), says("", _make("after", "2")), says("")])

    prompt = await SlashCommands(session, Skills(pages(tmp_path, trusted=True))).expand("/careful")
    assert isinstance(prompt, str)
    await played(session, model, prompt)
    said = await played(session, model, "go on")

    assert [DENIED in text for text in said] == [True, False]
    assert [event["hook_event_name"] for event in _told(told)] == ["UserPromptSubmit", "Stop"]
    await session.close()


@requirement("HOOK-1", "TASK-1", "TASK-2")
@pytest.mark.parametrize("how", ["a skill that forks", "a skill before the agent"])
async def test_an_agent_that_works_under_a_skill_is_held_by_its_hooks(tmp_path: Path, how: str) -> None:
    told = tmp_path / "told"
    forks = how == "a skill that forks"
    hooks = GUARD | _noting("Stop", told)
    _skill(tmp_path, "careful", hooks, "task", "context: fork\n" if forks else "")
    session = _session(tmp_path)
    agents = [] if forks else [says("", hire("a", "task"))]
    model = Cast(
        main=[says("", _use("careful")), *agents, says("Thanks.")],
        task=[says("", _make("during")), says("Could not.")],
    )

    await played(session, model)

    assert not (tmp_path / "project/during").exists()
    assert [event["hook_event_name"] for event in _told(told)] == ["SubagentStop" if forks else "Stop"]
    await session.close()


@requirement("HOOK-1", "TASK-1")
async def test_hooks_of_a_skill_that_an_agent_begins_with_hold_for_that_agent(tmp_path: Path) -> None:
    _skill(tmp_path, "careful", GUARD)
    put(tmp_path / "project/.claude/agents/h.md", "---\nname: h\ndescription: d\nskills: [careful]\n---\nWork.\n")
    session = _session(tmp_path)
    model = Cast(
        main=[says("", hire("1", "do it", subagent_type="h")), says("", _make("by-main")), says("")],
        **{'<skill name="careful">': [says("", _make("by-agent")), says("Could not.")]},
    )

    await played(session, model)

    assert not (tmp_path / "project/by-agent").exists()
    assert (tmp_path / "project/by-main").is_dir()
    await session.close()


@requirement("HOOK-1", "TASK-2")
async def test_a_hook_that_runs_once_runs_once_in_a_session(tmp_path: Path) -> None:
    told = tmp_path / "told"
    _skill(tmp_path, "noted", _noting("PreToolUse", told, once="true"))
    session = _session(tmp_path)

    for _ in range(2):
        await session.run([_use("noted")])
        await session.run([_make("x"), _make("y", "c")])

    assert len(_told(told)) == 1
    await session.close()


@requirement("TASK-2", "SET-3")
@pytest.mark.parametrize(
    ("hooks", "trusted", "words"),
    [
        (GUARD, False, "its folder is not trusted"),
        ({"PreToolUse": [{"hooks": [{"type": "command", "command": "x", "shell": "powershell"}]}]}, True, "PowerShell"),
        ({"PreToolUse": [{"hooks": [{"type": "comand", "command": "x"}]}]}, True, "cannot be run"),
        (
            {"PreToolUse": [{"matcher": "(", "hooks": [{"type": "command", "command": "x"}]}]},
            True,
            "not a valid regular",
        ),
        ("a text", True, "cannot be run"),
    ],
)
async def test_a_skill_whose_hooks_would_not_run_is_used_by_nobody(
    tmp_path: Path, hooks: object, trusted: bool, words: str
) -> None:
    _skill(tmp_path, "guarded", hooks, "!`mkdir made`")
    session = _session(tmp_path, trusted=trusted)

    (outcome,) = await session.run([_use("guarded")])
    with pytest.raises(NotExpanded, match=words):
        await SlashCommands(session, Skills(pages(tmp_path, trusted=trusted))).expand("/guarded")

    assert outcome.status is Status.FAILED
    assert words in plain_text(outcome.content)
    assert not (tmp_path / "project/made").exists()
