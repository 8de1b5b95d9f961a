"""TaskOutput and KillShell keep the promises of every tool; what they do is shown with Bash."""

from __future__ import annotations

from ferrule.core.tool import AnyTool
from ferrule.host.processes.session_shell import Shell
from ferrule.testing.tool_contract import ToolContract
from ferrule.tools.kill_shell import KillShell
from ferrule.tools.task_output import TaskOutput
from tests.tools.test_bash import A_FEW_STEPS, NEVER_MADE


class OfOneTask(ToolContract):
    """A shell with one command in the background."""

    steps = A_FEW_STEPS

    def make(self) -> AnyTool:
        self.shells = [*getattr(self, "shells", []), Shell(NEVER_MADE)]
        return self.build(self.shells[-1])

    def build(self, shell: Shell) -> AnyTool:
        raise NotImplementedError

    async def prepare(self) -> None:
        shell = self.shells[-1]
        await shell.background.start(shell.plain("echo here; sleep 30", "/"))

    async def release(self) -> None:
        for shell in self.shells:
            await shell.close()
        self.shells = []


class TestTaskOutputContract(OfOneTask):
    samples = ({"task_id": "bash_1", "block": False}, {})

    def build(self, shell: Shell) -> AnyTool:
        return TaskOutput(shell)


class TestKillShellContract(OfOneTask):
    samples = ({"shell_id": "bash_1"},)

    def build(self, shell: Shell) -> AnyTool:
        return KillShell(shell)


def test_a_tool_without_a_shell_is_off() -> None:
    assert [tool.unavailable() for tool in (TaskOutput(), KillShell())] == ["no shell is available"] * 2
