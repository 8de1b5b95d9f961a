"""Grep and Glob through the whole engine, beside ripgrep itself, on a tree made from installed packages."""

from __future__ import annotations

import os
import shutil
import subprocess
import sysconfig
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from ferrule import Settings, ToolCall, open_session
from ferrule.core.calls import Status
from ferrule.engine.session import Session
from ferrule.host.search.ripgrep import find_ripgrep
from ferrule.permissions.modes import Mode

from .figures import Figure
from .timing import Work, interleaved

FILES = 20_000
"""Python files, all of which Glob finds."""
BYTES = 300_000_000
LARGEST = 2_000_000
TEXTS = (".py", ".md", ".txt", ".h")
LEAST_RUNS = 10
GREP_RATIO = 1.15
GLOB_RATIO = 1.2

RARE = "def singledispatchmethod|class singledispatchmethod"
COMMON = "import"
REGEX = r"class\s+\w+\(.*Exception\):"
NO_MATCH = "zzqqxxjjkkvvww"


class NotEnough(Exception):
    """There is no ripgrep, or not enough installed to make a tree of."""


async def measure(*, runs: int) -> list[Figure]:
    program = find_ripgrep(os.environ)
    if program is None:
        raise NotEnough("ripgrep is not installed")
    with tempfile.TemporaryDirectory(prefix="ferrule-search-") as folder:
        tree = Path(folder) / "tree"
        grow(tree)
        settings = Settings(cwd=str(tree), mode=Mode.BYPASS, state_folder=Path(folder) / "state")
        session = open_session(settings)
        return [
            await _figure(what, partial(_call, session, tool, arguments), [program, *flags], tree, limit, runs)
            for what, tool, arguments, flags, limit in _cases()
        ]


def _cases() -> Iterator[tuple[str, str, Mapping[str, Any], Sequence[str], float]]:
    patterns = {"rare": RARE, "common": COMMON, "regex": REGEX, "no match": NO_MATCH}
    for name, pattern in patterns.items():
        yield f"Grep files, {name}", "Grep", {"pattern": pattern}, ("-l", pattern, "./"), GREP_RATIO
    for name, pattern in patterns.items():
        if name != "common":
            arguments = {"pattern": pattern, "output_mode": "content", "head_limit": 0}
            yield f"Grep lines, {name}", "Grep", arguments, ("-n", pattern, "./"), GREP_RATIO
    limited = {"pattern": COMMON, "output_mode": "content"}
    yield "Grep lines, common, the first 250", "Grep", limited, ("-n", COMMON, "./"), 1.0
    everything = ("--files", "--sortr=modified", "--glob=**/*.py", "./")
    yield "Glob **/*.py, newest first", "Glob", {"pattern": "**/*.py"}, everything, GLOB_RATIO


async def _figure(what: str, own: Work, command: Sequence[str], tree: Path, limit: float, runs: int) -> Figure:
    works: dict[str, Work] = {"ferrule": own, "rg": partial(_ripgrep, command, tree)}
    timed = await interleaved(works, runs=max(runs, LEAST_RUNS))
    return Figure(
        benchmark="search",
        what=what,
        value=timed.seconds["ferrule"] * 1e3,
        unit="ms",
        calibration_ms=timed.calibration * 1e3,
        beside="rg " + " ".join(flag for flag in command[1:-1] if flag.startswith("-")),
        other=timed.seconds["rg"] * 1e3,
        target_ratio=limit,
    )


async def _call(session: Session, tool: str, arguments: Mapping[str, Any]) -> None:
    (outcome,) = await session.run([ToolCall("1", tool, arguments)])
    if outcome.status is not Status.OK:
        raise RuntimeError(str(outcome.content))


async def _ripgrep(command: Sequence[str], tree: Path) -> None:
    subprocess.run(command, cwd=tree, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=False)  # noqa: ASYNC221 - nothing else runs


def grow(tree: Path) -> None:
    """Copies of what is installed, until there are enough Python files and enough bytes."""
    sources = [Path(sysconfig.get_path(name)) for name in ("purelib", "stdlib")]
    files = size = turn = 0
    while files < FILES or size < BYTES:
        before = files
        for source in sources:
            for path in _text_files(source):
                target = tree / str(turn) / source.name / path.relative_to(source)
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(path, target)
                files += path.suffix == ".py"
                size += target.stat().st_size
        turn += 1
        if files == before:
            raise NotEnough("there are no Python files installed beside this interpreter")


def _text_files(source: Path) -> Iterator[Path]:
    for folder, folders, names in os.walk(source):
        folders[:] = [name for name in folders if name not in ("__pycache__", "site-packages")]
        for name in names:
            path = Path(folder, name)
            if path.suffix not in TEXTS or path.is_symlink():
                continue
            if path.stat().st_size <= LARGEST:
                yield path
