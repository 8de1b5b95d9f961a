"""Running calls through the real engine, in one line."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..app.build import Settings, open_session
from ..core.calls import ToolCall, ToolOutcome
from ..core.model import AssistantTurn, ResultTurn, Turn
from ..core.tool import AnyTool
from ..permissions.modes import Mode


async def run_calls(cwd: Path, calls: Iterable[ToolCall], *tools: AnyTool, **settings: Any) -> list[ToolOutcome]:
    """The outcomes of one message, with the built-in tools and these, nothing forbidden."""
    chosen: dict[str, Any] = {"mode": Mode.BYPASS, "state_folder": cwd / ".ferrule-state", **settings}
    async with open_session(Settings(cwd=str(cwd), **chosen), tools=tools) as session:
        return await session.run(calls)


async def run_call(cwd: Path, tool: AnyTool, arguments: Mapping[str, Any], **settings: Any) -> ToolOutcome:
    (outcome,) = await run_calls(cwd, [ToolCall("call-1", tool.name, arguments)], tool, **settings)
    return outcome


def well_formed(history: Sequence[Turn]) -> bool:
    """Whether every call is followed, in the next turn and in order, by exactly one result."""
    for index, turn in enumerate(history):
        calls = [call.id for call in turn.calls] if isinstance(turn, AssistantTurn) else []
        follower = history[index + 1] if index + 1 < len(history) else None
        results = [result.call_id for result in follower.results] if isinstance(follower, ResultTurn) else []
        if calls != results:
            return False
        if isinstance(turn, ResultTurn) and not (index and isinstance(history[index - 1], AssistantTurn)):
            return False
    return True
