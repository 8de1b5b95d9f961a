"""The lines of a conversation with those of its agents, each with the call that it belongs to.

Agents, and commands in the background, may also have lines that say when they begin and end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

from ..core.calls import ToolOutcome
from ..core.events import AgentStarted, Envelope, MessageEnded, NoteAdded, ToolFinished, TurnEnded
from .stream_json import Shape, StreamJson

_WELL: Final = frozenset({"end", "max_tokens", "refusal"})
_ENDED: Final = "finished_tasks"
"""The kind of note that names commands which have ended, each on a line that begins with its id."""


@dataclass(slots=True)
class _Task:
    id: str
    call_id: str
    title: str
    kind: str = ""
    began: float = 0.0
    tokens: int = 0
    calls: int = 0

    def usage(self, now: float) -> dict[str, int]:
        milliseconds = round((now - self.began) * 1000)
        return {"total_tokens": self.tokens, "tool_uses": self.calls, "duration_ms": milliseconds}


class TaskLines:
    """Each task begins with `task_started` and ends with `task_notification`."""

    def __init__(self, stream: StreamJson, shape: Shape) -> None:
        self._stream = stream
        self._shape = shape
        self._agents: dict[str, _Task] = {}
        self._commands: dict[str, _Task] = {}

    def lines(self, envelope: Envelope, call_id: str = "") -> Iterator[dict[str, Any]]:
        """`call_id` is the call with a line that an agent which starts is for."""
        event = envelope.event
        if envelope.agent != "main":
            yield from self._of_agent(envelope, call_id)
        elif isinstance(event, ToolFinished):
            yield from self._of_command(event.outcome, envelope.time)
        elif isinstance(event, NoteAdded) and event.kind == _ENDED:
            for line in event.text.splitlines():
                id, _, words = line.partition(" ")
                if (task := self._commands.pop(id, None)) is not None:
                    status = "completed" if words.startswith("completed") else "failed"
                    yield self._ended(task, status, line, envelope.time)

    def _of_agent(self, envelope: Envelope, call_id: str) -> Iterator[dict[str, Any]]:
        match envelope.event:
            case AgentStarted(_, kind, title):
                id = envelope.agent.rpartition("/")[2]
                task = self._agents[envelope.agent] = _Task(id, call_id, title or kind, kind, envelope.time)
                yield self._line(task, "task_started", task_type="local_agent", subagent_type=kind)
            case MessageEnded(_, _, usage) if envelope.agent in self._agents:
                read = usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens
                self._agents[envelope.agent].tokens += read + usage.output_tokens
            case ToolFinished(outcome) if envelope.agent in self._agents:
                task = self._agents[envelope.agent]
                task.calls += 1
                used = {"usage": task.usage(envelope.time), "last_tool_name": outcome.call.name}
                yield self._line(task, "task_progress", subagent_type=task.kind, **used)
            case TurnEnded(reason, error) if envelope.agent in self._agents:
                stopped = "stopped" if reason == "interrupted" else "failed"
                status = "completed" if reason in _WELL else stopped
                task = self._agents.pop(envelope.agent)
                yield self._ended(task, status, error or f"{task.title}: {status}", envelope.time)
            case _:
                pass

    def _of_command(self, outcome: ToolOutcome, now: float) -> Iterator[dict[str, Any]]:
        call = outcome.call
        if outcome.is_error:
            return
        if call.name == "Bash":
            id = (self._shape(outcome) or {}).get("backgroundTaskId")
            if isinstance(id, str):
                words = str(call.arguments.get("description") or call.arguments.get("command") or id)
                task = self._commands[id] = _Task(id, call.id, words, began=now)
                yield self._line(task, "task_started", task_type="local_bash", is_backgrounded=True)
        elif call.name == "KillShell" and (task := self._commands.pop(str(call.arguments.get("shell_id")), None)):
            yield self._ended(task, "stopped", f"{task.title}: stopped", now)

    def _ended(self, task: _Task, status: str, summary: str, now: float) -> dict[str, Any]:
        line = self._line(task, "task_notification", status=status, output_file="", summary=summary)
        return {**line, "usage": task.usage(now)} if task.kind else line

    def _line(self, task: _Task, subtype: str, **more: Any) -> dict[str, Any]:
        known = {"task_id": task.id, "tool_use_id": task.call_id, "description": task.title}
        return self._stream.line("system", subtype=subtype, **known, **more)


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
