"""Commands beside what starts them plainly: a bare subprocess, bubblewrap, a read loop."""

from __future__ import annotations

import asyncio
import os
import resource
import shutil
import subprocess
import tempfile
from asyncio.subprocess import DEVNULL, PIPE, STDOUT
from dataclasses import replace
from functools import partial
from pathlib import Path
from time import perf_counter

from ferrule.host.processes.command import Command
from ferrule.host.processes.command_runner import CommandRunner
from ferrule.host.processes.sandbox import (
    OFF,
    READ_ONLY,
    Offers,
    Profile,
    Sandbox,
    try_sandbox,
    try_workspace,
    workspace_write,
)

from .figures import Figure
from .timing import Work, calibrated, interleaved

LEAST_RUNS = 50
FLOOD_RUNS = 5
FLOOD = 1 << 30
FLOOD_RATIO = 2.0
FLOOD_MEMORY_MB = 64 * 1.048576
BARE_RATIO, MORE_MS = 1.5, 1.0
LAYER_MS = 5.0
BUBBLEWRAP_RATIO = 1.3
PLAIN, READING, HIDING, LAYER = (
    "no sandbox",
    "held to reading",
    "held to reading, one path hidden",
    "held to one name, on a layer",
)
SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib64", "/etc", "/opt", "/nix", "/proc", "/sys")
SLEEPS, SLEEPS_MS = 40, 2_500.0


class NotHere(Exception):
    """Commands cannot run on this system."""


async def measure(*, runs: int) -> list[Figure]:
    if shutil.which("bash") is None or not os.path.exists("/proc/self/task"):
        raise NotHere("commands need Linux and bash")
    with tempfile.TemporaryDirectory(prefix="ferrule-shell-") as folder:
        (work := Path(folder, "work")).mkdir()
        (work / "secret").touch()
        async with CommandRunner(folder=Path(folder, "output"), environment=os.environ) as commands:
            offers = await try_workspace(commands, await try_sandbox(commands), str(work))
            figures = await _starting(commands, offers, work, max(runs, LEAST_RUNS))
            figures += await _flooding(commands, work)
            figures.append(await _sleeping(commands, work))
    return figures


async def _starting(commands: CommandRunner, offers: Offers, work: Path, runs: int) -> list[Figure]:
    """`true`, in every sandbox there is."""
    sandboxes = _sandboxes(offers, work)
    works: dict[str, Work] = {
        name: partial(_run, commands, "true", work, offers, sandbox) for name, sandbox in sandboxes.items()
    }
    works["bash"] = partial(_bare, "bash", "-c", "true")
    if bubblewrap := shutil.which("bwrap"):
        options = ("--dev-bind", "/", "/", "--ro-bind", "/dev/null", str(work / "secret"))
        works["bwrap"] = partial(_bare, bubblewrap, *options, "bash", "-c", "true")
    timed = await interleaved(works, runs=runs)
    made: list[Figure] = []
    for name in sandboxes:
        beside, limit = _target(name, {one: seconds * 1e3 for one, seconds in timed.seconds.items()})
        other = timed.seconds[beside] * 1e3
        figure = _figure(f"true, {name}", timed.seconds[name] * 1e3, timed.calibration)
        made.append(_beside(figure, "true, no sandbox" if beside == PLAIN else f"{beside} -c true", other, limit))
    return made


def _sandboxes(offers: Offers, work: Path) -> dict[str, Sandbox]:
    sandboxes = {PLAIN: OFF}
    if offers.confines:
        sandboxes["read-only"] = READ_ONLY
    if offers.mounts:
        sandboxes["read-only, one path hidden"] = replace(READ_ONLY, hidden=(str(work / "secret"),))
    if offers.reads:
        readable = (*filter(os.path.exists, SYSTEM), str(work))
        held = replace(READ_ONLY, readable=readable, declared=())
        sandboxes[READING] = held
        sandboxes[HIDING] = replace(held, hidden=(str(work / "secret"),))
        if offers.keep_for(str(work), background=False) == "overlay":
            named = ((str(work / "named"), False),)
            sandboxes[LAYER] = replace(
                held, profile=Profile.WORKSPACE_WRITE, declared=named, keep="overlay", workspace=(str(work),)
            )
            sandboxes["workspace-write"] = workspace_write(str(work))
    return sandboxes


def _target(name: str, times: dict[str, float]) -> tuple[str, float | None]:
    """What a sandbox is measured against, and how many times as long it may take."""
    plain = times[PLAIN]
    if name in (READING, HIDING):
        return PLAIN, (BARE_RATIO * plain + MORE_MS) / plain
    if name in (LAYER, "workspace-write"):
        return PLAIN, (plain + LAYER_MS) / plain if name == LAYER else None
    if "hidden" in name:
        return ("bwrap", BUBBLEWRAP_RATIO) if "bwrap" in times else ("bash", None)
    return "bash", (BARE_RATIO * times["bash"] + MORE_MS) / times["bash"]


async def _flooding(commands: CommandRunner, work: Path) -> list[Figure]:
    """1 GB of output, beside a loop that reads 64 KiB at a time from the same kind of pipe."""
    text = f"head -c {FLOOD} /dev/zero"
    before = _resident()
    timed = await interleaved(
        {"ferrule": partial(_run, commands, text, work), "loop": partial(_read_loop, text)}, runs=FLOOD_RUNS
    )
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - before
    figure = _figure("1 GB of output", timed.seconds["ferrule"] * 1e3, timed.calibration)
    memory = Figure(
        benchmark="shell",
        what="1 GB of output, memory at its peak more than before",
        value=grown / 1e6,
        unit="MB",
        calibration_ms=timed.calibration * 1e3,
        target=FLOOD_MEMORY_MB,
    )
    return [_beside(figure, "a 64 KiB read loop", timed.seconds["loop"] * 1e3, FLOOD_RATIO), memory]


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


async def _sleeping(commands: CommandRunner, work: Path) -> Figure:
    start = perf_counter()
    await asyncio.gather(*(_run(commands, "sleep 2", work) for _ in range(SLEEPS)))
    seconds = perf_counter() - start
    return _figure(f"{SLEEPS} times sleep 2, side by side", seconds * 1e3, calibrated(), target=SLEEPS_MS)


async def _run(
    commands: CommandRunner, text: str, work: Path, offers: Offers | None = None, sandbox: Sandbox = OFF
) -> None:
    jail = offers.jail(sandbox) if offers else None
    ran = await commands.run(Command(text=text, cwd=str(work), env=dict(os.environ), jail=jail))
    if not ran.succeeded:
        raise RuntimeError(ran.output.text())
    if ran.output.saved:
        ran.output.saved.unlink()


async def _bare(*command: str) -> None:
    process = await asyncio.create_subprocess_exec(*command, stdin=DEVNULL, stdout=PIPE, stderr=STDOUT)
    await process.communicate()


async def _read_loop(text: str) -> None:
    with subprocess.Popen(["bash", "-c", text], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as process:  # noqa: ASYNC220 - nothing else runs
        assert process.stdout is not None
        while os.read(process.stdout.fileno(), 1 << 16):
            pass


def _figure(what: str, value: float, calibration: float, target: float | None = None) -> Figure:
    return Figure(benchmark="shell", what=what, value=value, unit="ms", calibration_ms=calibration * 1e3, target=target)


def _beside(figure: Figure, beside: str, other: float, limit: float | None) -> Figure:
    return replace(figure, beside=beside, other=other, target_ratio=limit)
