"""The shell analysis: ordinary commands, and hostile ones up to and beyond its limits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from time import perf_counter

from ferrule.bash_analysis.analysis import analyse

from .figures import Figure
from .timing import Work, interleaved

CALLS = 50
TARGET_US = 150.0
HOSTILE_TARGET_MS = 20.0

ORDINARY = {
    "ls -la": "ls -la",
    "git status --short": "git status --short",
    "sed -n '1,20p' src/main.py": "sed -n with a script",
    'grep -rn "TODO" src': "grep -rn",
    "cat README.md | head -20": "a pipe of two commands",
}
LONGER = {
    "cd src && git log --oneline -5 | grep fix": "three commands",
    'for f in a.txt b.txt; do wc -l "$f"; done': "a loop of two rounds",
}
HOSTILE = (
    "{|" * 5_000,
    "{|" * 100,
    "$[" * 4_900,
    "for " * 2_400,
    "case a in " * 55,
    "a=(" * 190,
    "[[ a =~ (" * 20,
    "$é" * 3_300,
    "echo " + "{a,b}{c,d}{e,f} " * 60,
    "x=aaaaaaaa; " + "x=$x$x; " * 40 + "ls $x",
    'x="' + "ls;" * 1_000 + '"; ' + 'bash -c "$x"; ' * 40,
    "awk '/" + "[][]" * 2_400 + "' f",
    "sed '" + "s/a/b/;" * 1_400 + "' f",
    "xargs " * 590,
    "ls; " * 49 + "ls",
    "eval " * 590,
    "\n" * 10_000,
)


async def measure(*, runs: int) -> list[Figure]:
    commands = {**ORDINARY, **LONGER}
    works: dict[str, Work] = {command: partial(_repeated, command) for command in commands}
    timed = await interleaved(works, runs=runs)
    ordinary = [
        Figure(
            benchmark="analysis",
            what=what,
            value=timed.seconds[command] / CALLS * 1e6,
            unit="µs",
            calibration_ms=timed.calibration * 1e3,
            target=TARGET_US if command in ORDINARY else None,
        )
        for command, what in commands.items()
    ]
    return [*ordinary, _worst(HOSTILE, runs, timed.calibration)]


async def _repeated(command: str) -> None:
    for _ in range(CALLS):
        _analyse(command)


def _worst(commands: Sequence[str], runs: int, calibration: float) -> Figure:
    """The slowest of the hostile commands; of each, the least of a few runs."""
    times = {command: min(_timed(command) for _ in range(max(3, runs // 3))) for command in commands}
    slowest = max(times, key=lambda command: times[command])
    return Figure(
        benchmark="analysis",
        what=f"the slowest of {len(commands)} hostile texts",
        value=times[slowest] * 1e3 if times else math.nan,
        unit="ms",
        calibration_ms=calibration * 1e3,
        target=HOSTILE_TARGET_MS,
    )


def _timed(command: str) -> float:
    start = perf_counter()
    _analyse(command)
    return perf_counter() - start


def _analyse(command: str) -> None:
    analyse(command, cwd="/srv/repo", home="/home/u")
