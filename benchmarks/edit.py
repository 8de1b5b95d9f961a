"""Edit through the whole engine, beside plain Python: read, replace, write, fsync."""

from __future__ import annotations

import os
import tempfile
from functools import partial
from pathlib import Path

from ferrule import Settings, ToolCall, open_session
from ferrule.core.calls import Status
from ferrule.engine.session import Session
from ferrule.permissions.modes import Mode

from .figures import Figure
from .timing import Work, interleaved

LINE = "    value = some_function(argument, another)  # and why\n"
SIZES = {"4 KB": 4_000, "1 MB": 1_000_000}
RATIO = 3.0
LEAST_RUNS = 15
EDITS = 2
"""In each run: there and back, so that every run finds the same file."""


async def measure(*, runs: int) -> list[Figure]:
    with tempfile.TemporaryDirectory(prefix="ferrule-edit-") as folder:
        settings = Settings(cwd=folder, mode=Mode.BYPASS, state_folder=Path(folder) / "state")
        session = open_session(settings)
        return [await _figure(session, Path(folder), name, size, runs) for name, size in SIZES.items()]


async def _figure(session: Session, folder: Path, name: str, size: int, runs: int) -> Figure:
    half = LINE * (size // len(LINE) // 2)
    text = f"{half}    marked = 0\n{half}"
    ours, plain = folder / f"ours-{size}.py", folder / f"plain-{size}.py"
    plain.write_text(text)
    await _call(session, "Write", file_path=str(ours), content=text)
    works: dict[str, Work] = {
        "ferrule": partial(_edited, session, str(ours)),
        "python": partial(_plainly, str(plain)),
    }
    timed = await interleaved(works, runs=max(runs, LEAST_RUNS))
    return Figure(
        benchmark="edit",
        what=f"Edit a file of {name}",
        value=timed.seconds["ferrule"] / EDITS * 1e3,
        unit="ms",
        calibration_ms=timed.calibration * 1e3,
        beside="read, replace, write, fsync",
        other=timed.seconds["python"] / EDITS * 1e3,
        target_ratio=RATIO if size == SIZES["1 MB"] else None,
    )


async def _edited(session: Session, path: str) -> None:
    await _call(session, "Edit", file_path=path, old_string="marked = 0", new_string="marked = 1")
    await _call(session, "Edit", file_path=path, old_string="marked = 1", new_string="marked = 0")


async def _call(session: Session, tool: str, **arguments: str) -> None:
    (outcome,) = await session.run([ToolCall("1", tool, arguments)])
    if outcome.status is not Status.OK:
        raise RuntimeError(str(outcome.content))


async def _plainly(path: str) -> None:
    for old, new in (("marked = 0", "marked = 1"), ("marked = 1", "marked = 0")):
        with open(path) as file:  # noqa: ASYNC230 - nothing else runs
            text = file.read().replace(old, new)
        with open(path, "w") as file:  # noqa: ASYNC230
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
