"""A conversation that an agent leads: what its file says applies to the conversation, or nothing is opened."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ferrule.core.calls import ToolCall
from ferrule.core.content import plain_text
from ferrule.core.model import UserTurn
from ferrule.providers.scripted import says
from ferrule.sdk.client import FerruleClient
from ferrule.sdk.errors import CannotOpen
from ferrule.sdk.options import Options
from ferrule.testing import RecordingModel
from tests.settings.folders import put

from ..requirement import requirement
from .scenes import options, read, results

HOOKS = """\
hooks:
  PreToolUse:
    - matcher: Read
      hooks:
        - type: command
          command: echo 'not this one' >&2; exit 2
"""
READS = ToolCall("1", "Read", {"file_path": "a.txt"})
WRITES = ToolCall("2", "Write", {"file_path": "b.txt", "content": "x"})


def _led(folder: Path, head: str, model: Any = None, **more: Any) -> Options:
    put(folder / ".claude/agents/lead.md", f"---\nname: lead\ndescription: d\n{head}---\nYou lead.")
    put(folder / "a.txt", "content")
    return options(folder, model=model, agent="lead", setting_sources=["project"], **more)


async def _answer(chosen: Options, *prompts: str) -> list[Any]:
    messages: list[Any] = []
    async with FerruleClient(chosen) as client:
        for prompt in prompts:
            await client.query(prompt)
            messages += await read(client.receive_response())
    return messages


@requirement("TASK-1", "CLI-1")
async def test_its_initial_prompt_comes_before_the_first_prompt_alone(tmp_path: Path) -> None:
    model = RecordingModel(says("One."), says("Two."))

    await _answer(_led(tmp_path, "initialPrompt: Begin here.\n", model), "first", "second")

    said = [plain_text(turn.content) for turn in model.requests[-1][1] if isinstance(turn, UserTurn)]
    assert said == ["Begin here.\n\nfirst", "second"]


@requirement("TASK-1", "HOOK-1")
async def test_its_hooks_guard_the_conversation(tmp_path: Path) -> None:
    model = RecordingModel(says("", READS), says("Done."))

    messages = await _answer(_led(tmp_path, HOOKS, model, trust=True), "go")

    assert "not this one" in str(results(messages)[0].content)


@requirement("TASK-1", "HOOK-1", "SET-4")
async def test_without_trust_in_its_hooks_nothing_is_opened(tmp_path: Path) -> None:
    with pytest.raises(CannotOpen, match=r"lead\.md contains hooks, and its folder is not trusted"):
        await _answer(_led(tmp_path, HOOKS, RecordingModel(says("Never."))), "go")


@requirement("TASK-1", "PERM-4")
async def test_one_that_plans_changes_nothing_whatever_is_allowed(tmp_path: Path) -> None:
    model = RecordingModel(says("", WRITES), says("Done."))

    messages = await _answer(_led(tmp_path, "permissionMode: plan\n", model, allow=["Write"]), "go")

    assert "changes nothing" in str(results(messages)[0].content)
    assert not (tmp_path / "b.txt").exists()
