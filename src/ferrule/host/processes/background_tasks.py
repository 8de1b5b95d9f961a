"""Commands that run in the background: by id, read from where the last look ended, ended with all they started."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from enum import StrEnum
from itertools import count
from typing import Literal, Protocol, TypeAlias

from ...core.values import named_value
from .command import Changes, Command, CommandFailed, Ran
from .command_runner import CommandRunner
from .line_filter import matching
from .output_ring import MODEL_CHARACTERS, OutputRing, decode_output, within
from .running_command import GRACE, Running
from .terminal_text import clean_output

FILTERED_BYTES = 4 << 20
"""As much of what is new is filtered; of more, the end."""
SETTLING = 0.05
"""Seconds between two looks for a pattern, so that a flood is not looked through piece by piece."""

WaitFor: TypeAlias = Literal["nothing", "news", "end"]


class TaskState(StrEnum):
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    """With an exit code that is not zero, or by a signal."""
    KILLED = "killed"
    """Because somebody asked for it."""
    LOST = "lost"
    """Together with the process that ran it."""


class NoSuchCommand(LookupError):
    """No command has this id. The message names the existing ones."""


@named_value
class TaskStatus:
    id: str
    command: str
    state: TaskState
    exit_code: int | None
    signal: str | None
    seconds: float
    total: int
    """Bytes it has printed so far."""
    trouble: str = ""
    """Why it was lost."""
    changes: Changes | None = None
    """Of a held command that has ended."""
    reports: bool = False
    """Whether what it printed is a result that somebody waits for."""

    def __str__(self) -> str:
        how = f"ended by {self.signal}" if self.signal else f"exit code {self.exit_code}"
        match self.state:
            case TaskState.RUNNING:
                return f"{self.id} is running, for {self.seconds:.0f} s."
            case TaskState.LOST:
                return f"{self.id} was lost. {self.trouble}"
            case TaskState.COMPLETED | TaskState.FAILED | TaskState.KILLED:
                return f"{self.id} {self.state}, {how}, after {self.seconds:.0f} s."


@named_value
class News:
    """What a command printed since the last look."""

    status: TaskStatus
    text: str
    cursor: int
    """Where the next look begins."""
    missed: int = 0
    """Bytes that are new but lost: neither in memory nor in the file."""
    dropped_lines: int = 0
    """Lines that did not match the filter. They are treated as seen."""
    saved: str = ""
    """The file with all of it, or its first part where that is `capped`."""
    capped: bool = False


class Work(Protocol):
    """Something that runs, prints and ends: a command, or an agent."""

    @property
    def output(self) -> OutputRing: ...

    @property
    def seconds(self) -> float: ...

    async def wait(self) -> Ran:
        """Raises `CommandFailed` where it was lost."""
        ...

    async def end(self, *, grace: float) -> None: ...

    def watch(self, watcher: Callable[[], None], /) -> None:
        """Call it after each piece of output, once more at the end, and now if either was already."""
        ...


class _Task:
    def __init__(self, id: str, running: Work, title: str, *, reports: bool) -> None:
        self.id = id
        self.running = running
        self.title = title
        self.reports = reports
        self.given_up = False
        self.seen = 0
        self.told = False
        self.killed = False
        self.ran: Ran | None = None
        self.trouble = ""
        self.news = asyncio.Event()
        running.watch(self.news.set)
        self.following = asyncio.create_task(self._follow())

    async def _follow(self) -> None:
        try:
            self.ran = await self.running.wait()
        except CommandFailed as error:
            self.trouble = str(error)
        self.seconds = self.running.seconds
        self.news.set()

    @property
    def has_ended(self) -> bool:
        return self.ran is not None or bool(self.trouble)

    def status(self) -> TaskStatus:
        return TaskStatus(
            id=self.id,
            command=self.title,
            state=self._state(),
            exit_code=self.ran.exit_code if self.ran else None,
            signal=self.ran.signal if self.ran else None,
            seconds=self.seconds if self.has_ended else self.running.seconds,
            total=self.running.output.total,
            trouble=self.trouble,
            changes=self.ran.changes if self.ran else None,
            reports=self.reports,
        )

    def _state(self) -> TaskState:
        if self.trouble:
            return TaskState.LOST
        if self.ran is None:
            return TaskState.RUNNING
        if self.killed:
            return TaskState.KILLED
        return TaskState.COMPLETED if self.ran.succeeded else TaskState.FAILED


class Background:
    """The commands of one session that were left to run. Closing it ends them."""

    def __init__(self, commands: CommandRunner) -> None:
        self._commands = commands
        self._tasks: dict[str, _Task] = {}
        self._numbers = count(1)
        self._ended = asyncio.Event()
        """Set when one has ended since somebody began to wait."""

    async def start(self, command: Command) -> str:
        """The command's id, at once. Raises `CommandFailed`."""
        return self.adopt(await self._commands.start(command))

    def adopt(self, running: Running) -> str:
        """Goes on with a command that was waited for, such as one whose time was up."""
        id = f"bash_{next(self._numbers)}"
        self.follow(id, running, running.command.text)
        return id

    def follow(self, id: str, work: Work, title: str, *, reports: bool = False) -> None:
        """Anything else that runs beside the conversation, under an id of its own.

        What `reports` ends by itself, and what it printed is its result.
        """
        task = self._tasks[id] = _Task(id, work, title, reports=reports)
        task.following.add_done_callback(lambda _: self._ended.set())

    async def output(
        self,
        id: str,
        *,
        cursor: int | None = None,
        filter: str | None = None,
        wait_for: WaitFor = "nothing",
        seconds: float = 30.0,
        limit: int = MODEL_CHARACTERS,
    ) -> News:
        """What is new since the last look, or since `cursor`. Raises `NoSuchCommand` and `BadPattern`."""
        task = self._task(id)
        start = task.seen if cursor is None else max(0, cursor)
        await _wait(task, start, wait_for, seconds)
        news = await (_read_matching(task, start, filter, limit) if filter else _read_all(task, start, limit))
        task.seen = max(task.seen, news.cursor)
        task.told = task.told or task.has_ended
        return news

    async def ready(self, id: str, pattern: str, seconds: float) -> str | None:
        """The first line in which the pattern is found, such as "listening on"; `None` if it ends or time is up."""
        task = self._task(id)
        start = 0
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while True:
                    task.news.clear()
                    ended, output = task.has_ended, task.running.output
                    content = output.read(max(start, output.total - FILTERED_BYTES), output.total)
                    if found := await matching(pattern, clean_output(decode_output(content))):
                        return found[0]
                    if ended:
                        return None
                    start += content.rfind(b"\n") + 1  # the rest of a line may still come
                    await task.news.wait()
                    await asyncio.sleep(SETTLING)
        return None

    async def kill(self, id: str, *, grace: float = GRACE) -> News:
        """Ended with all that it started, its last words, and its memory freed."""
        task = self._task(id)
        task.killed = not task.has_ended
        await task.running.end(grace=grace)
        await _wait(task, 0, "end", grace)
        news = await self.output(id)
        self._forget(task)
        return news

    def listing(self) -> tuple[TaskStatus, ...]:
        return tuple(task.status() for task in self._tasks.values())

    def notices(self) -> tuple[TaskStatus, ...]:
        """Those that ended without anybody being notified. Each is reported once."""
        ended = [task for task in self._tasks.values() if task.has_ended and not task.told]
        for task in ended:
            task.told = True
        return tuple(task.status() for task in ended)

    async def report(self, id: str) -> str:
        """All that it printed, without it being seen as read."""
        return (await _read_all(self._task(id), 0, MODEL_CHARACTERS)).text.strip()

    async def wait_for_report(self, seconds: float) -> bool:
        """Whether one that reports has ended and nobody was notified, or is given up because it took too long."""
        open_ones: list[_Task] = []
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while True:
                    self._ended.clear()
                    open_ones = [task for task in self._tasks.values() if task.reports and not task.given_up]
                    if any(task.has_ended and not task.told for task in open_ones):
                        return True
                    if all(task.has_ended for task in open_ones):
                        return False
                    await self._ended.wait()
        for task in open_ones:
            task.given_up = not task.has_ended
        return True

    def overdue(self) -> tuple[TaskStatus, ...]:
        """Those that were given up and still run."""
        return tuple(task.status() for task in self._tasks.values() if task.given_up and not task.has_ended)

    async def close(self, *, grace: float = GRACE) -> None:
        running = [task for task in self._tasks.values() if not task.has_ended]
        await asyncio.gather(*(task.running.end(grace=grace) for task in running))
        for task in [*self._tasks.values()]:
            self._forget(task)

    def _task(self, id: str) -> _Task:
        if (task := self._tasks.get(id)) is None:
            known = ", ".join(self._tasks) or "none"
            raise NoSuchCommand(f"Background command or agent {id} was not found. Available: {known}.")
        return task

    def _forget(self, task: _Task) -> None:
        self._tasks.pop(task.id, None)
        task.following.cancel()
        task.running.output.close()


