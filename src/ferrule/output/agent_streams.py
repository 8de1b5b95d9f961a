"""The lines of a conversation with those of its agents, each with the call that it belongs to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ..core.events import AgentStarted, Envelope, TurnEnded
from .stream_json import StreamJson
from .task_lines import TaskLines


class AgentStreams:
    """Reads the events of all agents of a session. An agent's lines come between its call and that call's result."""

    def __init__(
        self, main: StreamJson, of_agent: Callable[[AgentStarted], StreamJson], tasks: TaskLines | None = None
    ) -> None:
        """With `tasks`, there are also lines that say when agents and commands in the background begin and end."""
        self.main = main
        self._of_agent = of_agent
        self._tasks = tasks
        self._agents: dict[str, StreamJson] = {}

    def lines(self, envelope: Envelope) -> list[dict[str, Any]]:
        """None for an agent whose start was not seen: its lines could not be assigned to a call."""
        agent, event = envelope.agent, envelope.event
        if agent == "main":
            return [*self.main.lines(envelope), *self._task_lines(envelope)]
        if isinstance(event, AgentStarted):
            starter = self._agents.get(agent.rpartition("/")[0], self.main)
            event = replace(event, call_id=starter.outermost_call(event.call_id))
            self._agents[agent] = self._of_agent(event)
        stream = self._agents.get(agent)
        if stream is None:
            return []
        if isinstance(event, TurnEnded):
            del self._agents[agent]
        call_id = event.call_id if isinstance(event, AgentStarted) else ""
        return [*stream.lines(envelope), *self._task_lines(envelope, call_id)]

    def _task_lines(self, envelope: Envelope, call_id: str = "") -> list[dict[str, Any]]:
        return list(self._tasks.lines(envelope, call_id)) if self._tasks else []
