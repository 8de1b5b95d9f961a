"""Hooks at the turning points of an agent: SubagentStart and SubagentStop, and its own compactions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

from ..core.calls import ToolOutcome
from ..core.ports import TurnWords
from .lifecycle import Lifecycle


class AgentLifecycle:
    """Satisfies `core.ports.TurnHooks` for the session of one agent."""

    def __init__(self, told: Sequence[Lifecycle], *, agent: str, kind: str, transcript: Callable[[], str]) -> None:
        """`told` are the hooks of the session and those that the agent defines."""
        self._told = told
        self._agent = agent
        self._kind = kind
        self._transcript = transcript

    async def session_started(self, cwd: str, *, source: str = "startup", model: str = "") -> TurnWords:
        return _join([await one.agent_started(cwd, agent=self._agent, kind=self._kind) for one in self._told])

    async def session_ended(self, cwd: str, *, reason: str = "other") -> None:
        """No event: the session continues after the agent has ended."""

    async def prompt_submitted(self, cwd: str, prompt: str) -> TurnWords:
        """No event: an agent's prompt is not written by a person."""
        return TurnWords()

    async def stopping(self, cwd: str, last: str, *, blocked: int = 0) -> TurnWords:
        return _join(
            [
                await one.agent_stopping(
                    cwd, last, agent=self._agent, kind=self._kind, transcript=self._transcript(), blocked=blocked
                )
                for one in self._told
            ]
        )

    async def calls_finished(self, cwd: str, outcomes: Sequence[ToolOutcome]) -> TurnWords:
        return _join([await one.calls_finished(cwd, outcomes, **self._who) for one in self._told])

    async def compacting(self, cwd: str, *, trigger: Literal["manual", "auto"], instructions: str = "") -> TurnWords:
        return await self._tell_all("PreCompact", cwd, trigger=trigger, custom_instructions=instructions)

    async def compacted(self, cwd: str, *, trigger: Literal["manual", "auto"], summary: str) -> None:
        """No further event: only the session itself is reported as started again."""
        await self._tell_all("PostCompact", cwd, trigger=trigger, compact_summary=summary)

    async def _tell_all(self, event: str, cwd: str, **fields: Any) -> TurnWords:
        return _join([await one.tell(event, cwd, **fields, **self._who) for one in self._told])

    @property
    def _who(self) -> dict[str, str]:
        return {"agent_id": self._agent, "agent_type": self._kind}


def _join(said: Sequence[TurnWords]) -> TurnWords:
    return TurnWords(
        context=tuple(text for one in said for text in one.context),
        blocks="\n".join(one.blocks for one in said if one.blocks),
        stops=next((one.stops for one in said if one.stops), ""),
    )
