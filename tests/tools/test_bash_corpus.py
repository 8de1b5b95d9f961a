"""Ordinary reading commands, run for real: unasked, and without a trace on the disk."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any

from ferrule.app.build import Settings, open_session
from ferrule.core.calls import Status, ToolCall, ToolOutcome
from ferrule.core.content import plain_text
from tests.host.processes.shell import need_sandbox
from tests.requirement import requirement
from tests.tools.test_bash import hostile_repository

CORPUS = Path(__file__).parent.parent / "corpus" / "bash.jsonl"
CASES: list[dict[str, Any]] = [json.loads(line) for line in CORPUS.read_text(encoding="utf-8").splitlines()]
READING = [case for case in CASES if case["expect"] == "read_only" and case["layer"] == "command"]


@requirement("SHELL-3", "BOX-1")
def test_every_reading_command_of_the_corpus_runs_and_writes_nothing(tmp_path: Path) -> None:
    need_sandbox()
    folder = tmp_path / "work"
    (folder / "src").mkdir(parents=True)
    (folder / "src" / "main.py").write_text("import os\n")
    for name in ("README.md", "Cargo.toml", "package.json", "app.log", "a.txt", "b.txt"):
        (folder / name).write_text("{}\n")
    hostile_repository(folder)
    before = _tree(folder)

    outcomes = asyncio.run(_ran(folder, tmp_path / "state"))

    assert _tree(folder) == before
    unexpected = [
        (case["command"], plain_text(outcome.content)[:200])
        for case, outcome in zip(READING, outcomes, strict=True)
        if outcome.status is Status.DENIED and "needs a person's approval" not in plain_text(outcome.content)
    ]
    assert unexpected == []
    ran = sum(outcome.status in (Status.OK, Status.FAILED) for outcome in outcomes)
    assert ran > 0.8 * len(READING)


async def _ran(folder: Path, state: Path) -> list[ToolOutcome]:
    async with open_session(Settings(cwd=str(folder), state_folder=state)) as session:
        outcomes: list[ToolOutcome] = []
        for case in READING:
            call = ToolCall(case["id"], "Bash", {"command": case["command"], "timeout": 5_000})
            outcomes += await session.run([call])
        return outcomes


def _tree(folder: Path) -> dict[str, tuple[int, int, bytes]]:
    """Every file with its mode, time of change and content; git's own bookkeeping included."""
    return {
        str(path.relative_to(folder)): (path.lstat().st_mode, path.lstat().st_mtime_ns, path.read_bytes())
        for path in sorted(folder.rglob("*"))
        if path.is_file() and os.access(path, os.R_OK)
    }


def test_the_corpus_has_reading_commands() -> None:
    assert len(READING) >= 60
