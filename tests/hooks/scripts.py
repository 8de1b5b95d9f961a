"""Hook scripts of many kinds, and a runner to run them with."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ferrule.core.events import HookRan
from ferrule.hooks.event_names import MOMENTS
from ferrule.hooks.hook import Hook, HookBook, Program
from ferrule.hooks.hook_matching import everything
from ferrule.hooks.reply_parsing import HookAnswer
from ferrule.hooks.runner import Runner
from ferrule.hooks.worker import Worker
from ferrule.testing import Recorder

PAYLOAD: Mapping[str, Any] = {"hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": {"command": "ls"}}


def program(command: str, event: str = "PreToolUse", **more: Any) -> Hook:
    given = {"seconds": MOMENTS[event].seconds, "name": command[:20], **more}
    return Hook(event=event, matches=everything, work=Program(command), **given)


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not holds():  # noqa: ASYNC110 - what another process does sets no event
            await asyncio.sleep(0.005)


def printing(**answer: Any) -> str:
    """A command that answers with this JSON."""
    return f"cat >/dev/null; cat <<'END'\n{json.dumps(answer)}\nEND\n"


def deciding(permission: str, reason: str = "", **more: Any) -> dict[str, Any]:
    said = {"hookEventName": "PreToolUse", "permissionDecision": permission, **more}
    return {"hookSpecificOutput": said | ({"permissionDecisionReason": reason} if reason else {})}


def runner(folder: Path, *hooks: Hook, seen: Recorder | None = None, **more: Any) -> Runner:
    book = HookBook(hooks)
    worker = Worker(seen or Recorder(), project=str(folder), **more)
    return Runner(lambda agent, chain: book, lambda: worker)


async def answer_of(folder: Path, hook: Hook, payload: Mapping[str, Any] = PAYLOAD) -> HookAnswer:
    seen = Recorder()
    (answer,) = await runner(folder, hook, seen=seen).ask([hook], {"cwd": str(folder), **payload})
    (told,) = seen.of(HookRan)
    assert (told.event, told.name, told.outcome) == (hook.event, hook.name, answer.outcome)
    return answer
