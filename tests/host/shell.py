"""What the tests of commands share: a place to run them, and a way to see who is still alive."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from pathlib import Path

from ferrule.host.commands import Command, Commands

GENEROUS = 30.0
"""Seconds that nothing takes unless it hangs."""


def opened(folder: Path) -> Commands:
    return Commands(folder=folder / "output", environment=os.environ)


def command(text: str, cwd: Path | str, **variables: str) -> Command:
    return Command(text=text, cwd=str(cwd), env={**os.environ, **variables})


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