async def _wait(task: _Task, start: int, wait_for: WaitFor, seconds: float) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            while not task.has_ended and wait_for != "nothing":
                if wait_for == "news" and task.running.output.total > start:
                    return
                task.news.clear()
                await task.news.wait()


async def _read_all(task: _Task, start: int, limit: int) -> News:
    output = task.running.output
    total = output.total
    lost = output.first_lost
    missed = max(0, output.tail_start - max(start, lost)) if lost is not None else 0
    room = limit * 2  # bytes at either end, of which a half may be no characters of their own
    if total - start <= 2 * room and not missed:
        text = within(output.read(start, total), b"", total - start, limit)
    else:
        head = output.read(start, min(start + room, lost if lost is not None else total))
        tail = output.read(max(start, output.tail_start, total - room), total)
        text = within(head, tail, total - start, limit)
    return _news(task, text, total, missed=missed)


async def _read_matching(task: _Task, start: int, pattern: str, limit: int) -> News:
    output = task.running.output
    ended, total = task.has_ended, output.total
    first = max(start, total - FILTERED_BYTES)
    if output.first_lost is not None and first < output.tail_start:
        first = output.tail_start
    content = output.read(first, total)
    if not ended:
        content = content[: content.rfind(b"\n") + 1]  # a line is judged when it is whole
    text = clean_output(decode_output(content))
    found = await matching(pattern, text)
    kept = "\n".join(found).encode()
    return _news(
        task,
        within(kept, b"", len(kept), limit),
        first + len(content),
        missed=first - start,
        dropped_lines=len(text.splitlines()) - len(found),
    )


def _news(task: _Task, text: str, cursor: int, *, missed: int = 0, dropped_lines: int = 0) -> News:
    saved = task.running.output.saved
    return News(
        status=task.status(),
        text=text,
        cursor=cursor,
        missed=missed,
        dropped_lines=dropped_lines,
        saved=str(saved) if saved else "",
        capped=task.running.output.is_capped,
    )
