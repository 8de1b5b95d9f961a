"""When a command is over: by itself, by its time, by a cancellation, or because something died."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from ferrule.host.processes.command import CommandFailed, LeftBehind, ProcessLimits, Ran
from ferrule.host.processes.command_runner import CommandRunner
from tests.host.processes.shell import GENEROUS, alive_with, command, opened, unique, until
from tests.requirement import requirement


@pytest.fixture
async def commands(tmp_path: Path) -> AsyncIterator[CommandRunner]:
    async with opened(tmp_path) as commands:
        yield commands


async def _ran(commands: CommandRunner, text: str, cwd: Path, **variables: str) -> Ran:
    return await commands.run(command(text, cwd, **variables), timeout=GENEROUS)


async def _printed(commands: CommandRunner, text: str, cwd: Path) -> str:
    return (await _ran(commands, text, cwd)).output.text()


async def test_a_call_is_over_when_its_shell_is(commands: CommandRunner, tmp_path: Path) -> None:
    ran = await _ran(commands, "sleep 1001 & until grep -q sleep /proc/$!/comm; do :; done; echo x", tmp_path)

    (left,) = ran.left
    assert (ran.exit_code, ran.output.text(), left) == (0, "x\n", LeftBehind(left.pid, "sleep"))
    assert left.pid in alive_with("1001")


async def test_what_is_left_behind_may_go_on_printing(commands: CommandRunner, tmp_path: Path) -> None:
    text = "{ while [ ! -e go ]; do sleep 0.01; done; head -c 1000000 /dev/zero; touch done; } & echo x"
    ran = await _ran(commands, text, tmp_path)

    (tmp_path / "go").touch()

    await until((tmp_path / "done").exists)
    assert ran.output.text() == "x\n"


@requirement("BASH-4")
@pytest.mark.parametrize(
    "text",
    [
        "tail -f /dev/null",
        "yes > /dev/null",
        "trap '' TERM INT HUP; while :; do sleep 0.05; done",
        "(setsid nohup sleep 1002 > /dev/null 2>&1 &); sleep 1002",
        "for i in 1 2 3 4 5; do (sleep 1002 & setsid sleep 1002 & wait) & done; wait",
        "setsid bash -c 'trap \"\" TERM; (sleep 1002 &) ; sleep 1002'",
        "kill -STOP $$",
        "f() { [ $1 -gt 0 ] || { sleep 1002; return; }; f $(($1-1)) & f $(($1-1)) & wait; }; f 6",
    ],
)
async def test_a_command_out_of_time_ends_with_all_that_it_started(
    commands: CommandRunner, tmp_path: Path, text: str
) -> None:
    marker = unique()
    running = await commands.start(command(text, tmp_path, MARKED=marker))
    await until(lambda: alive_with(marker))

    await running.end(grace=0.2, timed_out=True)

    assert (await running.wait()).timed_out
    assert not alive_with(marker)


@requirement("BASH-4")
async def test_a_cancelled_call_leaves_nothing(commands: CommandRunner, tmp_path: Path) -> None:
    marker = unique()
    task = asyncio.create_task(_ran(commands, "sleep 1003 | sleep 1003", tmp_path, MARKED=marker))
    await until(lambda: len(alive_with(marker)) >= 2)

    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert not alive_with(marker)


async def test_a_command_asked_to_end_as_it_starts_does_so_at_once(commands: CommandRunner, tmp_path: Path) -> None:
    """Also one for which a fork of the spawner waits: what the spawner does about a signal is not done there."""
    for limits in (ProcessLimits(), ProcessLimits(open_files=100)):
        for _ in range(10):
            running = await commands.start(replace(command("sleep 1021", tmp_path), limits=limits))
            await running.end(grace=GENEROUS)

            assert (await running.wait()).signal != "SIGKILL"


async def test_a_command_may_tidy_up_before_it_is_killed(commands: CommandRunner, tmp_path: Path) -> None:
    text = "trap 'echo tidy; exit 5' TERM; echo ready; while :; do sleep 0.01; done"
    running = await commands.start(command(text, tmp_path))
    await until(lambda: running.output.total)

    await running.end(grace=GENEROUS)

    ran = await running.wait()
    assert ran.exit_code == 5
    assert ran.output.text().endswith("tidy\n")


@requirement("BASH-7")
async def test_a_command_whose_time_is_up_can_go_on(commands: CommandRunner, tmp_path: Path) -> None:
    running = await commands.start(command("while [ ! -e go ]; do sleep 0.01; done; echo done", tmp_path))

    assert await running.within(0.05) is None
    (tmp_path / "go").touch()

    assert (await running.wait()).output.text() == "done\n"


# Trouble


async def test_a_start_that_is_cancelled_at_any_step_leaves_nothing(commands: CommandRunner, tmp_path: Path) -> None:
    """With a message too large for the socket, so that it is cut off in its middle, too."""
    marker = unique()
    for text in ("sleep 1016", f"sleep 1016 # {'x' * 3_000_000}"):
        for steps in range(6):
            task = asyncio.create_task(commands.start(command(text, tmp_path, MARKED=marker)))
            for _ in range(steps):
                await asyncio.sleep(0)
            task.cancel()
            with suppress(asyncio.CancelledError):
                await (await task).end(grace=0)

    assert await _printed(commands, "echo on", tmp_path) == "on\n"
    await until(lambda: not alive_with(marker))


async def test_a_session_that_is_closed_tells_who_still_waits(tmp_path: Path) -> None:
    async with opened(tmp_path) as commands:
        running = await commands.start(command("sleep 1017", tmp_path))

    with pytest.raises(CommandFailed, match="The session was closed"):
        await running.wait()


@requirement("BASH-4")
async def test_a_lost_spawner_is_said_and_replaced(commands: CommandRunner, tmp_path: Path) -> None:
    marker = unique()
    text = "(setsid sleep 1004 &) ; sleep 1004"
    running = await commands.start(command(text, tmp_path, MARKED=marker))
    await until(lambda: len(alive_with(marker)) >= 3)
    assert running.pid is not None
    spawner = int(Path(f"/proc/{running.pid}/stat").read_text().rpartition(") ")[2].split()[1])

    os.kill(spawner, signal.SIGKILL)

    with pytest.raises(CommandFailed, match=r"ended\. The command was killed\. Run it again"):
        await running.wait()
    await until(lambda: not alive_with(marker))
    assert await _printed(commands, "echo again", tmp_path) == "again\n"


async def test_a_shell_that_cannot_be_started_is_said_to_be(tmp_path: Path) -> None:
    async with CommandRunner(folder=tmp_path, environment={}, shell="/no/such/bash") as commands:
        with pytest.raises(CommandFailed, match=r"could not be started: .*No such file"):
            await commands.run(command("true", tmp_path))
