"""Cold starts of the interpreter, of the package and of the command, taken in turns."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from .figures import Figure
from .timing import Work, interleaved

BARE = "python -c pass"
TARGET_RATIO = 3.0


class NotInstalled(Exception):
    """The command is not beside the interpreter that runs the benchmark."""


async def measure(*, runs: int) -> list[Figure]:
    command = Path(sys.executable).with_name("ferrule")
    if not command.exists():
        raise NotInstalled("the `ferrule` command is not installed beside this interpreter")
    works: dict[str, Work] = {
        BARE: partial(_start, [sys.executable, "-c", "pass"]),
        "python -c 'import ferrule'": partial(_start, [sys.executable, "-c", "import ferrule"]),
        "ferrule --version": partial(_start, [str(command), "--version"]),
    }
    timed = await interleaved(works, runs=runs)
    return [
        Figure(
            benchmark="startup",
            what=name,
            value=timed.seconds[name] * 1e3,
            unit="ms",
            calibration_ms=timed.calibration * 1e3,
            beside=BARE,
            other=timed.seconds[BARE] * 1e3,
            target_ratio=TARGET_RATIO,
        )
        for name in works
        if name != BARE
    ]


async def _start(command: Sequence[str]) -> None:
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # noqa: ASYNC221 - nothing else runs
