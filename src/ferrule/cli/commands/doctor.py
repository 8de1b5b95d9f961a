"""`ferrule doctor`: checks this machine for what Ferrule needs."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from ..._version import __version__
from ...core.values import plain_value
from ...host.processes.command import CommandFailed
from ...host.processes.command_runner import CommandRunner
from ...host.processes.sandbox import Offers, try_sandbox, try_workspace
from ...host.search.ripgrep import find_ripgrep
from ..exits import FAILED, OK
from ..scratch import scratch_folder


@plain_value
class Finding:
    what: str
    good: bool
    words: str


def run(chosen: argparse.Namespace) -> int:
    findings = asyncio.run(_findings())
    if chosen.json:
        print(json.dumps([{"what": one.what, "good": one.good, "words": one.words} for one in findings], indent=2))
    else:
        for one in findings:
            print(f"{'ok     ' if one.good else 'missing'}  {one.what}: {one.words}")
    sys.stdout.flush()
    return OK if all(one.good for one in findings) else FAILED


async def _findings() -> list[Finding]:
    found = [Finding("ferrule", True, f"{__version__}, Python {platform.python_version()}, {platform.platform()}")]
    found += _programs()
    with scratch_folder("ferrule-doctor-") as folder:
        async with CommandRunner(folder=Path(folder), environment=os.environ) as commands:
            try:
                found += await _confinement(commands)
                groups = await commands.control_groups()
            except CommandFailed as error:
                return [*found, Finding("commands", False, str(error))]
    words = f"all commands together are bounded by {', '.join(groups)}" if groups else _NO_GROUP
    return [*found, Finding("control group", bool(groups), words)]


_NO_HOLD = "neither a layer nor a supervisor works here, so commands that write are asked about"
_NO_GROUP = "none can be made here, so a fork bomb is bounded by the user's own limits only"


def _programs() -> Iterator[Finding]:
    bash = shutil.which("bash")
    yield Finding("bash", bash is not None, bash or "not on PATH; Bash cannot run commands")
    ripgrep = find_ripgrep(os.environ)
    yield Finding("ripgrep", ripgrep is not None, _version(ripgrep) if ripgrep else "not found; Grep and Glob are off")
    git = shutil.which("git")
    yield Finding("git", git is not None, _version(git) if git else "not on PATH")


def _version(program: str) -> str:
    done = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=20, check=False)
    return f"{done.stdout.partition(chr(10))[0]} ({program})"


async def _confinement(commands: CommandRunner) -> list[Finding]:
    offers = await try_workspace(commands, await try_sandbox(commands), os.getcwd())
    trouble = " ".join(offers.trouble)
    confines = (
        f"Landlock {offers.landlock} and a system call filter hold commands that only read"
        if offers.confines
        else f"commands cannot be confined. {trouble}"
    )
    covers = "paths can be hidden and protected by mounts" if offers.mounts else f"paths cannot be covered. {trouble}"
    gaps = [Finding("sandbox", False, gap) for gap in offers.gaps() if offers.confines]
    sandbox, mounts = Finding("sandbox", offers.confines, confines), Finding("mounts", offers.mounts, covers)
    return [sandbox, mounts, _held_writes(offers), *gaps]


def _held_writes(offers: Offers) -> Finding:
    """How an unapproved command is held to the names it declared, in this folder."""
    ways = {"overlay": "a layer over this folder", "supervisor": "a supervisor of its system calls"}
    keep = offers.keep_for(os.getcwd(), background=False)
    words = f"{ways[keep]} keeps a command to the names it declared" if keep else _NO_HOLD
    return Finding("held writes", keep != "", words)
