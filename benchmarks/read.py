"""Read through the whole engine, beside plain Python that does as much as it must: open, decode, number."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from ferrule import Settings, ToolCall, open_session
from ferrule.core.calls import Status
from ferrule.engine.session import Session
from ferrule.permissions.modes import Mode

from .figures import Figure
from .timing import Work, interleaved

SMALL = 2_000
LARGE = 2_000_000
LINE = "    value = some_function(argument, another)  # and why\n"
LINES = 2_000
"""As many as the peer shows; Ferrule shows as many as its budget holds."""
LEAST_RUNS = 10
REPEATS = 20
"""Calls in one run of what takes too little time for the clock."""
SMALL_TARGET = 0.5
LARGE_TARGET = 3.0


async def measure(*, runs: int) -> list[Figure]:
    with tempfile.TemporaryDirectory(prefix="ferrule-read-") as folder:
        for name, size in (("small.py", SMALL), ("large.py", LARGE)):
            Path(folder, name).write_text(LINE * (size // len(LINE)))
        settings = Settings(cwd=folder, mode=Mode.BYPASS, state_folder=Path(folder) / "state")
        session = open_session(settings)
        last = LARGE // len(LINE) - 100
        cases: list[tuple[str, str, Mapping[str, Any], float | None, int]] = [
            ("Read a file of 2 KB", "small.py", {}, SMALL_TARGET, REPEATS),
            ("Read the first page of 2 MB", "large.py", {}, LARGE_TARGET, 1),
            ("Read the last 100 lines of 2 MB", "large.py", {"offset": last, "limit": 100}, LARGE_TARGET, 1),
        ]
        return [
            await _figure(what, session, str(Path(folder, name)), arguments, target, repeats, runs)
            for what, name, arguments, target, repeats in cases
        ]


async def _figure(
    what: str,
    session: Session,
    path: str,
    arguments: Mapping[str, Any],
    target: float | None,
    repeats: int,
    runs: int,
) -> Figure:
    call = partial(_call, session, {"file_path": path, **arguments}, repeats)
    works: dict[str, Work] = {
        "ferrule": call,
        "python": partial(_plainly, path, arguments.get("offset", 1), arguments.get("limit", LINES), repeats),
    }
    timed = await interleaved(works, runs=max(runs, LEAST_RUNS))
    return Figure(
        benchmark="read",
        what=what,
        value=timed.seconds["ferrule"] / repeats * 1e3,
        unit="ms",
        calibration_ms=timed.calibration * 1e3,
        beside="open, decode, split, number",
        other=timed.seconds["python"] / repeats * 1e3,
        target=target,
    )


async def _call(session: Session, arguments: Mapping[str, Any], repeats: int) -> None:
    for _ in range(repeats):
        (outcome,) = await session.run([ToolCall("1", "Read", arguments)])
        if outcome.status is not Status.OK:
            raise RuntimeError(str(outcome.content))


async def _plainly(path: str, first: int, count: int, repeats: int) -> None:
    for _ in range(repeats):
        with open(path, "rb") as file:  # noqa: ASYNC230 - nothing else runs
            lines = file.read().decode().split("\n")
        "\n".join(f"{number:>6}\t{line}" for number, line in enumerate(lines[first - 1 : first - 1 + count], first))
