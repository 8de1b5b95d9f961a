"""What a background command has printed, or which there are."""

from __future__ import annotations

from typing import Self

from pydantic import Field

from ..core.content import Block, Terminal, Text, View
from ..core.context import ToolContext
from ..core.effects import ChangesState, Effects, ReadsState
from ..core.inputs import ToolInput
from ..core.tool import Alias, ToolError, load_guide
from ..core.values import plain_value
from ..host.processes.background_tasks import NoSuchCommand, TaskStatus
from ..host.processes.change_words import describe_changes
from ..host.processes.line_filter import BadPattern
from ..host.processes.session_shell import Shell
from . import NO_SHELL, BuiltinTool, Services

MOST_MS = 600_000
SHOWN = 29_000
SHORT = 200
"""Characters of a command in the list."""


class TaskOutputInput(ToolInput):
    task_id: str | None = Field(
        default=None, min_length=1, description="The id that Bash gave. Omit it to list all of them."
    )
    filter: str | None = Field(
        default=None,
        min_length=1,
        description="Show only lines that match this regular expression; others are treated as seen.",
    )
    block: bool = Field(default=True, description="Whether to wait until it ends, or until `timeout`.")
    timeout: int = Field(default=30_000, ge=0, le=MOST_MS, description="Milliseconds to wait at most.")


@plain_value
class TaskNews:
    status: TaskStatus
    output: str
    """What is new since the last look."""
    notes: tuple[str, ...] = ()


@plain_value
class Tasks:
    """All that run in the background, and those that ended and were not killed."""

    there: tuple[TaskStatus, ...]


class TaskOutput(BuiltinTool[TaskOutputInput, TaskNews | Tasks]):
    name = "TaskOutput"
    description = load_guide(__file__)
    hint = "output and status of a background command"
    input_model = TaskOutputInput
    needs = "shell"
    aliases = (
        Alias("BashOutput", rename={"bash_id": "task_id"}, fixed={"block": False}),
        Alias("AgentOutput", rename={"agentId": "task_id"}),
    )
    result_limit = 30_000

    def __init__(self, shell: Shell | None = None) -> None:
        self._shell = shell

    @classmethod
    def from_services(cls, services: Services) -> Self:
        return cls(services.get_shell())

    def unavailable(self) -> str | None:
        return None if self._shell else NO_SHELL

    def effects(self, input: TaskOutputInput, ctx: ToolContext) -> Effects:
        """Output that was shown once is not shown again, so calls for one task keep their order."""
        if input.task_id is None:
            return Effects.of(ReadsState("tasks"))
        return Effects.of(ChangesState(f"task {input.task_id}"))

    def check(self, input: TaskOutputInput, ctx: ToolContext) -> None:
        if input.task_id is None and input.filter is not None:
            raise ToolError("`filter` is for the output of one task. Name it in `task_id`, or leave `filter` out.")

    async def call(self, input: TaskOutputInput, ctx: ToolContext) -> TaskNews | Tasks:
        assert self._shell is not None, "a tool without a shell is off"
        background = self._shell.background
        if input.task_id is None:
            return Tasks(background.listing())
        try:
            news = await background.output(
                input.task_id,
                filter=input.filter,
                wait_for="end" if input.block else "nothing",
                seconds=input.timeout / 1000,
                limit=SHOWN,
            )
        except (NoSuchCommand, BadPattern) as error:
            raise ToolError(str(error.args[0])) from None
        notes: list[str] = []
        if news.dropped_lines:
            notes.append(f"{news.dropped_lines:,} lines did not match the filter.")
        if news.missed:
            notes.append(f"{news.missed:,} bytes before this are lost: it printed more than is kept.")
        if news.saved:
            notes.append(f"{'The first part' if news.capped else 'All'} of it is in {news.saved}.")
        notes += describe_changes(news.status.changes)
        return TaskNews(news.status, news.text.rstrip("\n"), tuple(notes))

    def to_model(self, output: TaskNews | Tasks) -> tuple[Block, ...]:
        if isinstance(output, Tasks):
            return (Text("\n".join(map(_line, output.there)) or "Nothing runs in the background."),)
        shown = output.output or "(nothing new)"
        return (Text("\n".join((shown, *output.notes, f"[{output.status}]"))),)

    def describe(self, input: TaskOutputInput) -> str:
        return f"TaskOutput {input.task_id or 'of all'}"

    def show_result(self, input: TaskOutputInput, output: TaskNews | Tasks) -> View:
        if isinstance(output, Tasks):
            return super().show_result(input, output)
        return Terminal(output.status.command, output.output, output.status.exit_code)


def _line(status: TaskStatus) -> str:
    command = " ".join(status.command.split())
    return f"{status} {command if len(command) <= SHORT else command[: SHORT - 1] + '…'}"
