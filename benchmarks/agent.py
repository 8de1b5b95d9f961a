"""`ferrule -p` as a process against a model's service on loopback, beside a null program that sends the same bytes.

Times are taken where the requests arrive: from the start of the process to its
first request, and from one request to the next. So both sides pay for the
service alike, and neither for how it ends.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

from ferrule.providers.script import check_script
from ferrule.testing.model_server import LoggedRequest, ModelServer

from .figures import Figure
from .startup import NotInstalled
from .timing import calibrated

NULL = "null program"
SHORT, LONG, LONGEST = 60, 200, 2_000
WINDOW = 10
"""Turns on each side of a late one that the median is taken over."""
READS = 10
PARTS = 10
"""In which each file is read, two lines each."""
AGENTS = 20
TARGET_TIMES_NULL = 3.0
TARGET_MS = {"Read": 4.0, "Bash": 7.0}
TARGET_READS_MS = 15.0
TARGET_MB = 90.0
SCARCE_RUNS = 10
"""How often at most something is measured that takes seconds."""


@dataclass(slots=True)
class Run:
    """One process, as the service saw it."""

    started: float = 0.0
    pid: int = 0
    arrivals: list[float] = field(default_factory=list[float])
    megabytes: dict[int, float] = field(default_factory=dict[int, float])
    """Resident memory when that request came."""
    last: bytes = b""
    processor: float = 0.0
    """Seconds that it had used when its first request came, in all its threads."""

    def arrived(self, number: int, request: LoggedRequest) -> None:
        self.arrivals.append(perf_counter())
        self.processor = self.processor or _processor_seconds(self.pid)
        self.last = request.raw
        if number in (SHORT, LONGEST):
            self.megabytes[number] = resident(self.pid)

    @property
    def first(self) -> float:
        return self.arrivals[0] - self.started

    @property
    def turns(self) -> list[float]:
        return [after - before for before, after in pairwise(self.arrivals)]

    def around(self, turn: int) -> float:
        return median(self.turns[turn - 1 - WINDOW : turn - 1 + WINDOW])


@dataclass(frozen=True, slots=True)
class Bench:
    folder: Path
    command: Path
    runs: int

    async def ours(self, turns: Sequence[Mapping[str, Any]], *more: str) -> Run:
        return await self._run(turns, [str(self.command), "-p", "hi", "--model", "anthropic:scripted", *more])

    async def null(self, turns: Sequence[Mapping[str, Any]], recorded: bytes) -> Run:
        body = self.folder / "recorded.json"
        body.write_bytes(recorded)
        return await self._run(
            turns, [sys.executable, str(Path(__file__).with_name("null_agent.py")), "PORT", str(body)]
        )

    async def both(self, turns: Sequence[Mapping[str, Any]], *, runs: int) -> tuple[list[Run], list[Run]]:
        """In turns, after one run of each that does not count."""
        recorded = (await self.ours(turns)).last
        await self.null(turns, recorded)
        ours, null = [], []
        for _ in range(runs):
            ours.append(await self.ours(turns))
            null.append(await self.null(turns, recorded))
        return ours, null

    async def _run(self, turns: Sequence[Mapping[str, Any]], command: Sequence[str]) -> Run:
        run = Run()
        script = check_script({"turns": list(turns)}, "the benchmark's script")
        server = ModelServer(script, keep=False, arrived=run.arrived)
        async with server:
            port = server.url.rpartition(":")[2]
            environment = {
                **{name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"},
                "HOME": str(self.folder / "home"),
                "XDG_STATE_HOME": str(self.folder / "state"),
                "ANTHROPIC_BASE_URL": server.url,
                "ANTHROPIC_API_KEY": "none",
            }
            run.started = perf_counter()
            process = await asyncio.create_subprocess_exec(
                *(port if word == "PORT" else word for word in command),
                cwd=self.folder / "project",
                env=environment,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.DEVNULL,
            )
            run.pid = process.pid
            code = await process.wait()
        if code != 0 or len(run.arrivals) != len(turns):
            raise RuntimeError(f"{command[0]} ended with {code} after {len(run.arrivals)} of {len(turns)} requests")
        return run


async def measure(*, runs: int) -> list[Figure]:
    command = Path(sys.executable).with_name("ferrule")
    if not command.exists():
        raise NotInstalled("the `ferrule` command is not installed beside this interpreter")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for part in ("project", "home", "state"):
            (folder / part).mkdir()
        lines = "".join(f"line {number} of a file that is read in parts\n" for number in range(2 * PARTS))
        for number in range(LONGEST // PARTS + WINDOW):
            (folder / "project" / f"{number}.txt").write_text(lines)
        bench = Bench(folder, command, runs)
        return [
            await _start(bench),
            *[await _turn(bench, tool) for tool in TARGET_MS],
            await _many_reads(bench),
            await _conversation(bench),
            *await _longest(bench),
            await _agents(bench),
        ]


def _read(folder: Path, number: int) -> dict[str, Any]:
    """Another part each time: one that was read already is not shown again."""
    path = folder / "project" / f"{number // PARTS}.txt"
    return {"name": "Read", "input": {"file_path": str(path), "offset": 2 * (number % PARTS) + 1, "limit": 2}}


def _script(calls: Sequence[Sequence[Mapping[str, Any]]]) -> list[dict[str, Any]]:
    """The model says that it has room, so that no conversation is shortened and all bytes are sent."""
    usage = {"input_tokens": 1_000, "output_tokens": 10}
    return [*({"calls": list(each), "usage": usage} for each in calls), {"text": "Done."}]


async def _start(bench: Bench) -> Figure:
    ours, null = await bench.both([{"text": "Hello."}], runs=bench.runs)
    return _figure(
        "start to first request",
        min(run.first for run in ours) * 1e3,
        other=min(run.first for run in null) * 1e3,
        target_ratio=TARGET_TIMES_NULL,
    )


async def _turn(bench: Bench, tool: str) -> Figure:
    call = {"Read": partial(_read, bench.folder), "Bash": lambda _: {"name": "Bash", "input": {"command": "true"}}}
    turns = _script([[call[tool](number)] for number in range(SHORT)])
    ours, null = await bench.both(turns, runs=min(bench.runs, SCARCE_RUNS))
    words = f"a turn with {tool}" if tool == "Read" else f"a turn with {tool} `true`"
    return _figure(
        words,
        min(median(run.turns) for run in ours) * 1e3,
        other=min(median(run.turns) for run in null) * 1e3,
        target=TARGET_MS[tool],
    )


async def _many_reads(bench: Bench) -> Figure:
    turns = _script([[_read(bench.folder, READS * turn + number) for number in range(READS)] for turn in range(20)])
    ours, null = await bench.both(turns, runs=min(bench.runs, SCARCE_RUNS))
    return _figure(
        f"a turn with {READS} Reads",
        min(median(run.turns) for run in ours) * 1e3,
        other=min(median(run.turns) for run in null) * 1e3,
        target=TARGET_READS_MS,
    )


async def _conversation(bench: Bench) -> Figure:
    turns = _script([[_read(bench.folder, number)] for number in range(LONG)])
    ours, null = await bench.both(turns, runs=min(bench.runs, 3))
    return _figure(
        f"{LONG} turns with a Read",
        min(sum(run.turns) for run in ours) * 1e3,
        other=min(sum(run.turns) for run in null) * 1e3,
        target_ratio=TARGET_TIMES_NULL,
    )


async def _longest(bench: Bench) -> list[Figure]:
    """One run of each: it takes a minute."""
    turns = _script([[_read(bench.folder, number)] for number in range(LONGEST + WINDOW)])
    ours = await bench.ours(turns)
    null = await bench.null(turns, ours.last)
    transcript = max(path.stat().st_size for path in (bench.folder / "state").rglob("*.jsonl")) / 1e6
    early, late = ours.megabytes[SHORT], ours.megabytes[LONGEST]
    return [
        _figure(f"memory after {SHORT} turns", early, other=null.megabytes[SHORT], unit="MB", target=TARGET_MB),
        _figure(
            f"memory added by turns {SHORT} to {LONGEST:,}",
            late - early,
            beside="the transcript",
            other=transcript,
            unit="MB",
        ),
        _figure(
            f"turn {LONGEST:,}",
            ours.around(LONGEST) * 1e3,
            other=null.around(LONGEST) * 1e3,
            target_ratio=TARGET_TIMES_NULL,
        ),
        _figure(
            f"turn {LONGEST:,}, beyond the null program's",
            (ours.around(LONGEST) - null.around(LONGEST)) * 1e3,
            beside=f"the same of turn {SHORT}",
            other=(ours.around(SHORT) - null.around(SHORT)) * 1e3,
        ),
    ]


async def _agents(bench: Bench) -> Figure:
    """Each asks the model once, and all are asked for in one message."""
    wanted = {"description": "look", "prompt": "Say that you are there.", "subagent_type": "general-purpose"}
    calls = [{"name": "Agent", "input": wanted}] * AGENTS
    turns = [{"calls": calls}, *([{"text": "Here."}] * AGENTS), {"text": "Done."}]
    runs = [await bench.ours(turns) for _ in range(min(bench.runs, SCARCE_RUNS))]
    return _figure(f"{AGENTS} agents at once, from the call to the last answer", min(sum(r.turns) for r in runs) * 1e3)


def resident(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    return next(int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith("VmRSS"))


def _processor_seconds(pid: int) -> float:
    """To the nanosecond, which the ticks of `stat` are not."""
    tasks = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(task.read_text(encoding="ascii").split()[0]) for task in tasks) / 1e9


def _figure(what: str, value: float, *, other: float | None = None, beside: str = "", **more: Any) -> Figure:
    return Figure(
        benchmark="agent",
        what=what,
        value=value,
        unit=more.pop("unit", "ms"),
        calibration_ms=calibrated() * 1e3,
        beside=beside or (NULL if other is not None else ""),
        other=other,
        **more,
    )
