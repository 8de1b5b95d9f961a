"""What the tests of commands share: a place to run them, and a way to see who is still alive."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cache
from pathlib import Path
from uuid import uuid4

import pytest

from ferrule.host.processes.command import Bounds, Command
from ferrule.host.processes.command_runner import CommandRunner
from ferrule.host.processes.sandbox import Offers, Sandbox, try_sandbox

PYTHON = f"{sys.executable} -I -S -c"
GENEROUS = 30.0
"""Seconds that nothing takes unless it hangs."""


def opened(folder: Path) -> CommandRunner:
    """Without a control group, which takes longer to make than most tests."""
    return CommandRunner(folder=folder / "output", environment=os.environ, bounds=Bounds(processes=0, memory=0))


def command(text: str, cwd: Path | str, **variables: str) -> Command:
    return Command(text=text, cwd=str(cwd), env={**os.environ, **variables})


def unique() -> str:
    """A word that no process has unless it was given it."""
    return f"marker-{uuid4()}"


def alive_with(word: str) -> list[int]:
    """Processes that have the word among their arguments or in the environment they started with; no zombies."""
    found: list[int] = []
    for name in os.listdir("/proc"):
        if not name.isdecimal() or int(name) == os.getpid():
            continue
        try:
            content = Path(f"/proc/{name}/cmdline").read_bytes() + Path(f"/proc/{name}/environ").read_bytes()
            state = Path(f"/proc/{name}/stat").read_text().rpartition(") ")[2][0]
        except OSError:
            continue
        if word.encode() in content and state not in "ZX":
            found.append(int(name))
    return found


async def until(true: Callable[[], object], seconds: float = GENEROUS) -> None:
    """Waits for something that another process brings about."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it did not come about in time"
        await asyncio.sleep(0.005)


@cache
def offers() -> Offers:
    """What this machine can hold a command to, tried once."""

    async def ask(folder: Path) -> Offers:
        async with opened(folder) as commands:
            return await try_sandbox(commands)

    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(1) as thread:  # its own loop beside any other
        return thread.submit(asyncio.run, ask(Path(folder))).result()


def confined(text: str, cwd: Path, sandbox: Sandbox, **variables: str) -> Command:
    return replace(command(text, cwd, **variables), jail=offers().jail(sandbox))


def need_sandbox() -> None:
    if not offers().confines:
        pytest.skip("; ".join(offers().trouble))


def need_mounts() -> None:
    if not offers().mounts:
        pytest.skip("; ".join(offers().trouble))


def make_workspace(folder: Path) -> Path:
    """A repository with one commit of two files, and an empty folder."""
    (folder / "empty").mkdir(parents=True)
    (folder / "kept.txt").write_text("kept\n")
    (folder / "kept.txt").chmod(0o640)
    (folder / "other.txt").write_text("needle\n")
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b"]
    for arguments in (["init", "-q", "-b", "main"], ["add", "."], ["commit", "-qm", "first words"]):
        subprocess.run([*git, *arguments], cwd=folder, check=True)
    return folder
