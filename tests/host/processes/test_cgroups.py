"""Control groups: bounds for all commands together, where the system allows them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ferrule.host.processes.command import Bounds
from ferrule.host.processes.command_runner import CommandRunner
from tests.host.processes.shell import GENEROUS, alive_with, command, unique, until

BOMB = "f() { while :; do sleep 1018 & done; }; f 2>/dev/null"


def _bounded(folder: Path, bounds: Bounds) -> CommandRunner:
    return CommandRunner(folder=folder, environment=os.environ, bounds=bounds)


async def test_a_fork_bomb_stays_within_its_bounds_and_ends_when_told(tmp_path: Path) -> None:
    marker = unique()
    async with _bounded(tmp_path, Bounds(processes=60)) as commands:
        await commands.prepare()
        groups = await commands.control_groups()
        if not any("pids" in group or group.startswith("0:") for group in groups):
            pytest.skip("no control group for processes can be made here")
        running = await commands.start(command(BOMB, tmp_path, MARKED=marker))
        await until(lambda: len(alive_with(marker)) > 40)

        for _ in range(20):
            assert len(alive_with(marker)) <= 60
        await running.end(grace=0)

        assert not alive_with(marker)
        assert (await commands.run(command("echo on", tmp_path), timeout=GENEROUS)).output.text() == "on\n"


async def test_memory_beyond_the_bounds_ends_the_command_and_not_the_spawner(tmp_path: Path) -> None:
    async with _bounded(tmp_path, Bounds(memory=200 << 20)) as commands:
        groups = await commands.control_groups()
        if not any("memory" in group or group.startswith("0:") for group in groups):
            pytest.skip("no control group for memory can be made here")

        ran = await commands.run(command("python3 -c 'bytearray(1 << 30)'", tmp_path), timeout=GENEROUS)

        assert ran.signal == "SIGKILL"
        assert (await commands.run(command("echo on", tmp_path))).output.text() == "on\n"


async def test_no_group_is_left(tmp_path: Path) -> None:
    async with _bounded(tmp_path, Bounds(processes=100)) as commands:
        groups = await commands.control_groups()

    names = {group.rpartition("/")[2] for group in groups}
    left = [name for folder, folders, _ in os.walk("/sys/fs/cgroup") for name in folders if name in names and folder]
    assert left == []


async def test_without_a_group_commands_run_all_the_same(tmp_path: Path) -> None:
    async with _bounded(tmp_path, Bounds(processes=0, memory=0)) as commands:
        assert await commands.control_groups() == ()
        assert (await commands.run(command("echo on", tmp_path))).output.text() == "on\n"
