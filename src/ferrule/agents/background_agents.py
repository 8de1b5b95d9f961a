"""An agent that works in the background, kept like a background command."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from typing import Any

from ..core.events import TurnEnded
from ..engine.error_outcomes import end
from ..host.processes.command import CommandFailed, Ran
from ..host.processes.output_ring import OutputRing
from .launcher import AgentReport

WELL = frozenset({"end", "max_tokens", "refusal"})


class AgentAtWork:
    """Satisfies `host.processes.background_tasks.Work`. What it prints is its report, once it has ended."""

    def __init__(
        self, work: Coroutine[Any, Any, AgentReport], told: Callable[[AgentReport], str], dismissed: Callable[[], None]
    ) -> None:
        """`told` makes a text of the report. `dismissed` is called at the end, also of one that never began."""
        self.output = OutputRing()
        self._dismissed = dismissed
        self._began = time.monotonic()
        self._told = told
        self._watchers: list[Callable[[], None]] = []
        self._task = asyncio.create_task(work)
        self._task.add_done_callback(self._on_done)

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._began

    async def wait(self) -> Ran:
        await asyncio.wait((self._task,))
        if self._task.cancelled():
            return self._ran(1, "SIGTERM")
        if error := self._task.exception():
            raise CommandFailed(f"The agent failed: {error}")
        return self._ran(0 if succeeded(self._task.result().ended) else 1)

    async def end(self, *, grace: float) -> None:
        if not self._task.done():
            await end(self._task, grace=grace)

    def watch(self, watcher: Callable[[], None], /) -> None:
        self._watchers.append(watcher)
        if self._task.done():
            watcher()

    def _ran(self, code: int, signal: str | None = None) -> Ran:
        return Ran(
            exit_code=None if signal else code,
            signal=signal,
            output=self.output.snapshot(),
            cwd=None,
            seconds=self.seconds,
        )

    def _on_done(self, task: asyncio.Task[AgentReport]) -> None:
        self._dismissed()
        if not task.cancelled() and task.exception() is None:
            self.output.feed(self._told(task.result()).encode("utf-8", "replace"))
        for watcher in self._watchers:
            watcher()


def succeeded(ended: TurnEnded) -> bool:
    return ended.reason in WELL
