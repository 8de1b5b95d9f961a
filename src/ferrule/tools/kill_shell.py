"""End a background command."""

from __future__ import annotations

from typing import Self

from pydantic import Field

from ..core.content import Block, Terminal, Text, View
from ..core.context import ToolContext
from ..core.effects import ChangesState, Effects
from ..core.inputs import ToolInput
from ..core.tool import Alias, ToolError, load_guide
from ..core.values import plain_value
from ..host.processes.background_tasks import NoSuchCommand, TaskState, TaskStatus
from ..host.processes.session_shell import Shell
from . import NO_SHELL, BuiltinTool, Services


class KillShellInput(ToolInput):
    shell_id: str = Field(min_length=1, description="The id that Bash gave.")


@plain_value
class Killed:
    status: TaskStatus
    output: str
    """Its last output that was not shown yet."""


class KillShell(BuiltinTool[KillShellInput, Killed]):
    name = "KillShell"
    description = load_guide(__file__)
    hint = "end a background command"
    input_model = KillShellInput
    needs = "shell"
    aliases = (Alias("KillBash"), Alias("TaskStop", rename={"task_id": "shell_id"}))

    def __init__(self, shell: Shell | None = None) -> None:
        self._shell = shell

    @classmethod
    def from_services(cls, services: Services) -> Self:
        return cls(services.get_shell())

    def unavailable(self) -> str | None:
        return None if self._shell else NO_SHELL

    def effects(self, input: KillShellInput, ctx: ToolContext) -> Effects:
        return Effects.of(ChangesState(f"task {input.shell_id}"))

    async def call(self, input: KillShellInput, ctx: ToolContext) -> Killed:
        assert self._shell is not None, "a tool without a shell is off"
        try:
            news = await self._shell.background.kill(input.shell_id)
        except NoSuchCommand as error:
            raise ToolError(str(error.args[0])) from None
        return Killed(news.status, news.text.rstrip("\n"))

    def to_model(self, output: Killed) -> tuple[Block, ...]:
        ended = "was ended" if output.status.state is TaskState.KILLED else "had ended already"
        said = f"{output.status.id} {ended}, with everything it started."
        return (Text("\n".join(filter(None, (said, output.output)))),)

    def describe(self, input: KillShellInput) -> str:
        return f"KillShell {input.shell_id}"

    def show_result(self, input: KillShellInput, output: Killed) -> View:
        return Terminal(output.status.command, output.output, output.status.exit_code)
